// Parses source text of any language into a tree. Blocks in brackets contain statements, and
// statements contain words, strings, comments, signs and further blocks. The parser accepts every
// text: it treats a bracket without a match as a sign.
#pragma once

#include <bench/demo/tree.hpp>
#include <bench/demo/words.hpp>

#include <algorithm>
#include <array>

namespace mallard::demo {

template <class S>
class block_reader {
public:
    using allocator = typename S::template allocator_type<node<S>>;

    block_reader(std::string_view text, const allocator& memory) : text_(text), memory_(memory) {}

    node<S> read()
    {
        node<S> root(part::document, {}, memory_);
        block(root, 0);
        return root;
    }

private:
    /// Reads statements into `into` until a bracket closes this block or an enclosing block. (If a
    /// block has no closing bracket, it ends where the enclosing block ends.)
    void block(node<S>& into, std::size_t depth)
    {
        while (skip_space() && !closes(depth)) {
            node<S> line(part::statement, {}, memory_);
            statement(line, depth);
            into.add(std::move(line));
        }
    }

    /// Reads tokens up to the end of the line or a semicolon. Reads at least one token.
    void statement(node<S>& into, std::size_t depth)
    {
        line_is_fresh_ = true;
        do {
            char const c = text_[at_];
            if (closing(c) != '\0' && depth < depth_max)
                inner_block(into, depth);
            else
                token(into, c);
            line_is_fresh_ = false;
            if (c == ';')
                return;
            skip_blanks();
        } while (at_ < text_.size() && text_[at_] != '\n' && !closes(depth));
    }

    void inner_block(node<S>& into, std::size_t depth)
    {
        open_[depth] = closing(text_[at_]);
        node<S> inner(part::block, take(1), memory_);
        block(inner, depth + 1);
        at_ += at_ < text_.size() && text_[at_] == open_[depth];
        into.add(std::move(inner));
    }

    void token(node<S>& into, char c)
    {
        auto const rest = text_.substr(at_);
        if (in_word(c))
            into.add({part::word, take(word_length(rest)), memory_});
        else if (rest.starts_with("/*"))
            into.add({part::comment, take(end_after(rest, "*/", 2)), memory_});
        else if (rest.starts_with("//") || (c == '#' && line_is_fresh_))
            into.add({part::comment, take(std::min(rest.find('\n'), rest.size())), memory_});
        else if (std::size_t const length = c == '"' ? string_length(rest) : 0; length > 0)
            into.add({part::string, take(length), memory_});
        else
            into.add({part::sign, take(1), memory_});
    }

    /// Returns whether the next character closes one of the open blocks.
    bool closes(std::size_t depth) const noexcept
    {
        auto const end = open_.begin() + static_cast<std::ptrdiff_t>(depth);
        return std::find(open_.begin(), end, text_[at_]) != end;
    }

    std::string_view take(std::size_t length) noexcept
    {
        auto const taken = text_.substr(at_, length);
        at_ += length;
        return taken;
    }

    void skip_blanks() noexcept
    {
        at_ = std::min(text_.find_first_not_of(" \t\r\f", at_), text_.size());
    }

    /// Skips white space. Returns false at the end of the text.
    bool skip_space() noexcept
    {
        at_ = std::min(text_.find_first_not_of(" \t\r\f\n", at_), text_.size());
        return at_ < text_.size();
    }

    static constexpr char closing(char c) noexcept
    {
        return c == '(' ? ')' : c == '[' ? ']' : c == '{' ? '}' : '\0';
    }

    static constexpr std::size_t end_after(std::string_view text, std::string_view end,
                                           std::size_t from)
    {
        auto const at = text.find(end, from);
        return at == text.npos ? text.size() : at + end.size();
    }

    /// Returns the length of a string with both quotes, or 0 if the string does not end on its
    /// line.
    static constexpr std::size_t string_length(std::string_view text) noexcept
    {
        for (std::size_t i = 1; i < text.size() && text[i] != '\n'; ++i) {
            if (text[i] == '"')
                return i + 1;
            i += text[i] == '\\';
        }
        return 0;
    }

    std::string_view text_;
    allocator memory_;
    std::size_t at_ = 0;
    bool line_is_fresh_ = true;          // true until a token of this statement is read
    std::array<char, depth_max> open_{}; // the closing bracket of each open block
};

} // namespace mallard::demo

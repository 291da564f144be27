// A recursive-descent reader of JSON (RFC 8259) into a tree.
#pragma once

#include <bench/demo/tree.hpp>

#include <algorithm>
#include <stdexcept>

namespace mallard::demo {

class json_error : public std::runtime_error {
public:
    json_error(const std::string& what, std::size_t line)
        : std::runtime_error("not JSON in line " + std::to_string(line) + ": " + what)
    {
    }
};

/// Returns the reason why `text` is not JSON, or an empty string if it is JSON.
std::string json_fault(std::string_view text);

template <class S>
class json_reader {
public:
    using allocator = typename S::template allocator_type<node<S>>;

    json_reader(std::string_view text, const allocator& memory)
        : text_(text), memory_(memory), decoded_(memory)
    {
    }

    /// Reads one value. Throws `json_error`.
    node<S> read()
    {
        accept("\xef\xbb\xbf");
        node<S> root(part::document, {}, memory_);
        root.add(value(0));
        if (peek() != '\0' || at_ != text_.size())
            fail("something follows the value");
        return root;
    }

private:
    node<S> value(std::size_t depth)
    {
        switch (peek()) {
        case '{':
            return object(depth + 1);
        case '[':
            return array(depth + 1);
        case '"':
            return {part::string, string(), memory_};
        default:
            return scalar();
        }
    }

    node<S> object(std::size_t depth)
    {
        node<S> result(part::object, {}, memory_);
        sequence('}', depth, [&] {
            if (peek() != '"')
                fail("a key begins with \"");
            node<S>& member = result.add({part::member, string(), memory_});
            if (peek() != ':')
                fail("expected : after a key");
            ++at_;
            member.add(value(depth));
        });
        return result;
    }

    node<S> array(std::size_t depth)
    {
        node<S> result(part::array, {}, memory_);
        sequence(']', depth, [&] { result.add(value(depth)); });
        return result;
    }

    /// Reads both brackets of a list, and calls `element()` for each element between the brackets.
    void sequence(char end, std::size_t depth, auto&& element)
    {
        if (depth > depth_max)
            fail("nested deeper than " + std::to_string(depth_max));
        ++at_;
        if (peek() == end) {
            ++at_;
            return;
        }
        for (char next = ','; next == ',';) {
            element();
            next = peek();
            if (next != ',' && next != end)
                fail(std::string("expected , or ") + end);
            ++at_;
        }
    }

    node<S> scalar()
    {
        for (std::string_view const literal : {"true", "false", "null"})
            if (accept(literal))
                return {part::literal, literal, memory_};
        std::size_t const begin = at_;
        accept("-");
        if (!accept("0"))
            digits();
        if (accept("."))
            digits();
        if (accept("e") || accept("E")) {
            if (!accept("+"))
                accept("-");
            digits();
        }
        return {part::number, text_.substr(begin, at_ - begin), memory_};
    }

    void digits()
    {
        std::size_t const begin = at_;
        while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9')
            ++at_;
        if (at_ == begin)
            fail("expected a value");
    }

    /// Decodes a string into `decoded_`. The capacity of `decoded_` is reused, so only the node
    /// allocates memory.
    std::string_view string()
    {
        decoded_.clear();
        for (++at_;;) {
            std::size_t const run = at_;
            while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' &&
                   static_cast<unsigned char>(text_[at_]) >= 0x20)
                ++at_;
            decoded_.append(text_, run, at_ - run);
            if (accept("\""))
                return decoded_;
            if (!accept("\\"))
                fail("a string does not end");
            escape();
        }
    }

    void escape()
    {
        constexpr std::string_view names = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
        char const c = at_ < text_.size() ? text_[at_++] : '\0';
        if (auto const i = c == '\0' ? names.npos : names.find(c); i != names.npos)
            decoded_ += meanings[i];
        else if (c == 'u')
            put_utf8(code_point());
        else
            fail("an unknown escape in a string");
    }

    char32_t code_point()
    {
        char32_t const first = hex4();
        if (first < 0xd800 || first > 0xdfff)
            return first;
        char32_t const second = first < 0xdc00 && accept("\\u") ? hex4() : 0;
        if (second < 0xdc00 || second > 0xdfff)
            fail("half a surrogate pair in a string");
        return 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
    }

    char32_t hex4()
    {
        char32_t code = 0;
        for (int i = 0; i < 4; ++i) {
            char const c = at_ < text_.size() ? text_[at_++] : '\0';
            auto const digit =
                std::string_view("0123456789abcdef").find(static_cast<char>(c | 0x20));
            if (c < '0' || digit > 15)
                fail("four hexadecimal digits follow \\u");
            code = code * 16 + static_cast<char32_t>(digit);
        }
        return code;
    }

    void put_utf8(char32_t code)
    {
        auto const put = [this](char32_t byte) { decoded_ += static_cast<char>(byte); };
        if (code < 0x80) {
            put(code);
            return;
        }
        int const tail = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
        put((0xff00u >> (tail + 1) & 0xff) | code >> 6 * tail);
        for (int i = tail; i-- > 0;)
            put(0x80 | (code >> 6 * i & 0x3f));
    }

    /// Returns the next character that is not white space, or '\0' at the end of the text.
    char peek() noexcept
    {
        while (at_ < text_.size() &&
               std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
            ++at_;
        return at_ < text_.size() ? text_[at_] : '\0';
    }

    bool accept(std::string_view expected) noexcept
    {
        bool const found = text_.substr(at_).starts_with(expected);
        at_ += found ? expected.size() : 0;
        return found;
    }

    [[noreturn]] void fail(const std::string& what) const
    {
        auto const until = text_.substr(0, at_);
        throw json_error(what, 1 + static_cast<std::size_t>(std::ranges::count(until, '\n')));
    }

    std::string_view text_;
    allocator memory_;
    std::size_t at_ = 0;
    string_of<S> decoded_;
};

} // namespace mallard::demo

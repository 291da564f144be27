// A parser whose tree is in an arena. Nodes have many sizes, and one call frees all nodes without
// running destructors. Each document uses the memory of the previous document.
#include <mallard/arena.hpp>
#include <mallard/pmr.hpp>

#include <cassert>
#include <cctype>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// A list `(name a b (name c) ...)`: a name, and its members.
struct tree {
    std::string_view name; // part of the text, which outlives the tree
    std::pmr::vector<const tree*> children;
};

class parser {
public:
    using arena = mallard::pmr_resource<mallard::arena<>>;

    parser(std::string_view text, arena& memory) : text_(text), memory_(memory) {}

    /// Returns null if the text is not a tree. Resetting the arena also frees the nodes that were
    /// made before the error.
    const tree* parse()
    {
        skip_blanks();
        if (at_end() || text_[at_] == ')')
            return nullptr;
        if (text_[at_] != '(')
            return &memory_.make<tree>(name(), std::pmr::vector<const tree*>(&memory_));
        ++at_;
        skip_blanks();
        tree& made = memory_.make<tree>(name(), std::pmr::vector<const tree*>(&memory_));
        for (skip_blanks(); !at_end() && text_[at_] != ')'; skip_blanks()) {
            const tree* const child = parse();
            if (child == nullptr)
                return nullptr;
            made.children.push_back(child);
        }
        if (at_end())
            return nullptr;
        ++at_;
        return &made;
    }

private:
    bool at_end() const { return at_ == text_.size(); }
    void skip_blanks()
    {
        while (!at_end() && std::isspace(static_cast<unsigned char>(text_[at_])))
            ++at_;
    }
    std::string_view name()
    {
        std::size_t const begin = at_;
        while (!at_end() && std::string_view(" \n()").find(text_[at_]) == std::string_view::npos)
            ++at_;
        return text_.substr(begin, at_ - begin);
    }

    std::string_view text_;
    std::size_t at_ = 0;
    arena& memory_;
};

std::size_t count(const tree& t)
{
    std::size_t all = 1;
    for (const tree* const child : t.children)
        all += count(*child);
    return all;
}

int main()
{
    std::string long_text = "(list";
    for (int i = 0; i < 10'000; ++i)
        long_text += " (item x y)";
    long_text += ")";

    parser::arena memory;
    std::size_t taken = 0;
    for (int document = 0; document < 100; ++document) {
        const tree* const root = parser(long_text, memory).parse();
        assert(root != nullptr && count(*root) == 30'001);

        assert(parser("(not (closed)", memory).parse() == nullptr); // needs no clean-up

        memory.reset(); // wink-out: 30,001 vectors end without a destructor
        taken = taken == 0 ? memory.stats().bytes_taken : taken;
        assert(memory.stats().bytes_taken == taken); // the first document's memory serves all
    }
}

// Checks the blocks of a program of spec/.
#pragma once

#include "subject.hpp"

#include <cstdint>
#include <cstring>

namespace mallard::testing::spec {

/// The blocks of a program, with or without names. Each block is filled with its own pattern.
class blocks {
public:
    struct block {
        std::byte* begin;
        layout asked;
        unsigned char tag;

        std::byte* end() const { return begin + std::max(asked.bytes, std::size_t{1}); }
    };

    /// Adds a new block to the model, and verifies its address.
    void add(const std::string& name, void* at, layout l, const failing_source& source)
    {
        block const b{static_cast<std::byte*>(at), l, static_cast<unsigned char>(7 * all_.size())};
        hold(source.holds(at, l.bytes), "a block lies in what the source gave");
        hold(reinterpret_cast<std::uintptr_t>(at) % l.align == 0, "a block is aligned as asked");
        auto const after = live_.lower_bound(b.begin);
        hold(after == live_.end() || b.end() <= after->first, "blocks are apart");
        hold(after == live_.begin() || all_[std::prev(after)->second].end() <= b.begin,
             "blocks are apart");
        live_[b.begin] = all_.size();
        fill(b);
        if (!name.empty())
            by_name_[name] = all_.size();
        all_.push_back(b);
    }

    bool has(const std::string& name) const { return by_name_.contains(name); }
    block& named(const std::string& name)
    {
        auto const found = by_name_.find(name);
        hold(found != by_name_.end(), "there is no " + name);
        return all_[found->second];
    }
    block& live(const std::string& name)
    {
        block& b = named(name);
        auto const found = live_.find(b.begin);
        hold(found != live_.end() && &all_[found->second] == &b, name + " is free");
        return b;
    }

    /// Verifies the bytes of a block that is about to be freed, and removes it.
    block take(const std::string& name)
    {
        block const b = live(name);
        check(b);
        live_.erase(b.begin);
        return b;
    }
    void expanded(block& b, std::size_t bytes)
    {
        check({b.begin, {std::min(b.asked.bytes, bytes), 1}, b.tag});
        b.asked.bytes = bytes;
        fill(b);
    }

    void verify() const
    {
        for (auto const& [begin, i] : live_)
            check(all_[i]);
    }
    void forget() { live_.clear(); }

    /// Returns a copy of the state of all blocks. `rewind` returns to that state: it frees newer
    /// blocks, and shrinks blocks that have grown since.
    std::vector<block> picture() const { return all_; }
    void rewind(const std::vector<block>& then)
    {
        std::erase_if(live_, [&](auto const& b) { return b.second >= then.size(); });
        for (auto const& [begin, i] : live_)
            all_[i].asked.bytes = std::min(all_[i].asked.bytes, then[i].asked.bytes);
    }

private:
    static void fill(const block& b) { std::memset(b.begin, b.tag, b.asked.bytes); }
    static void check(const block& b)
    {
        std::size_t const bytes = b.asked.bytes;
        hold(bytes == 0 || (*b.begin == std::byte{b.tag} &&
                            std::memcmp(b.begin, b.begin + 1, bytes - 1) == 0),
             "a block keeps its bytes");
    }

    std::vector<block> all_;
    std::map<std::byte*, std::size_t> live_; // address -> index in the list of all blocks
    std::map<std::string, std::size_t> by_name_;
};

/// Runs `holds`, `aligned`, `is`, `is not` or `behind`. Returns false for any other word.
inline bool expect_of_block(blocks& of, const std::string& name, const std::string& is, line& l)
{
    blocks::block const& b = of.named(name);
    if (is == "holds") {
        of.live(name);
        of.verify();
    } else if (is == "aligned") {
        std::size_t const align = l.number("an alignment");
        hold(reinterpret_cast<std::uintptr_t>(b.begin) % align == 0, "");
    } else if (is == "behind") {
        hold(b.begin == of.named(l.word("a block")).end(), "");
    } else if (is == "is") {
        bool const other = l.take("not");
        hold((b.begin == of.named(l.word("a block")).begin) != other, "");
    } else {
        return false;
    }
    return true;
}

} // namespace mallard::testing::spec

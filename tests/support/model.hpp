// A model of the blocks in use, for any allocator.
#pragma once

#include "require.hpp"

#include <mallard/detail/base/bits.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

namespace mallard::testing {

/// Records each block with its layout, and fills the block with its own pattern. Stops the test
/// when a block is misaligned, overlaps another block, or has changed bytes.
class model {
public:
    void add(void* block, layout l)
    {
        auto* const begin = static_cast<std::byte*>(block);
        require(block != nullptr, "a block is not null");
        require(reinterpret_cast<std::uintptr_t>(block) % l.align == 0, "a block is aligned");
        auto const after = blocks_.lower_bound(begin);
        require(after == blocks_.end() || begin + room(l) <= after->first, "blocks do not overlap");
        require(after == blocks_.begin() || end(*std::prev(after)) <= begin,
                "blocks do not overlap");
        unsigned char const tag = static_cast<unsigned char>(++tags_);
        blocks_.emplace_hint(after, begin, entry{l, tag, order_.size()});
        order_.push_back(begin);
        write(begin, l.bytes, tag);
    }

    /// Verifies and removes a block that is about to be freed. Returns its layout.
    layout remove(void* block)
    {
        auto const found = blocks_.find(static_cast<std::byte*>(block));
        require(found != blocks_.end(), "only a block in use is freed");
        entry const e = found->second;
        require(reads(found->first, e.asked.bytes, e.tag), "a block keeps its bytes");
        order_[e.place] = order_.back();
        blocks_.find(order_.back())->second.place = e.place;
        order_.pop_back();
        blocks_.erase(found);
        return e.asked;
    }

    /// Removes all blocks, without verifying their bytes.
    void clear() { blocks_.clear(), order_.clear(); }

    void verify() const
    {
        for (auto const& [begin, e] : blocks_)
            require(reads(begin, e.asked.bytes, e.tag), "a block keeps its bytes");
    }

    std::size_t count() const { return order_.size(); }
    bool empty() const { return order_.empty(); }

    /// Returns the block with an index below `count()`. The order of the blocks is arbitrary.
    void* operator[](std::size_t index) const { return order_[index]; }
    layout layout_at(void* block) const
    {
        return blocks_.find(static_cast<std::byte*>(block))->second.asked;
    }
    bool has(const void* block) const
    {
        return blocks_.contains(static_cast<std::byte*>(const_cast<void*>(block)));
    }

    /// Returns the addresses of the blocks for which `which(layout)` is true, in ascending order.
    template <class F>
    std::vector<void*> ascending(F which) const
    {
        std::vector<void*> found;
        for (auto const& [begin, e] : blocks_)
            if (which(e.asked))
                found.push_back(begin);
        return found;
    }

private:
    struct entry {
        layout asked;
        unsigned char tag;
        std::size_t place; // the index in order_
    };
    static constexpr std::size_t edge_bytes = 256; // only both ends of a large block are filled

    static std::size_t room(layout l) { return std::max(l.bytes, std::size_t{1}); }
    static std::byte* end(const std::pair<std::byte* const, entry>& block)
    {
        return block.first + room(block.second.asked);
    }

    static void write(std::byte* p, std::size_t bytes, unsigned char tag)
    {
        std::size_t const edge = std::min(bytes, edge_bytes);
        std::memset(p, tag, edge);
        std::memset(p + bytes - edge, tag, edge);
    }
    static bool reads(const std::byte* p, std::size_t bytes, unsigned char tag)
    {
        auto const is_tag = [tag](std::byte b) { return b == std::byte{tag}; };
        std::size_t const edge = std::min(bytes, edge_bytes);
        return std::all_of(p, p + edge, is_tag) && std::all_of(p + bytes - edge, p + bytes, is_tag);
    }

    std::map<std::byte*, entry> blocks_;
    std::vector<std::byte*> order_;
    unsigned tags_ = 0;
};

} // namespace mallard::testing

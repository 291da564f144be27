// The header of one chunk of a pool, with a bit for each slot.
#pragma once

#include <mallard/detail/base/chunk_source.hpp>

#include <cstdint>

namespace mallard {

/// The contents of a chunk header after the `pool_chunk` itself. It contains `maps` bitmaps, each
/// with a bit for each slot, and then `bytes` more bytes.
struct header_shape {
    std::size_t maps;
    std::size_t bytes = 0;
};

/// A chunk consists of a header and slots of one size. Each slot can hold a block.
///
///     slots                    header, free bits, (live bits)    slots_end
///       | 0 | 1 | 2 | ...  | hole_begin ......... | hole_end | ...  |
///
/// Slots are carved (allocated for the first time) in address order. In a new chunk, the slots from
/// `carved` on and their bits were never written, so the operating system need not provide their
/// pages yet. The block of a carved slot is in use, in the cache of the pool, or free in this
/// chunk. Its free bit is set only if it is free in this chunk. The header covers the slots from
/// `hole_begin` to `hole_end`. A header in front of the slots covers none.
struct pool_chunk {
    using word = std::uint64_t;
    static constexpr std::size_t word_bits = 64;

    std::byte* slots;
    std::byte* slots_end;
    pool_chunk* next_partial; // list of the chunks with partial_words > 0
    std::uint32_t count;      // slots, including those that the header covers
    std::uint32_t carved;
    std::uint32_t partial_words; // number of nonzero words in the bitmap of free blocks
    std::uint32_t hint;          // index of the word whose blocks were last allocated
    std::uint32_t hole_begin;
    std::uint32_t hole_end;
    pool_chunk* left; // links of chunk_tree
    pool_chunk* right;
    pool_chunk* next_fresh; // list of the chunks with carved < count
    chunk source_chunk;     // the memory from the source; null unless this chunk is the first in it
    void* owner;            // the object_pool; only with `pool_options::owned`

    std::byte* begin() const noexcept { return slots; }
    std::byte* end() const noexcept { return slots_end; }

    word* free_bits() noexcept { return reinterpret_cast<word*>(this + 1); }
    const word* free_bits() const noexcept { return reinterpret_cast<const word*>(this + 1); }
    /// Returns the second bitmap, which exists with `check::on`. A bit is set while its block is in
    /// use.
    word* live_bits() noexcept { return free_bits() + words_for(count); }
    const word* live_bits() const noexcept { return free_bits() + words_for(count); }
    /// Returns the first byte after the first `maps` bitmaps.
    std::byte* behind(std::size_t maps) noexcept
    {
        return reinterpret_cast<std::byte*>(free_bits() + maps * words_for(count));
    }

    static constexpr word bit(std::size_t slot) noexcept { return word{1} << (slot % word_bits); }
    static constexpr std::size_t words_for(std::size_t slot_count) noexcept
    {
        return (slot_count + word_bits - 1) / word_bits;
    }
    static constexpr std::size_t header_bytes(std::size_t slot_count, header_shape shape) noexcept
    {
        return sizeof(pool_chunk) + shape.maps * words_for(slot_count) * sizeof(word) + shape.bytes;
    }

    bool is_free(std::size_t slot) const noexcept
    {
        return (free_bits()[slot / word_bits] & bit(slot)) != 0;
    }
    bool is_live(std::size_t slot) const noexcept
    {
        return (__atomic_load_n(&live_bits()[slot / word_bits], __ATOMIC_RELAXED) & bit(slot)) != 0;
    }
    bool is_carved(std::size_t slot) const noexcept
    {
        return slot < carved && !(hole_begin <= slot && slot < hole_end);
    }

    /// Calls `f(slot)` for each carved slot whose free bit is clear, in address order. Tests 64
    /// slots at a time, which is fast if a large chunk has few blocks in use.
    template <class F>
    void for_each_used(F f) const
    {
        for (std::size_t w = 0; w < words_for(carved); ++w) {
            word const hole = below(hole_end, w) & ~below(hole_begin, w);
            for (word used = ~free_bits()[w] & below(carved, w) & ~hole; used != 0;
                 used &= used - 1)
                f(w * word_bits + static_cast<std::size_t>(std::countr_zero(used)));
        }
    }

    /// Returns the number of blocks that the chunk can hold.
    std::size_t capacity() const noexcept { return count - (hole_end - hole_begin); }
    std::size_t carved_blocks() const noexcept
    {
        return carved >= hole_end ? carved - (hole_end - hole_begin) : carved;
    }
    std::size_t free_blocks() const noexcept
    {
        std::size_t bits = 0;
        for (std::size_t w = 0; w < words_for(carved); ++w)
            bits += static_cast<std::size_t>(std::popcount(free_bits()[w]));
        return bits;
    }
    /// Returns whether no block of the chunk is in use or in a cache.
    bool is_idle() const noexcept { return free_blocks() == carved_blocks(); }

    /// Sets `carved` to `slot`, or to the first slot after the header if the header covers `slot`.
    /// Clears the bits of the slots up to `carved`.
    void carve_to(std::size_t slot, bool has_live_bits) noexcept
    {
        if (slot == hole_begin)
            slot = hole_end;
        for (std::size_t w = words_for(carved); w < words_for(slot); ++w) {
            free_bits()[w] = 0;
            if (has_live_bits)
                live_bits()[w] = 0;
        }
        carved = static_cast<std::uint32_t>(slot);
    }

private:
    /// Returns the bits of word `w` for slots before `slot`.
    static constexpr word below(std::size_t slot, std::size_t w) noexcept
    {
        std::size_t const first = w * word_bits;
        if (slot >= first + word_bits)
            return ~word{0};
        return slot <= first ? 0 : bit(slot) - 1;
    }
};

} // namespace mallard

// One chunk of a pool: its slots, a header, a bit for each slot.
#pragma once

#include <mallard/source.hpp>

#include <atomic>

namespace mallard {

/// What a header holds behind `pool_chunk`: bitmaps of a bit a slot; then, for
/// pools of several threads, `bytes` and `bytes_a_slot` for each slot.
struct header_shape {
    std::size_t maps;
    std::size_t bytes;
    std::size_t bytes_a_slot;

    constexpr header_shape(std::size_t bitmaps, std::size_t more = 0,
                           std::size_t more_a_slot = 0) noexcept
        : maps(bitmaps), bytes(more), bytes_a_slot(more_a_slot)
    {
    }
};

/// Slots are carved lazily, in address order: nothing from `carved` on has ever
/// been touched, neither the slot nor its bit.
///
///     slots                    header, free bits, (live bits)    slots_end
///       | 0 | 1 | 2 | ...  | hole_begin ......... | hole_end | ...  |
///
/// A carved slot is in use, or in the front of its pool, or free here: then its
/// bit is set. Where the header stands before the slots, the hole is empty.
struct pool_chunk {
    using word = std::uint64_t;
    static constexpr std::size_t word_bits = 64;

    std::byte* slots;
    std::byte* slots_end;
    pool_chunk* next_partial; // list of the chunks with partial_words > 0
    std::uint32_t count;      // slots, those of the hole included
    std::uint32_t carved;
    std::uint32_t partial_words; // words with a bit set
    std::uint32_t hint;          // the word that gave slots last
    std::uint32_t hole_begin;
    std::uint32_t hole_end;
    pool_chunk* left; // chunk_tree
    pool_chunk* right;
    pool_chunk* next_fresh; // list of the chunks with carved < count
    chunk taken;            // what to give back; null in all but the first chunk of a take
    void* owner;            // where `pool_options::owned`: the object_pool

    std::byte* begin() const noexcept { return slots; }
    std::byte* end() const noexcept { return slots_end; }

    word* free_bits() noexcept { return reinterpret_cast<word*>(this + 1); }
    const word* free_bits() const noexcept { return reinterpret_cast<const word*>(this + 1); }
    /// Only under `check::on`: set while a block is in use.
    word* live_bits() noexcept { return free_bits() + words_for(count); }
    const word* live_bits() const noexcept { return free_bits() + words_for(count); }

    /// The same where several threads do: says what it was before.
    bool exchange_live(std::size_t slot, bool live) noexcept
    {
        std::atomic_ref const bits(live_bits()[slot / word_bits]);
        word const before = live ? bits.fetch_or(bit(slot), std::memory_order_relaxed)
                                 : bits.fetch_and(~bit(slot), std::memory_order_relaxed);
        return (before & bit(slot)) != 0;
    }

    static constexpr std::size_t words_for(std::size_t slot_count) noexcept
    {
        return (slot_count + word_bits - 1) / word_bits;
    }
    static constexpr std::size_t header_bytes(std::size_t slot_count, header_shape shape) noexcept
    {
        return sizeof(pool_chunk) + shape.maps * words_for(slot_count) * sizeof(word) +
               shape.bytes + shape.bytes_a_slot * slot_count;
    }
    /// What is behind `maps` bitmaps.
    std::byte* behind(std::size_t maps) noexcept
    {
        return reinterpret_cast<std::byte*>(free_bits() + maps * words_for(count));
    }
    static constexpr word bit(std::size_t slot) noexcept { return word{1} << (slot % word_bits); }

    bool is_free(std::size_t slot) const noexcept
    {
        return (free_bits()[slot / word_bits] & bit(slot)) != 0;
    }
    bool is_live(std::size_t slot) const noexcept
    {
        word& bits = const_cast<word&>(live_bits()[slot / word_bits]); // which is only read
        return (std::atomic_ref(bits).load(std::memory_order_relaxed) & bit(slot)) != 0;
    }
    bool is_carved(std::size_t slot) const noexcept
    {
        return slot < carved && !(hole_begin <= slot && slot < hole_end);
    }

    /// Calls `f(slot)` for each slot that is carved and not free here, in their order:
    /// by words of bits, so that a visit of few among many does not look at each.
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

    /// Blocks it can hold, those carved, those of them that are free here.
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

    /// Moves `carved` on, and past the hole.
    template <bool HasLiveBits>
    void carve_to(std::size_t slot) noexcept
    {
        if (slot == hole_begin)
            slot = hole_end;
        for (std::size_t w = words_for(carved); w < words_for(slot); ++w) {
            free_bits()[w] = 0;
            if constexpr (HasLiveBits)
                live_bits()[w] = 0;
        }
        carved = static_cast<std::uint32_t>(slot);
    }

    /// Every slot is as if never given out.
    template <bool HasLiveBits>
    void uncarve(header_shape header) noexcept
    {
        carved = partial_words = hint = 0;
        carve_to<HasLiveBits>(0);
        if (slots <= reinterpret_cast<std::byte*>(this)) {
            poison<HasLiveBits>(slots, bytes_between(slots, this));
            auto const* const after =
                reinterpret_cast<std::byte*>(this) + header_bytes(count, header);
            if (after < slots_end)
                poison<HasLiveBits>(after, bytes_between(after, slots_end));
        } else {
            poison<HasLiveBits>(slots, bytes_between(slots, slots_end));
        }
    }

private:
    /// The bits of word `w` for slots before `slot`.
    static constexpr word below(std::size_t slot, std::size_t w) noexcept
    {
        std::size_t const first = w * word_bits;
        if (slot >= first + word_bits)
            return ~word{0};
        return slot <= first ? 0 : bit(slot) - 1;
    }

    static std::size_t bytes_between(const void* from, const void* to) noexcept
    {
        return static_cast<std::size_t>(static_cast<const std::byte*>(to) -
                                        static_cast<const std::byte*>(from));
    }
};

/// A chunk that begins with its header.
struct chunk_plan {
    std::size_t slots_offset;
    std::size_t count; // 0: too small for one slot

    /// The chunk stands at `address` modulo `align`:
    /// no more is asked of a source than the header needs, so that one of few
    /// bytes loses none of them between two takes.
    static constexpr chunk_plan of(std::size_t bytes, std::size_t stride, std::size_t align,
                                   header_shape header, std::size_t address) noexcept
    {
        std::size_t count = std::min(bytes / stride, std::size_t{1} << 31);
        for (;;) {
            std::size_t const offset =
                align_up(address + pool_chunk::header_bytes(count, header), align) - address;
            if (count == 0 || offset + count * stride <= bytes)
                return {offset, count};
            std::size_t const excess = offset + count * stride - bytes;
            // Cautious: a slot less may also shorten bitmap and padding.
            count -= std::min(count, std::max(excess / (2 * stride + 16), std::size_t{1}));
        }
    }

    /// The least bytes that hold `count` slots.
    static constexpr std::size_t bytes_for(std::size_t count, std::size_t stride, std::size_t align,
                                           header_shape header) noexcept
    {
        return saturating_add(pool_chunk::header_bytes(count, header) + align,
                              saturating_mul(count, stride));
    }
};

/// Chunks of equal size, aligned to it, whose header is found from any block by
/// masking. The headers stand 1 KiB further on in each of up to 64 neighbouring
/// chunks, in place of some slots: all at one offset, they would fight for the
/// same few cache sets (docs/decisions/0003-coloured-headers.md). Blocks above
/// `coloured_stride_max` have few bits to a chunk, and would lose too much to
/// a header that is not at an edge.
class chunk_grid {
public:
    constexpr chunk_grid(std::size_t chunk_bytes, std::size_t stride, header_shape header) noexcept
        : bytes_(least_bytes(chunk_bytes, stride, header)),
          number_shift_(std::countr_zero(bytes_) - step_log2)
    {
        std::size_t const room = bytes_ / stride * stride - header_bytes(stride, header);
        if (stride <= coloured_stride_max)
            offset_mask_ = (std::bit_floor(std::min((room >> step_log2) + 1, colours)) - 1)
                           << step_log2;
    }

    constexpr std::size_t chunk_bytes() const noexcept { return bytes_; }

    std::size_t offset_of(const void* block) const noexcept
    {
        return reinterpret_cast<std::uintptr_t>(block) & (bytes_ - 1);
    }

    /// The header of the chunk that begins at `chunk`.
    pool_chunk* header_in(std::byte* chunk) const noexcept
    {
        return reinterpret_cast<pool_chunk*>(chunk + header_offset(chunk));
    }

    pool_chunk* make_chunk(std::byte* at, std::size_t stride, header_shape header) const noexcept
    {
        std::size_t const count = bytes_ / stride;
        std::size_t const offset = header_offset(at);
        std::size_t const end = (offset + header_bytes(stride, header) + stride - 1) / stride;
        auto* const c = ::new (at + offset) pool_chunk{};
        c->slots = at;
        c->slots_end = at + count * stride;
        c->count = static_cast<std::uint32_t>(count);
        c->hole_begin = static_cast<std::uint32_t>(offset / stride);
        c->hole_end = static_cast<std::uint32_t>(std::min(count, end));
        return c;
    }

private:
    static constexpr int step_log2 = 10;
    static constexpr std::size_t colours = 64;
    static constexpr std::size_t coloured_stride_max = 512;
    static constexpr std::size_t blocks_min = 8;

    constexpr std::size_t header_bytes(std::size_t stride, header_shape header) const noexcept
    {
        return pool_chunk::header_bytes(bytes_ / stride, header);
    }

    static constexpr std::size_t least_bytes(std::size_t chunk_bytes, std::size_t stride,
                                             header_shape header) noexcept
    {
        std::size_t const needed = chunk_plan::bytes_for(blocks_min, stride, stride, header);
        return std::max({chunk_bytes, std::bit_ceil(std::min(needed, bytes_max / 2)),
                         std::size_t{1} << step_log2});
    }

    std::size_t header_offset(std::byte* chunk) const noexcept
    {
        return reinterpret_cast<std::uintptr_t>(chunk) >> number_shift_ & offset_mask_;
    }

    std::size_t bytes_; // a power of two
    int number_shift_;  // brings a chunk's number to the place of the offset
    std::size_t offset_mask_ = 0;
};

} // namespace mallard

// One chunk of a pool: its slots, a header, a bit for each slot.
#pragma once

#include <mallard/detail/pool/slot_shape.hpp>
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
        const std::byte* first = slots;
        if (hole_begin != hole_end) {
            if (slots < reinterpret_cast<std::byte*>(this))
                poison<HasLiveBits>(slots, bytes_between(slots, this));
            first = hole_begin == 0
                        ? slots + bytes_between(slots, slots_end) / count * hole_end
                        : reinterpret_cast<std::byte*>(this) + header_bytes(count, header);
        }
        if (first < slots_end)
            poison<HasLiveBits>(first, bytes_between(first, slots_end));
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

/// Layout of chunks whose header is found by masking the address of any of their blocks. A chunk
/// is aligned to `align()`, a power of two, and all its blocks begin within the first `align()`
/// bytes.
///
/// Small blocks: `align()` is the size of a whole chunk. In up to 64 neighbouring chunks each
/// header is 1 KiB further on, in place of some slots: headers at one offset would compete for the
/// same few cache sets (docs/decisions/0003-coloured-headers.md).
///
/// Blocks above `coloured_stride_max`, and pools of few chunks: the header comes first, so a chunk
/// may end early where a limit or a source has no more memory. A block of `alone_min` bytes or more
/// has a chunk for itself, aligned as the header needs and as large as header and block.
class chunk_grid {
public:
    /// `wish`: bytes of a chunk, if that holds enough blocks. `limit`: bytes of all chunks
    /// together.
    constexpr chunk_grid(std::size_t wish, std::size_t limit, slot_shape shape,
                         header_shape header) noexcept
        : align_(chunk_bytes(wish, limit, shape, header))
    {
        std::size_t const several = saturating_add(first_slot(blocks_min * 2, shape, header),
                                                   saturating_mul(blocks_min, shape.bytes));
        if (several > align_ && shape.bytes >= alone_min &&
            shape.align <= shape.bytes / blocks_min) {
            first_ = first_slot(1, shape, header);
            align_ = std::bit_ceil(first_ + 1);
            whole_ = align_up(first_ + shape.bytes, align_);
            return;
        }
        align_ = std::max(align_, std::bit_ceil(std::min(several, bytes_max / 2)));
        whole_ = std::min(align_, std::max(limit, step));
        first_ = first_slot(whole_ / shape.bytes, shape, header);
        std::size_t const used = pool_chunk::header_bytes(slots(shape), header);
        if (shape.bytes <= coloured_stride_max && slots(shape) >= colours &&
            limit / coloured_chunks_min >= align_ && used <= align_ / 3) {
            std::size_t const room = whole_ / shape.bytes * shape.bytes - used;
            offset_mask_ = (std::bit_floor(std::min((room >> step_log2) + 1, colours)) - 1)
                           << step_log2;
            number_shift_ = std::countr_zero(align_) - step_log2;
        }
        if (offset_mask_ != 0)
            first_ = 0;
    }

    /// The alignment of chunks.
    constexpr std::size_t align() const noexcept { return align_; }
    /// Bytes of a chunk that does not end early.
    constexpr std::size_t whole_bytes() const noexcept { return whole_; }
    /// Bytes of the smallest possible chunk.
    constexpr std::size_t least_bytes(slot_shape shape) const noexcept
    {
        return first_ == 0 ? align_ : saturating_add(first_, shape.bytes);
    }
    /// The part of `bytes` that chunks can use. `bytes` is at least `least_bytes`.
    constexpr std::size_t useful_bytes(std::size_t bytes, slot_shape shape) const noexcept
    {
        return bytes >= whole_ ? bytes / whole_ * whole_ : bytes - (bytes - first_) % shape.bytes;
    }
    /// Bytes of the first chunk in a range of `bytes`: all, unless another chunk fits after it.
    constexpr std::size_t bytes_of_chunk(std::size_t bytes, slot_shape shape) const noexcept
    {
        std::size_t const next = align_up(whole_, align_);
        return bytes > next && bytes - next >= least_bytes(shape) ? next : bytes;
    }
    /// Slots of a whole chunk, including the slots that the header covers.
    constexpr std::size_t slots(slot_shape shape) const noexcept
    {
        std::size_t const room = whole_ - std::min(first_, whole_);
        return std::max(first_ / shape.bytes + room / shape.bytes, std::size_t{1});
    }

    std::size_t offset_of(const void* block) const noexcept
    {
        return reinterpret_cast<std::uintptr_t>(block) & (align_ - 1);
    }

    /// The header of the chunk that begins at `chunk`.
    pool_chunk* header_in(std::byte* chunk) const noexcept
    {
        return reinterpret_cast<pool_chunk*>(chunk + header_offset(chunk));
    }

    /// Makes a chunk in `bytes`, perhaps without using all of them. The slot number of a block is
    /// its offset in the chunk divided by the bytes of a block. So slot 0 begins less than a block
    /// after the start of the chunk, and the header covers the slots before `first_`.
    pool_chunk* make_chunk(std::byte* at, std::size_t bytes, slot_shape shape,
                           header_shape header) const noexcept
    {
        std::size_t const offset = header_offset(at);
        auto* const c = ::new (at + offset) pool_chunk{};
        std::size_t count = slots(shape);
        std::size_t hole_begin = 0, hole_end = first_ / shape.bytes;
        if (first_ == 0) {
            hole_begin = offset / shape.bytes;
            hole_end =
                (offset + pool_chunk::header_bytes(count, header) + shape.bytes - 1) / shape.bytes;
        } else {
            count = std::min(count, hole_end + (bytes - first_) / shape.bytes);
        }
        c->slots = at + first_ % shape.bytes;
        c->slots_end = c->slots + count * shape.bytes;
        c->count = static_cast<std::uint32_t>(count);
        c->hole_begin = static_cast<std::uint32_t>(hole_begin);
        c->hole_end = static_cast<std::uint32_t>(std::min(count, hole_end));
        return c;
    }

private:
    static constexpr int step_log2 = 10;
    static constexpr std::size_t step = std::size_t{1} << step_log2;
    static constexpr std::size_t colours = 64;
    static constexpr std::size_t coloured_stride_max = 512;
    // A coloured chunk cannot end early, so a limit may lose one chunk of this many.
    static constexpr std::size_t coloured_chunks_min = 32;
    // A shared chunk has at least this many blocks, and loses less than one block at its end.
    static constexpr std::size_t blocks_min = 15;
    // From this size on, the header and its alignment cost less than that.
    static constexpr std::size_t alone_min = 16384;

    /// Bytes of a chunk: `wish`, or less under a low limit, but enough to be worth a header. One
    /// chunk for the whole limit, if headers are large and the last of several could be wasted.
    static constexpr std::size_t chunk_bytes(std::size_t wish, std::size_t limit, slot_shape shape,
                                             header_shape header) noexcept
    {
        std::size_t const most = std::max(wish, step);
        std::size_t const least = std::bit_ceil(std::clamp(limit, step, std::size_t{8192}));
        std::size_t const bytes = std::min(most, std::max(std::bit_floor(limit / 8), least));
        if (limit <= most && first_slot(bytes / shape.bytes, shape, header) > bytes / 8)
            return std::bit_ceil(std::max(limit, step));
        return bytes;
    }
    static constexpr std::size_t first_slot(std::size_t count, slot_shape shape,
                                            header_shape header) noexcept
    {
        return align_up(pool_chunk::header_bytes(count, header), shape.align);
    }

    std::size_t header_offset(std::byte* chunk) const noexcept
    {
        return reinterpret_cast<std::uintptr_t>(chunk) >> number_shift_ & offset_mask_;
    }

    std::size_t align_;
    std::size_t whole_ = 0;
    int number_shift_ = 0; // brings a chunk's number to the place of the offset
    std::size_t offset_mask_ = 0;
    std::size_t first_ = 0; // where the first block of a chunk begins; 0: it is coloured
};

} // namespace mallard

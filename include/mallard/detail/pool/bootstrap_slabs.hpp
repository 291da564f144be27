// The first memory of a multipool: slabs that hold blocks of every size.
#pragma once

#include <mallard/detail/base/size_class.hpp>
#include <mallard/detail/pool/chunk_layout.hpp>

#include <span>
#include <utility>

namespace mallard {

/// Slabs of 1, 4, 16, 64 and 256 KiB from which the first blocks of all sizes are cut. If each
/// size had a chunk of its own, a structure of few blocks would spend more on chunks than on
/// blocks: 64 strings have 24 sizes.
///
/// A slab is a chunk with slots of 8 bytes, since all sizes are multiples of 8. A live bit is
/// set where a block begins, and a free bit too while no pool has that block in its cache. The
/// bytes of a block reach to the next live bit. A gap that alignment leaves is a free block.
template <bool Enabled>
class bootstrap_slabs {
    static constexpr std::size_t unit = size_class::fine_step;
    static constexpr std::size_t step_first = 1024, step_max = 262144, step_factor = 4;
    static constexpr std::size_t blocks_min = 4; // in a slab
    static constexpr plain_chunks<header_shape{2}> units{slot_shape{unit, unit}};

    /// Bytes that a pool gets at a time: half a KiB of small blocks, of which a structure
    /// often has many. A quarter of larger ones, so that few of them leave room for others.
    static constexpr std::size_t batch_bytes(slot_shape shape) noexcept
    {
        return shape.bytes <= cache_line_bytes ? 512 : 256;
    }

public:
    constexpr bootstrap_slabs() noexcept = default;
    constexpr bootstrap_slabs(bootstrap_slabs&& other) noexcept
        : first_(std::exchange(other.first_, nullptr)), open_(std::exchange(other.open_, nullptr)),
          step_(std::exchange(other.step_, step_first))
    {
    }

    /// Cuts neighbouring blocks of one size, at most an eighth of a slab. Returns no block if
    /// all slabs are used up, or the source is exhausted.
    template <class Source>
    std::span<std::byte> cut(Source& source, slot_shape shape) noexcept
    {
        if (!Enabled || shape.bytes > step_max / blocks_min)
            return {};
        while (open_ == nullptr || room(*open_, shape) < shape.bytes)
            if (open_ != nullptr && open_->next_fresh != nullptr)
                open_ = open_->next_fresh;
            else if (!add_slab(source, shape.bytes))
                return {};
        pool_chunk& slab = *open_;
        std::size_t const wanted =
            std::min(slab.source_chunk.bytes / 8, batch_bytes(shape)) / shape.bytes;
        std::size_t const count =
            std::clamp<std::size_t>(wanted, 1, room(slab, shape) / shape.bytes);
        std::size_t const gap = slab.carved;
        std::byte* const first = next_block(slab, shape);
        std::byte* const end = first + count * shape.bytes;
        slab.carve_to(slot_of(slab, end), true);
        if (slot_of(slab, first) != gap) {
            set(slab.live_bits(), gap);
            set(slab.free_bits(), gap);
        }
        for (std::byte* block = first; block != end; block += shape.bytes)
            set(slab.live_bits(), slot_of(slab, block));
        return {first, end};
    }

    bool owns(const void* p) const noexcept { return find(p) != nullptr; }

    /// The bytes of the block that begins at `p`, unless it is free and in no cache; or 0.
    std::size_t bytes_of(const void* p) const noexcept
    {
        pool_chunk const* const slab = find(p);
        if (slab == nullptr)
            return 0;
        std::size_t const slot = slot_of(*slab, p);
        bool const begins = slab->slots + slot * unit == p && slot < slab->carved &&
                            slab->is_live(slot) && !slab->is_free(slot);
        return begins ? bytes_of(*slab, slot) : 0;
    }

    /// Marks a block free: no pool has it in its cache any more.
    void set_free(const void* block) noexcept
    {
        pool_chunk* const slab = find(block);
        set(slab->free_bits(), slot_of(*slab, block));
    }

    /// Gives back each slab whose blocks are all marked free. Then calls `take(block, bytes)`
    /// for each other free block, which is not free any more if that returns true.
    template <class Source, class Take>
    void trim(Source& source, Take take) noexcept
    {
        open_ = nullptr;
        step_ = step_first;
        for (pool_chunk** link = &first_; *link != nullptr;) {
            pool_chunk* const slab = *link;
            if (slab->free_blocks() == slab->count_bits(slab->live_bits())) {
                *link = slab->next_fresh;
                give_back(source, slab);
                continue;
            }
            open_ = slab;
            step_ = slab->source_chunk.bytes * step_factor;
            link = &slab->next_fresh;
            for_each_block(*slab, [&](std::size_t slot, std::size_t bytes) {
                if (slab->is_free(slot) && take(slab->slots + slot * unit, bytes))
                    slab->free_bits()[slot / pool_chunk::word_bits] &= ~pool_chunk::bit(slot);
            });
        }
    }

    /// Frees every block and keeps the slabs.
    void reset() noexcept
    {
        for (pool_chunk* slab = first_; slab != nullptr; slab = slab->next_fresh)
            make_fresh(*slab);
        open_ = first_;
    }
    template <class Source>
    void release(Source& source) noexcept
    {
        for (pool_chunk* slab = first_; slab != nullptr;)
            give_back(source, std::exchange(slab, slab->next_fresh));
        forget();
    }
    constexpr void forget() noexcept
    {
        first_ = open_ = nullptr;
        step_ = step_first;
    }

    /// Counts a block as live unless it is marked free. A pool subtracts those in its cache.
    void add_to(statistics& s) const noexcept
    {
        for (pool_chunk* slab = first_; slab != nullptr; slab = slab->next_fresh) {
            s.bytes_taken += slab->source_chunk.bytes;
            s.bytes_idle += (slab->count - slab->carved) * unit;
            s.chunks += 1;
            for_each_block(*slab, [&](std::size_t slot, std::size_t bytes) {
                bool const live = !slab->is_free(slot);
                s.blocks_live += live;
                (live ? s.bytes_live : s.bytes_idle) += bytes;
            });
        }
    }

private:
    static std::size_t slot_of(const pool_chunk& slab, const void* p) noexcept
    {
        return static_cast<std::size_t>(static_cast<const std::byte*>(p) - slab.slots) / unit;
    }
    static void set(pool_chunk::word* map, std::size_t slot) noexcept
    {
        map[slot / pool_chunk::word_bits] |= pool_chunk::bit(slot);
    }

    /// Where the next block of a slab begins, and the bytes from there on.
    static std::byte* next_block(const pool_chunk& slab, slot_shape shape) noexcept
    {
        return align_up(slab.slots + slab.carved * unit, shape.align);
    }
    static std::size_t room(const pool_chunk& slab, slot_shape shape) noexcept
    {
        std::byte* const next = next_block(slab, shape);
        return next < slab.slots_end ? static_cast<std::size_t>(slab.slots_end - next) : 0;
    }

    static std::size_t bytes_of(const pool_chunk& slab, std::size_t slot) noexcept
    {
        std::size_t end = slot + 1;
        while (end < slab.carved && !slab.is_live(end))
            end += 1;
        return (end - slot) * unit;
    }
    /// Calls `f(slot, bytes)` for each block that was cut.
    template <class F>
    static void for_each_block(const pool_chunk& slab, F f)
    {
        for (std::size_t slot = 0; slot < slab.carved;) {
            std::size_t const bytes = bytes_of(slab, slot);
            f(slot, bytes);
            slot += bytes / unit;
        }
    }

    pool_chunk* find(const void* p) const noexcept
    {
        pool_chunk* slab = first_;
        while (slab != nullptr && !(slab->begin() <= p && p < slab->end()))
            slab = slab->next_fresh;
        return slab;
    }

    static void make_fresh(pool_chunk& slab) noexcept
    {
        slab.carved = 0;
        poison<false>(slab.slots, static_cast<std::size_t>(slab.slots_end - slab.slots));
    }

    template <class Source>
    static void give_back(Source& source, pool_chunk* slab) noexcept
    {
        chunk const taken = slab->source_chunk;
        unpoison<false>(taken.data, taken.bytes);
        give(source, taken);
    }

    /// Takes one more slab, with room for at least `blocks_min` blocks of `bytes`.
    template <class Source>
    bool add_slab(Source& source, std::size_t bytes) noexcept
    {
        std::size_t step = step_;
        while (step < bytes * blocks_min)
            step *= step_factor;
        if (step > step_max)
            return false;
        chunk const taken = try_take(source, {step, alignof(pool_chunk)});
        if (taken.data == nullptr)
            return false;
        step_ = step * step_factor;
        pool_chunk* const slab = units.make_chunk(static_cast<std::byte*>(taken.data), taken.bytes);
        slab->source_chunk = taken;
        make_fresh(*slab);
        (open_ == nullptr ? first_ : open_->next_fresh) = slab;
        open_ = slab;
        return true;
    }

    pool_chunk* first_ = nullptr;   // the oldest slab; the list is through next_fresh
    pool_chunk* open_ = nullptr;    // where blocks are cut; null if there is no slab
    std::size_t step_ = step_first; // bytes of the next slab
};

} // namespace mallard

// The first memory of a multipool, which is in slabs that hold blocks of several sizes.
#pragma once

#include <mallard/detail/base/size_class.hpp>
#include <mallard/detail/pool/chunk_layout.hpp>

#include <array>
#include <span>
#include <utility>

namespace mallard {

/// The size and alignment of the blocks in each size class of a multipool. A request with an
/// alignment above a cache line goes to the source, because otherwise one such request would force
/// its alignment on every chunk of its class.
template <std::size_t N>
inline constexpr std::array<slot_shape, N> class_shapes = [] {
    std::array<slot_shape, N> all{};
    for (std::size_t i = 0; i < N; ++i)
        all[i] = {size_class::bytes(i), std::min(size_class::align(i), cache_line_bytes)};
    return all;
}();

/// Slabs of 1, 4, 16, 64 and 256 KiB, from which a multipool cuts the first blocks of all `N`
/// sizes. If each size had a separate chunk from the start, a few blocks of many sizes would waste
/// most of their chunks. For example, 64 strings may have 24 different sizes.
///
/// A slab is a chunk with slots of 8 bytes, since all sizes are multiples of 8. Blocks are cut in
/// batches of one size. For each batch, two bytes record the size class and the number of blocks.
/// These records start at the end of the slab and grow downwards:
///
///     pool_chunk, free bits | 40 B | 40 B | 24 B | 24 B | 24 B | not cut yet ... | 24x3 | 40x2 |
///
/// Outside of `trim`, each free block of a slab is in the cache of the pool for its size, and the
/// free bits are unused. During a trim, the free bits mark the free blocks, so that `end_trim`
/// finds idle slabs. Each block that is marked as free holds the index of its size class.
template <std::size_t N, bool Enabled>
class bootstrap_slabs {
    static constexpr std::size_t unit = size_class::fine_step;
    static constexpr std::size_t step_first = 1024, step_max = 262144, step_factor = 4;
    static constexpr std::size_t step_second = step_first * step_factor;
    static constexpr std::size_t blocks_min = 4; // a slab has room for 4 blocks of its first size

    struct batch {
        std::uint8_t index; // size class
        std::uint8_t count;
    };

    /// The number of blocks in a batch, for each size class. In a slab of 1 KiB, a batch is an
    /// eighth of the slab. In larger slabs, a batch of blocks up to a cache line has 512 bytes,
    /// because a data structure often has many small blocks. A batch of larger blocks has 256
    /// bytes, so that a few batches leave memory for other sizes. A batch has at least one block.
    struct batch_counts {
        std::array<std::uint8_t, N> in_first{};
        std::array<std::uint8_t, N> in_others{};
    };
    static constexpr batch_counts counts = [] {
        batch_counts all;
        for (std::size_t i = 0; i < N; ++i) {
            std::size_t const bytes = class_shapes<N>[i].bytes;
            auto const count_in = [&](std::size_t room) {
                return static_cast<std::uint8_t>(std::max(room / bytes, std::size_t{1}));
            };
            all.in_first[i] = count_in(step_first / 8);
            all.in_others[i] = count_in(bytes <= cache_line_bytes ? 512 : 256);
        }
        return all;
    }();

public:
    constexpr bootstrap_slabs() noexcept = default;
    constexpr bootstrap_slabs(bootstrap_slabs&& other) noexcept
        : first_(std::exchange(other.first_, nullptr)), open_(std::exchange(other.open_, nullptr)),
          step_(std::exchange(other.step_, step_first))
    {
    }

    /// Cuts adjacent blocks of size class `i` from a slab, as many as `counts` has for the class,
    /// or fewer if the slab has less room. Returns no block if all slabs are used up and the source
    /// is exhausted.
    template <class Source>
    std::span<std::byte> cut(Source& source, std::size_t i) noexcept
    {
        slot_shape const shape = class_shapes<N>[i];
        if (!Enabled || shape.bytes > step_max / blocks_min)
            return {};
        while (open_ == nullptr || !has_room(*open_, shape))
            if (open_ != nullptr && open_->next_fresh != nullptr)
                open_ = open_->next_fresh;
            else if (!add_slab(source, shape.bytes))
                return {};
        pool_chunk& slab = *open_;
        std::size_t count =
            (slab.source_chunk.bytes < step_second ? counts.in_first : counts.in_others)[i];
        std::byte* const first = next_block(slab, shape);
        batch* const last = batches_of(slab) - ++slab.partial_words;
        auto const room = static_cast<std::size_t>(reinterpret_cast<std::byte*>(last) - first);
        std::size_t bytes = count * shape.bytes;
        if (bytes > room) [[unlikely]] {
            count = room / shape.bytes;
            bytes = count * shape.bytes;
        }
        slab.carved = static_cast<std::uint32_t>(slot_of(slab, first + bytes));
        // `make_fresh` has poisoned these bytes.
        unpoison<false>(last, sizeof(batch));
        *last = {static_cast<std::uint8_t>(i), static_cast<std::uint8_t>(count)};
        return {first, bytes};
    }

    bool owns(const void* p) const noexcept { return find(p) != nullptr; }

    /// Returns the size class of the block that begins at `p`, or `N` if no block begins there.
    std::size_t class_of(const void* p) const noexcept
    {
        std::size_t index = N;
        if (pool_chunk* const slab = find(p))
            all_of_blocks(*slab, [&](const void* block, std::size_t i) {
                index = block == p ? i : N;
                return block != p;
            });
        return index;
    }

    /// Starts a trim, and clears the free bits of all blocks.
    void begin_trim() noexcept
    {
        for (pool_chunk* slab = first_; slab != nullptr; slab = slab->next_fresh)
            std::fill_n(slab->free_bits(), slab->words_for(slab->carved), pool_chunk::word{0});
    }
    /// Marks a block of size class `i` as free, after `begin_trim`. The block must not be in a
    /// cache any more.
    void set_free(void* block, std::size_t i) noexcept
    {
        // The open slab is often the largest, so most blocks are in it.
        pool_chunk* const slab = has(*open_, block) ? open_ : find(block);
        std::size_t const slot = slot_of(*slab, block);
        slab->free_bits()[slot / pool_chunk::word_bits] |= pool_chunk::bit(slot);
        write_index(block, i);
    }
    /// Completes a trim. Returns each slab whose blocks are all marked as free. Calls `cache(block,
    /// i)` for each marked block in the other slabs.
    template <class Source, class Cache>
    void end_trim(Source& source, Cache cache) noexcept
    {
        open_ = nullptr;
        step_ = step_first;
        for (pool_chunk** link = &first_; *link != nullptr;) {
            pool_chunk* const slab = *link;
            bool const is_idle = all_of_blocks(*slab, [&](const void* block, std::size_t) {
                return slab->is_free(slot_of(*slab, block));
            });
            if (is_idle) {
                *link = slab->next_fresh;
                give_back(source, slab);
                continue;
            }
            open_ = slab;
            step_ = slab->source_chunk.bytes * step_factor;
            link = &slab->next_fresh;
            for_each_free_block(*slab, cache);
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

    /// Adds the slabs to `s` as if every block were live. Each pool then subtracts the blocks in
    /// its cache.
    void add_to(statistics& s) const noexcept
    {
        for (pool_chunk* slab = first_; slab != nullptr; slab = slab->next_fresh) {
            s.bytes_taken += slab->source_chunk.bytes;
            s.bytes_idle += (slab->count - slab->carved) * unit;
            s.chunks += 1;
            all_of_blocks(*slab, [&](const void*, std::size_t i) {
                s.blocks_live += 1;
                s.bytes_live += class_shapes<N>[i].bytes;
                return true;
            });
        }
    }

private:
    static std::size_t slot_of(const pool_chunk& slab, const void* p) noexcept
    {
        return static_cast<std::size_t>(static_cast<const std::byte*>(p) - slab.slots) / unit;
    }
    /// Returns the end of the slab, where the records of its batches end too. The records grow
    /// downwards, so the record of the last batch has the lowest address. A slab counts its batches
    /// in `partial_words`.
    static batch* batches_of(const pool_chunk& slab) noexcept
    {
        return reinterpret_cast<batch*>(slab.slots_end);
    }
    static std::byte* next_block(const pool_chunk& slab, slot_shape shape) noexcept
    {
        return align_up(slab.slots + slab.carved * unit, shape.align);
    }
    /// Returns whether the slab has room for one more batch of one block.
    static bool has_room(const pool_chunk& slab, slot_shape shape) noexcept
    {
        auto* const end = reinterpret_cast<std::byte*>(batches_of(slab) - slab.partial_words - 1);
        return end - next_block(slab, shape) >= static_cast<std::ptrdiff_t>(shape.bytes);
    }

    /// Returns whether `f(block, i)` is true for all blocks that were cut. Stops at the first block
    /// for which `f` returns false.
    template <class F>
    static bool all_of_blocks(const pool_chunk& slab, F f)
    {
        std::byte* block = slab.slots;
        for (std::uint32_t b = 1; b <= slab.partial_words; ++b) {
            auto const [index, count] = *(batches_of(slab) - b);
            slot_shape const shape = class_shapes<N>[index];
            block = align_up(block, shape.align);
            for (std::size_t left = count; left != 0; --left, block += shape.bytes)
                if (!f(block, index))
                    return false;
        }
        return true;
    }

    /// Calls `f(block, i)` for each block that is marked as free.
    template <class F>
    static void for_each_free_block(pool_chunk& slab, F f)
    {
        for (std::size_t w = 0; w < slab.words_for(slab.carved); ++w)
            for (auto bits = slab.free_bits()[w]; bits != 0; bits &= bits - 1) {
                auto const bit = static_cast<std::size_t>(std::countr_zero(bits));
                std::byte* const block = slab.slots + (w * slab.word_bits + bit) * unit;
                f(block, index_in(block));
            }
    }

    // Writes the size class into a block that is marked as free, so that `end_trim` need not search
    // the batches for the class. AddressSanitizer must not see the write, because the block is
    // poisoned.
    [[gnu::no_sanitize_address]] static void write_index(void* block, std::size_t i) noexcept
    {
        *static_cast<std::size_t*>(block) = i;
    }
    [[gnu::no_sanitize_address]] static std::size_t index_in(const void* block) noexcept
    {
        return *static_cast<const std::size_t*>(block);
    }

    static bool has(const pool_chunk& slab, const void* p) noexcept
    {
        return slab.begin() <= p && p < slab.end();
    }
    pool_chunk* find(const void* p) const noexcept
    {
        pool_chunk* slab = first_;
        while (slab != nullptr && !has(*slab, p))
            slab = slab->next_fresh;
        return slab;
    }

    static void make_fresh(pool_chunk& slab) noexcept
    {
        slab.carved = slab.partial_words = 0;
        poison<false>(slab.slots, static_cast<std::size_t>(slab.slots_end - slab.slots));
    }

    template <class Source>
    static void give_back(Source& source, pool_chunk* slab) noexcept
    {
        chunk const taken = slab->source_chunk;
        unpoison<false>(taken.data, taken.bytes);
        give(source, taken);
    }

    /// Allocates one more slab, large enough for at least `blocks_min` blocks of `bytes` bytes
    /// each.
    template <class Source>
    bool add_slab(Source& source, std::size_t bytes) noexcept
    {
        std::size_t step = step_;
        while (step < bytes * blocks_min)
            step *= step_factor;
        if (step > step_max)
            return false;
        chunk const taken = take_verified<false>(source, {step, alignof(pool_chunk)});
        if (taken.data == nullptr)
            return false;
        step_ = step * step_factor;
        auto* const slab = ::new (taken.data) pool_chunk{};
        slab->slots = static_cast<std::byte*>(taken.data) +
                      pool_chunk::header_bytes(taken.bytes / unit, header_shape{1});
        slab->slots_end = static_cast<std::byte*>(taken.data) + taken.bytes;
        slab->count = static_cast<std::uint32_t>(
            static_cast<std::size_t>(slab->slots_end - slab->slots) / unit);
        slab->source_chunk = taken;
        make_fresh(*slab);
        (open_ == nullptr ? first_ : open_->next_fresh) = slab;
        open_ = slab;
        return true;
    }

    pool_chunk* first_ = nullptr;   // the oldest slab; `next_fresh` links to the newer slabs
    pool_chunk* open_ = nullptr;    // the slab from which blocks are cut, or null
    std::size_t step_ = step_first; // bytes of the next slab
};

} // namespace mallard

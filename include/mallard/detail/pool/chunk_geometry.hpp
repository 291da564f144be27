// How the chunks of one pool are cut: where a block's header and slot are.
#pragma once

#include <mallard/detail/pool/pool_chunk.hpp>
#include <mallard/detail/pool/slot_shape.hpp>
#include <mallard/options.hpp>

namespace mallard {

/// The same for all chunks of a pool, and constant. `Tail`: what their headers
/// hold beside the free bits and, under `check::on`, the live bits.
template <pool_options Options, header_shape Tail = header_shape{0}>
class chunk_geometry {
public:
    static constexpr bool watched = Options.checks == check::on;
    // A pool that never grows has one chunk, whatever its address. A list finds
    // chunks on slow paths only, through the tree; but its owner is found by mask.
    static constexpr bool single = Options.grow.is_single();
    static constexpr bool gridded = (Options.order == reuse::ordered || Options.owned) && !single;
    static constexpr std::size_t own_maps = watched ? 2 : 1;
    static constexpr header_shape header{own_maps + Tail.maps, Tail.bytes, Tail.bytes_a_slot};

private:
    struct no_grid {
        constexpr no_grid(std::size_t, std::size_t, slot_shape, header_shape) noexcept {}
    };
    using grid = std::conditional_t<gridded, chunk_grid, no_grid>;
    using divider =
        std::conditional_t<Options.order == reuse::ordered, slot_divider, plain_divider>;

public:
    /// `limit`: of the pool's growth.
    constexpr chunk_geometry(slot_shape shape, std::size_t limit) noexcept
        : shape_(shape), divide_(shape.bytes), grid_(Options.chunk, limit, shape, header)
    {
    }

    constexpr slot_shape shape() const noexcept { return shape_; }

    /// Source bytes that hold `count` blocks.
    static constexpr std::size_t bytes_for(slot_shape shape, std::size_t count) noexcept
    {
        return chunk_plan::bytes_for(count, shape.bytes, shape.align, header);
    }

    struct place {
        pool_chunk* c;
        std::size_t slot;
    };

    /// Of a block of this pool, which need not be looked for.
    [[gnu::always_inline]] place place_of(void* block) const noexcept
        requires gridded
    {
        std::size_t const offset = grid_.offset_of(block);
        return {grid_.header_in(static_cast<std::byte*>(block) - offset),
                divide_(offset, shape_.bytes)};
    }

    std::size_t slot_of(const pool_chunk* c, const void* p) const noexcept
    {
        return divide_(static_cast<std::size_t>(static_cast<const std::byte*>(p) - c->slots),
                       shape_.bytes);
    }
    std::byte* slot_address(const pool_chunk* c, std::size_t slot) const noexcept
    {
        return c->slots + slot * shape_.bytes;
    }

    /// The smallest chunk that the pool takes, and the bytes of a whole chunk.
    constexpr layout least_chunk() const noexcept
    {
        if constexpr (gridded)
            return {grid_.least_bytes(shape_), grid_.align()};
        else
            return {bytes_for(shape_, 1), alignof(pool_chunk)};
    }
    constexpr std::size_t whole_chunk() const noexcept
    {
        if constexpr (gridded)
            return grid_.whole_bytes();
        else
            return least_chunk().bytes;
    }

    /// The part of `bytes` that whole blocks need; at least the bytes of the least chunk. Without a
    /// limit a list pool takes all of a step of its growth.
    std::size_t useful_bytes(std::size_t bytes, bool limited) const noexcept
    {
        if constexpr (gridded)
            return grid_.useful_bytes(bytes, shape_);
        else if (!limited)
            return bytes;
        chunk_plan const plan = chunk_plan::of(bytes, shape_.bytes, shape_.align, header, 0);
        return std::clamp(bytes_for(shape_, plan.count), least_chunk().bytes, bytes);
    }

    /// Most slots of a chunk, including the slots that its header covers.
    constexpr std::size_t slots_max() const noexcept
    {
        if constexpr (gridded)
            return grid_.slots(shape_);
        else
            return std::size_t{1} << 31;
    }

    /// At the front of `bytes` from `at` on, of which it leaves the rest.
    pool_chunk* make_chunk(std::byte* at, std::size_t bytes) const noexcept
    {
        pool_chunk* c;
        if constexpr (gridded) {
            c = grid_.make_chunk(at, bytes, shape_, header);
        } else {
            chunk_plan const plan =
                chunk_plan::of(bytes, shape_.bytes, shape_.align, header,
                               reinterpret_cast<std::uintptr_t>(at) % shape_.align);
            c = ::new (at) pool_chunk{};
            c->slots = at + plan.slots_offset;
            c->slots_end = c->slots + plan.count * shape_.bytes;
            c->count = static_cast<std::uint32_t>(plan.count);
        }
        c->template uncarve<watched>(header);
        return c;
    }

    /// Bytes of the first chunk in a range of `bytes`.
    constexpr std::size_t bytes_of_chunk(std::size_t bytes) const noexcept
    {
        if constexpr (gridded)
            return grid_.bytes_of_chunk(bytes, shape_);
        else
            return bytes;
    }

    /// Offset in a header of the data after the header's own bitmaps: the same in all chunks.
    std::size_t behind_maps(pool_chunk* c) const noexcept
    {
        std::size_t const slots = gridded ? slots_max() : c->count;
        return sizeof(pool_chunk) +
               own_maps * pool_chunk::words_for(slots) * sizeof(pool_chunk::word);
    }

private:
    slot_shape shape_;
    [[no_unique_address]] divider divide_;
    [[no_unique_address]] grid grid_;
};

} // namespace mallard

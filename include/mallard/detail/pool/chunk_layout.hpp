// The layout of a pool's chunks, that is, where the header and the slots are.
#pragma once

#include <mallard/detail/pool/pool_chunk.hpp>
#include <mallard/options.hpp>

namespace mallard {

/// Size and alignment of a pool's blocks.
struct slot_shape {
    std::size_t bytes;
    std::size_t align;

    /// Rounds `bytes` up to a multiple of `align`, and to at least `least`, a power of two. An
    /// `align` of 0 stands for the natural alignment, the largest power of two up to 16 that
    /// divides `bytes`. Stops the process if `align` is not a power of two, as `layout` does.
    static constexpr slot_shape of(std::size_t bytes, std::size_t align, std::size_t least) noexcept
    {
        bytes = align_up(std::clamp(bytes, least, bytes_max + 1), least);
        if (align == 0)
            align = std::min(bytes & (~bytes + 1), alignof(std::max_align_t));
        if (!is_power_of_two(align)) [[unlikely]]
            fatal_alignment(align);
        align = std::clamp(align, least, bytes_max / 2 + 1);
        return {align_up(bytes, align), align};
    }
};

/// Divides by a constant with one multiplication:
/// (n + 1) * floor((2^64 - 1) / d) / 2^64 == n / d while n * d < 2^64,
/// which holds for offsets in 48 bits of address space and d below 2^16.
class slot_divider {
public:
    constexpr explicit slot_divider(std::size_t divisor) noexcept
        : reciprocal_(std::numeric_limits<std::size_t>::max() / divisor)
    {
    }
    constexpr std::size_t operator()(std::size_t offset, std::size_t divisor) const noexcept
    {
        __extension__ using wide = unsigned __int128;
        if (divisor >= 1 << 16) [[unlikely]]
            return offset / divisor;
        return static_cast<std::size_t>(static_cast<wide>(offset + 1) * reciprocal_ >> 64);
    }

private:
    std::size_t reciprocal_;
};

/// Divides with a division instruction, for pools that rarely divide. Needs no precomputed number.
struct plain_divider {
    constexpr explicit plain_divider(std::size_t) noexcept {}
    constexpr std::size_t operator()(std::size_t offset, std::size_t divisor) const noexcept
    {
        return offset / divisor;
    }
};

/// Chunks that begin with their header, at any address. A pool finds the chunk of a block by
/// searching its tree of chunks. `Header` describes what the header of each chunk contains.
template <header_shape Header>
class plain_chunks {
public:
    /// Makes the layout. The two other parameters, wish and limit, are not used, because each
    /// request to the source is for one chunk.
    constexpr explicit plain_chunks(slot_shape shape, std::size_t = 0, std::size_t = 0) noexcept
        : shape_(shape)
    {
    }

    constexpr slot_shape shape() const noexcept { return shape_; }
    /// Returns the bytes of a chunk that holds `count` blocks, whatever the address of the chunk
    /// is.
    static constexpr std::size_t bytes_for(slot_shape shape, std::size_t count) noexcept
    {
        return saturating_add(pool_chunk::header_bytes(count, Header) + shape.align,
                              saturating_mul(count, shape.bytes));
    }
    /// Returns the layout of the smallest chunk that a pool requests.
    constexpr layout least_chunk() const noexcept
    {
        return {bytes_for(shape_, 1), alignof(pool_chunk)};
    }
    constexpr std::size_t whole_bytes() const noexcept { return least_chunk().bytes; }

    /// Returns the part of `bytes` that a chunk uses. Without a limit, a chunk uses all of `bytes`.
    /// Under a limit, it uses only the part that holds whole blocks, but at least the bytes of the
    /// smallest chunk.
    constexpr std::size_t useful_bytes(std::size_t bytes, bool is_limited) const noexcept
    {
        if (!is_limited)
            return bytes;
        return std::clamp(bytes_for(shape_, fit(bytes, 0).count), least_chunk().bytes, bytes);
    }
    /// Returns the size of the first chunk in a range of `bytes` bytes.
    static constexpr std::size_t bytes_of_chunk(std::size_t bytes) noexcept { return bytes; }

    /// Writes the header of a chunk of `bytes` bytes that begins at `at`.
    pool_chunk* make_chunk(std::byte* at, std::size_t bytes) const noexcept
    {
        placement const p = fit(bytes, reinterpret_cast<std::uintptr_t>(at) % shape_.align);
        auto* const c = ::new (at) pool_chunk{};
        c->slots = at + p.slots_offset;
        c->slots_end = c->slots + p.count * shape_.bytes;
        c->count = static_cast<std::uint32_t>(p.count);
        return c;
    }

    struct placement {
        std::size_t slots_offset;
        std::size_t count; // 0: the chunk is too small for one slot
    };
    /// Computes where the slots of a chunk of `bytes` bytes lie. `address` is the address of the
    /// chunk modulo the alignment of the slots. Chunks have only the alignment of their header,
    /// because with a larger one, a small source would lose bytes between two chunks.
    constexpr placement fit(std::size_t bytes, std::size_t address) const noexcept
    {
        std::size_t const stride = shape_.bytes;
        std::size_t count = std::min(bytes / stride, std::size_t{1} << 31);
        for (;;) {
            std::size_t const header = pool_chunk::header_bytes(count, Header);
            std::size_t const offset = align_up(address + header, shape_.align) - address;
            if (count == 0 || offset + count * stride <= bytes)
                return {offset, count};
            std::size_t const excess = offset + count * stride - bytes;
            // Removes few slots at a time, because if one slot is removed, the bitmap and the
            // padding may get shorter too.
            count -= std::min(count, std::max(excess / (2 * stride + 16), std::size_t{1}));
        }
    }

private:
    slot_shape shape_;
};

/// Chunks whose header is found by masking the address of any of their blocks. A chunk is
/// aligned to `align()`, a power of two, and all its blocks begin within the first `align()`
/// bytes.
///
/// For small blocks, `align()` is the size of a whole chunk, and the header takes the place of some
/// slots. In up to 64 adjacent chunks, the offset of the header increases by 1 KiB from chunk to
/// chunk. Headers at the same offset would compete for the same few cache sets
/// (docs/decisions/0003-coloured-headers.md).
///
/// For blocks above `coloured_stride_max`, and in pools with few chunks, the header comes first.
/// Such a chunk may be shorter than others if a limit or a source has no more memory. A block of
/// `alone_min` bytes or more has a chunk for itself, which has the size of the header and the
/// block.
template <header_shape Header>
class masked_chunks {
public:
    /// Makes the layout. `wish` is the size of a chunk in bytes, if a chunk of that size holds
    /// enough blocks. `limit` is the maximum size of all chunks together.
    constexpr masked_chunks(slot_shape shape, std::size_t wish, std::size_t limit) noexcept
        : shape_(shape), align_(chunk_bytes(wish, limit))
    {
        std::size_t const several =
            saturating_add(first_slot(blocks_min * 2), saturating_mul(blocks_min, shape.bytes));
        if (several > align_ && shape.bytes >= alone_min &&
            shape.align <= shape.bytes / blocks_min) {
            first_ = first_slot(1);
            align_ = std::bit_ceil(first_ + 1);
            whole_ = align_up(first_ + shape.bytes, align_);
            return;
        }
        align_ = std::max(align_, std::bit_ceil(std::min(several, bytes_max / 2)));
        whole_ = std::min(align_, std::max(limit, step));
        first_ = first_slot(whole_ / shape.bytes);
        std::size_t const used = pool_chunk::header_bytes(slots_max(), Header);
        if (shape.bytes <= coloured_stride_max && slots_max() >= colours &&
            limit / coloured_chunks_min >= align_ && used <= align_ / 3) {
            std::size_t const room = whole_ / shape.bytes * shape.bytes - used;
            offset_mask_ = (std::bit_floor(std::min((room >> step_log2) + 1, colours)) - 1)
                           << step_log2;
            number_shift_ = std::countr_zero(align_) - step_log2;
        }
        if (offset_mask_ != 0)
            first_ = 0;
    }

    constexpr slot_shape shape() const noexcept { return shape_; }
    static constexpr std::size_t bytes_for(slot_shape shape, std::size_t count) noexcept
    {
        return plain_chunks<Header>::bytes_for(shape, count);
    }
    constexpr std::size_t align() const noexcept { return align_; }
    constexpr layout least_chunk() const noexcept
    {
        return {first_ == 0 ? align_ : saturating_add(first_, shape_.bytes), align_};
    }
    /// Returns the size of a chunk of full length.
    constexpr std::size_t whole_bytes() const noexcept { return whole_; }
    /// Returns the part of `bytes` that chunks can use. Requires at least the bytes of
    /// `least_chunk()`.
    constexpr std::size_t useful_bytes(std::size_t bytes, bool) const noexcept
    {
        return bytes >= whole_ ? bytes / whole_ * whole_ : bytes - (bytes - first_) % shape_.bytes;
    }
    /// Returns the size of the first chunk in a range of `bytes` bytes. The chunk is the whole
    /// range, unless a second chunk fits in the range.
    constexpr std::size_t bytes_of_chunk(std::size_t bytes) const noexcept
    {
        std::size_t const next = align_up(whole_, align_);
        return bytes > next && bytes - next >= least_chunk().bytes ? next : bytes;
    }
    /// Returns the number of slots in a chunk of full length, including the slots that the header
    /// covers.
    constexpr std::size_t slots_max() const noexcept
    {
        std::size_t const room = whole_ - std::min(first_, whole_);
        return std::max(first_ / shape_.bytes + room / shape_.bytes, std::size_t{1});
    }

    std::size_t offset_of(const void* block) const noexcept
    {
        return reinterpret_cast<std::uintptr_t>(block) & (align_ - 1);
    }
    /// Returns the header of the chunk that begins at `chunk`.
    pool_chunk* header_in(std::byte* chunk) const noexcept
    {
        return reinterpret_cast<pool_chunk*>(chunk + header_offset(chunk));
    }

    /// Writes the header of a chunk that begins at `at` and has at most `bytes` bytes. The slot
    /// number of a block is its offset in the chunk divided by the bytes of a block, rounded down.
    /// To make this possible, slot 0 begins less than a block after the start of the chunk. Slots
    /// that the header covers have numbers too, but are never allocated.
    pool_chunk* make_chunk(std::byte* at, std::size_t bytes) const noexcept
    {
        std::size_t const stride = shape_.bytes, offset = header_offset(at);
        auto* const c = ::new (at + offset) pool_chunk{};
        std::size_t count = slots_max();
        std::size_t hole_begin = 0, hole_end = first_ / stride;
        if (first_ == 0) {
            hole_begin = offset / stride;
            hole_end = (offset + pool_chunk::header_bytes(count, Header) + stride - 1) / stride;
        } else {
            count = std::min(count, hole_end + (bytes - first_) / stride);
        }
        c->slots = at + first_ % stride;
        c->slots_end = c->slots + count * stride;
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
    // Coloured headers (at a different offset in each chunk) are used only if the limit allows at
    // least this number of chunks. A chunk with such a header must have its full length, so the end
    // of the limit, which is less than one chunk, stays unused.
    static constexpr std::size_t coloured_chunks_min = 32;
    // A chunk that holds several blocks has at least `blocks_min` blocks, and loses less than one
    // block at its end.
    static constexpr std::size_t blocks_min = 15;
    // Each block of at least this size has a chunk for itself. The header and the alignment of that
    // chunk cost less than the end of a chunk with several blocks, where up to one block is lost.
    static constexpr std::size_t alone_min = 16384;

    /// Returns the size of a chunk. It is `wish`, or under a low limit about an eighth of the
    /// limit. If the limit is below `wish` and a header would use more than an eighth of a chunk,
    /// one chunk gets the whole limit, because the last of several chunks could be wasted.
    constexpr std::size_t chunk_bytes(std::size_t wish, std::size_t limit) const noexcept
    {
        std::size_t const most = std::max(wish, step);
        std::size_t const least = std::bit_ceil(std::clamp(limit, step, std::size_t{8192}));
        std::size_t const bytes = std::min(most, std::max(std::bit_floor(limit / 8), least));
        if (limit <= most && first_slot(bytes / shape_.bytes) > bytes / 8)
            return std::bit_ceil(std::max(limit, step));
        return bytes;
    }
    /// Returns the offset of the first slot after a header for `count` slots.
    constexpr std::size_t first_slot(std::size_t count) const noexcept
    {
        return align_up(pool_chunk::header_bytes(count, Header), shape_.align);
    }
    std::size_t header_offset(std::byte* chunk) const noexcept
    {
        return reinterpret_cast<std::uintptr_t>(chunk) >> number_shift_ & offset_mask_;
    }

    slot_shape shape_;
    std::size_t align_;
    std::size_t whole_ = 0;
    int number_shift_ = 0; // shifts a chunk's number to the bits of its header's offset
    std::size_t offset_mask_ = 0;
    std::size_t first_ = 0; // offset of the first block; 0 if it differs by chunk
};

/// Whether the header of a chunk is found by masking the address of a block. This is false for a
/// pool that never grows, because its only chunk may have any address. It is also false for a pool
/// with free lists, unless `owner_of` has to find the owners of blocks, because such a pool
/// searches its tree of chunks only on slow paths.
template <pool_options Options>
inline constexpr bool found_by_mask =
    (Options.order == reuse::ordered || Options.owned) && !Options.grow.is_single();

template <pool_options Options>
inline constexpr std::size_t bitmaps_of = Options.checks == check::on ? 2 : 1;

template <pool_options Options, header_shape Tail>
using chunks_of =
    std::conditional_t<found_by_mask<Options>,
                       masked_chunks<header_shape{bitmaps_of<Options> + Tail.maps, Tail.bytes}>,
                       plain_chunks<header_shape{bitmaps_of<Options> + Tail.maps, Tail.bytes}>>;

/// How the chunks of one pool are laid out. All chunks of a pool have the same layout, which never
/// changes. `Tail` describes what the headers contain in addition to the free bits and, with
/// `check::on`, the live bits.
template <pool_options Options, header_shape Tail = header_shape{0}>
class chunk_layout : public chunks_of<Options, Tail> {
    using base = chunks_of<Options, Tail>;

    using divider =
        std::conditional_t<Options.order == reuse::ordered, slot_divider, plain_divider>;

public:
    static constexpr bool checks_on = Options.checks == check::on;
    static constexpr bool single_chunk = Options.grow.is_single();
    static constexpr bool by_mask = found_by_mask<Options>;
    static constexpr std::size_t own_maps = bitmaps_of<Options>;
    static constexpr header_shape header{own_maps + Tail.maps, Tail.bytes};

    /// Makes the layout. `limit` is the limit of the pool's growth, in bytes.
    constexpr chunk_layout(slot_shape shape, std::size_t limit) noexcept
        : base(shape, Options.chunk, limit), divide_(shape.bytes)
    {
    }

    struct place {
        pool_chunk* c;
        std::size_t slot;
    };
    /// Returns the chunk and slot of a block that lies in a chunk of this layout.
    [[gnu::always_inline]] place place_of(void* block) const noexcept
        requires by_mask
    {
        std::size_t const offset = this->offset_of(block);
        return {this->header_in(static_cast<std::byte*>(block) - offset),
                divide_(offset, this->shape().bytes)};
    }

    std::size_t slot_of(const pool_chunk* c, const void* p) const noexcept
    {
        return divide_(static_cast<std::size_t>(static_cast<const std::byte*>(p) - c->slots),
                       this->shape().bytes);
    }
    std::byte* slot_address(const pool_chunk* c, std::size_t slot) const noexcept
    {
        return c->slots + slot * this->shape().bytes;
    }

    /// Makes a chunk in the first part of the `bytes` bytes at `at`.
    pool_chunk* make_chunk(std::byte* at, std::size_t bytes) const noexcept
    {
        pool_chunk* const c = base::make_chunk(at, bytes);
        reset_slots(*c);
        return c;
    }

    /// Resets every slot of `c`, as if no block had ever been carved.
    void reset_slots(pool_chunk& c) const noexcept
    {
        c.carved = c.partial_words = c.hint = 0;
        c.carve_to(0, checks_on);
        auto* const in_front = reinterpret_cast<std::byte*>(&c);
        std::byte* first = c.slots;
        if (c.hole_begin != c.hole_end) {
            if (first < in_front)
                poison<checks_on>(first, static_cast<std::size_t>(in_front - first));
            first = c.hole_begin == 0 ? slot_address(&c, c.hole_end)
                                      : in_front + pool_chunk::header_bytes(c.count, header);
        }
        if (first < c.slots_end)
            poison<checks_on>(first, static_cast<std::size_t>(c.slots_end - first));
    }

private:
    [[no_unique_address]] divider divide_;
};

} // namespace mallard

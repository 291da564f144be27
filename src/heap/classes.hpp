// Size classes of the malloc engine, and the shape of the slabs of each class.
#pragma once

#include <mallard/detail/base/size_class.hpp>

#include <array>

namespace mallard::engine {

/// The size of a slice, the engine's unit of address space. The slice map has one entry for each
/// slice.
inline constexpr std::size_t slice_bytes = std::size_t{1} << 14;

/// The block sizes are 16, 32, ..., 128, 160, 192, 224, 256, 320, ... If a request has more than 64
/// bytes, its block is at most a quarter larger than the request, and on average a tenth larger.
/// All block sizes are multiples of 16, because malloc guarantees that alignment. If you change
/// this line, also change the numbers in heap.hpp, rust_api.cpp, mallard/c/malloc.h and the crate
/// mallard-malloc that follow from it.
using block_class = size_classes<16, 2>;

/// The largest block size for which thread caches keep a list.
inline constexpr std::size_t block_bytes_max = std::size_t{32} << 20;
inline constexpr std::size_t class_count = block_class::of(block_bytes_max) + 1;

/// Up to this size, all blocks of a class have the same size. A larger block has exactly as many
/// slices as it needs, and the list of its class holds at most one block.
inline constexpr std::size_t classed_bytes_max = std::size_t{1} << 20;
inline constexpr std::size_t classed_count = block_class::of(classed_bytes_max) + 1;

/// The first class whose blocks are spans of whole slices. The blocks of smaller classes share a
/// slab.
inline constexpr std::size_t span_class_first = block_class::of(slice_bytes);

struct alignas(32) class_shape {
    std::uint64_t reciprocal = 0; ///< 2^64 / bytes, rounded up
    std::uint32_t bytes = 0;
    std::uint32_t slices = 0;    ///< number of slices in a slab
    std::uint32_t capacity = 0;  ///< number of blocks in a slab
    std::uint16_t limit = 0;     ///< largest number of blocks in a list of a new thread cache
    std::uint16_t limit_max = 0; ///< largest number of blocks in any list

    /// Returns whether all blocks of this class have the same size. A block of a larger class has
    /// exactly as many slices as it needs.
    constexpr bool is_classed() const noexcept { return bytes <= classed_bytes_max; }

    /// Returns how many bytes of a block a caller may use. In a span, a caller may use all bytes of
    /// the slices. Requires `is_classed()`.
    constexpr std::size_t usable_bytes() const noexcept
    {
        return capacity == 1 ? slices * slice_bytes : bytes;
    }

    /// Returns a mask of the address bits that are 0 at the start of every block of this class. The
    /// first block of a slab starts at a multiple of `slice_bytes`, and the others follow without
    /// gaps.
    constexpr std::uint16_t unaligned_bits() const noexcept
    {
        std::size_t const align = std::size_t{bytes} & -std::size_t{bytes};
        return static_cast<std::uint16_t>((align < slice_bytes ? align : slice_bytes) - 1);
    }

    /// Returns whether a block begins at this offset in a slab. Tests divisibility without a
    /// division, as described by Lemire, Kaser and Kurz ("Faster remainder by direct computation").
    constexpr bool begins(std::size_t offset) const noexcept
    {
        return offset * reciprocal < reciprocal;
    }
};

namespace detail {

/// Returns the number of slices in a slab. For blocks of less than a slice, this is the smallest
/// number that has room for eight blocks and wastes at most 2.5 % of the slab.
constexpr std::uint32_t slab_slices(std::size_t bytes) noexcept
{
    if (bytes >= slice_bytes)
        return static_cast<std::uint32_t>((bytes + slice_bytes - 1) / slice_bytes);
    std::uint32_t slices = 1;
    while (slices * slice_bytes / bytes < 8 ||
           slices * slice_bytes % bytes * 40 > slices * slice_bytes)
        slices += 1;
    return slices;
}

constexpr std::size_t at_most(std::size_t count, std::size_t bytes, std::size_t of) noexcept
{
    return count * of <= bytes ? count : bytes / of;
}

constexpr class_shape shape(std::size_t index) noexcept
{
    std::size_t const bytes = block_class::bytes(index);
    std::uint32_t const slices = slab_slices(bytes);
    class_shape s{.reciprocal = ~std::uint64_t{0} / bytes + 1,
                  .bytes = static_cast<std::uint32_t>(bytes),
                  .slices = slices};
    s.capacity =
        static_cast<std::uint32_t>(bytes >= slice_bytes ? 1 : slices * slice_bytes / bytes);
    std::size_t const first = at_most(16, 4096, bytes);
    s.limit = static_cast<std::uint16_t>(bytes >= slice_bytes ? 0 : first == 0 ? 1 : first);
    // A list of small blocks may hold up to 1 MiB. A list of spans may hold up to 64 KiB, but at
    // least one span.
    std::size_t const most =
        bytes < slice_bytes ? at_most(32768, std::size_t{1} << 20, bytes) : 65536 / bytes;
    s.limit_max = static_cast<std::uint16_t>(most == 0 ? 1 : most);
    return s;
}

} // namespace detail

constexpr std::size_t slices_for(std::size_t bytes) noexcept
{
    return (bytes + slice_bytes - 1) / slice_bytes;
}

inline constexpr auto shapes = [] {
    std::array<class_shape, class_count> all{};
    for (std::size_t i = 0; i < class_count; ++i)
        all[i] = detail::shape(i);
    return all;
}();

static_assert(shapes[class_count - 1].bytes == block_bytes_max);
static_assert(shapes[span_class_first].bytes == slice_bytes);

// --- class offsets -------------------------------------------------------------------

/// The byte offset of a size class's free list in `thread_cache`. The offset is a multiple of 16,
/// and at least 64, because the first 64 bytes of a thread cache are other members. The type is as
/// wide as an address, which saves an instruction in `free`.
using class_offset = std::size_t;
inline constexpr class_offset class_offset_unit = 16;
inline constexpr class_offset offsets_before_lists = 4;
inline constexpr class_offset class_offset_end = 2048;

constexpr class_offset offset_of_class(std::size_t index) noexcept
{
    return static_cast<class_offset>((index + offsets_before_lists) * class_offset_unit);
}
constexpr std::size_t class_of_offset(class_offset offset) noexcept
{
    return offset / class_offset_unit - offsets_before_lists;
}

/// The largest size, in bytes, whose class offset is looked up in a table. Element i of the table
/// is the class offset for sizes from 16 * i - 15 to 16 * i bytes.
inline constexpr std::size_t looked_up_max = 1024;
inline constexpr auto offsets_by_16 = [] {
    std::array<std::uint16_t, looked_up_max / 16 + 1> all{};
    for (std::size_t i = 0; i < all.size(); ++i)
        all[i] = static_cast<std::uint16_t>(offset_of_class(block_class::of(16 * i)));
    return all;
}();

/// Returns the class offset of the first class whose blocks have at least `bytes` bytes and start
/// at multiples of `align`. Requires that `align` is at most `slice_bytes`, the alignment of a
/// slab's first block.
inline class_offset offset_of_aligned(std::size_t bytes, std::size_t align) noexcept
{
    std::size_t index = block_class::of(bytes > align ? bytes : align);
    while (index < span_class_first && block_class::align(index) < align)
        index += 1;
    return offset_of_class(index);
}

} // namespace mallard::engine

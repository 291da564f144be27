// Map entries and slab records, which describe what a slice (16 KiB of address space) is part of,
// and which thread cache or heap owns the slice.
#pragma once

#include "classes.hpp"

#include <atomic>
#include <cstdint>

namespace mallard::engine {

struct thread_cache;

/// The map entry of a slice. Its bits are { number of the owner : 21 | class offset : 11 }.
///
///     0                     free, or never used
///     owner, class offset   a slab, or the first slice of a span, of that thread cache
///     0, large              the first slice of a large block
///     0, sampled            the first slice of a sampled block (see sample.hpp)
///     0, inside             any later slice of a span, a large block or a sampled block
///
/// In the memory of a heap (see heap.hpp), `large` and `inside` entries name the heap as owner,
/// too. A slice that the heap holds and does not use has the entry {heap, unused}.
///
/// One comparison decides whether a block belongs to a thread cache. The tag of a cache is {number
/// of the cache, 0}. So `entry ^ tag` is a class offset if the cache owns the block, and a larger
/// number otherwise.
///
/// A thread writes only entries of memory that it holds. While a thread holds a block, the class in
/// the block's entry does not change. The owner changes only when another thread reclaims the slab
/// of a thread that has exited. The entry of any other address may change right after it was read.
using entry = std::uint32_t;

inline constexpr unsigned owner_shift = 11;
inline constexpr entry owner_max = (entry{1} << (32 - owner_shift)) - 1;
/// The tag of trap caches, in which every fast path of malloc and free fails. No entry has this
/// owner.
inline constexpr entry decoy_tag = owner_max << owner_shift;
/// The bit that is set in the owner numbers of heaps, and clear in the owner numbers of thread
/// caches.
inline constexpr entry heap_bit = entry{1} << 31;
inline constexpr entry thread_owner_max = owner_max / 2;
inline constexpr entry entry_sampled = 0x7c0;
inline constexpr entry entry_unused = 0x7d0;
inline constexpr entry entry_inside = 0x7e0;
inline constexpr entry entry_large = 0x7f0;

constexpr entry owner_of(entry e) noexcept
{
    return e >> owner_shift;
}
constexpr class_offset offset_in(entry e) noexcept
{
    return e & (class_offset_end - 1);
}
/// Returns the entry of a slab or span whose owner has this tag.
constexpr entry entry_of(entry tag, class_offset offset) noexcept
{
    return tag | static_cast<entry>(offset);
}
constexpr bool is_heaps(entry e) noexcept
{
    return (e & heap_bit) != 0;
}
/// Returns the entry of every slice of a block except the first. `e` is the entry of the first
/// slice, or the tag of the block's owner.
constexpr entry inside_of(entry e) noexcept
{
    return (is_heaps(e) ? e & ~entry{class_offset_end - 1} : 0) | entry_inside;
}
constexpr bool is_class(entry e) noexcept
{
    return offset_in(e) - offset_of_class(0) < class_count * class_offset_unit;
}

/// The record of a slab, a span or a large block. Each slice has room for a record. The record of a
/// free slice has no meaning.
///
/// In a slab, `carved` is `used` plus the length of `free`. A block counts as used while the
/// program uses it, while it is in the list of a thread cache, while its free is deferred, and
/// while it is in a remote batch.
struct alignas(64) slab {
    std::atomic<thread_cache*> owner{nullptr};
    std::byte* start = nullptr;
    void* free = nullptr; ///< list of free blocks, linked like the lists of a thread cache
    std::uint32_t used = 0;
    std::uint32_t carved = 0; ///< number of blocks, from the first on, that were ever used
    std::uint32_t slices = 0;
    std::uint32_t back = 0; ///< in a later slice's record, distance to the first slice
    slab* next = nullptr;   ///< next in the owner's list of slabs of this class with free blocks
    slab* previous = nullptr;
    std::uint8_t index = 0;         ///< size class index
    bool listed = false;            ///< whether the slab is in the list that `next` links
    std::uint16_t chunk_slices = 0; ///< length of the heap's chunk that begins here
    std::uint32_t chunk_next = 0;   ///< in that case, the next chunk of the heap

    std::size_t usable_bytes() const noexcept
    {
        return index >= span_class_first ? slices * slice_bytes : shape().bytes;
    }
    const class_shape& shape() const noexcept { return shapes[index]; }
    std::size_t offset_of(const void* p) const noexcept
    {
        return static_cast<std::size_t>(static_cast<const std::byte*>(p) - start);
    }
};
static_assert(sizeof(slab) == 64);

} // namespace mallard::engine

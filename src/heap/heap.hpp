// Heaps, which are allocators that a program creates, and that can free all their blocks together.
//
// A heap is a thread cache without a thread. Its slabs are in chunks that only this heap uses, and
// no slab moves to or from another cache. So `release` returns whole chunks without looking at
// blocks.
//
//   confined   one thread allocates, without a lock
//   shared     any thread allocates, under a lock
//
// Any thread frees and reallocates blocks of any heap, because each slice (16 KiB of address space)
// has a map entry that names the heap which owns the blocks of the slice. A thread that must not
// use the heap's lists sends the block to the heap's inbox immediately. Blocks of heaps are not
// collected in batches, because the heap might be released before a batch is sent. Sending would
// then write to freed memory.
//
// tests/models/engine_release.pml models this for Spin.
#pragma once

#include "found_block.hpp"
#include "limits.hpp"
#include "slice_heap.hpp"
#include "thread_cache.hpp"

#include <mallard/c/malloc.h>

namespace mallard::engine {

/// The number of bins, which sort the free spans of a heap by length. There is a bin for each
/// length from 1 to 7 slices, then one for 8 to 15 slices, one for 16 to 31, and so on.
inline constexpr std::size_t bin_count = 14;
inline constexpr std::uint32_t no_chunk = ~std::uint32_t{0};
inline constexpr std::uint32_t chunk_slices_first = (std::uint32_t{64} << 10) / slice_bytes;
inline constexpr std::uint32_t chunk_slices_max = (std::uint32_t{4} << 20) / slice_bytes;

/// A range of adjacent blocks in a slab that were never allocated or written. The slab counts these
/// blocks as used. The public header heap.hpp allocates from such a range.
using bump_range = mallard_bump_range;
// A bump range is as long as a unit of class offsets. So the class offset of a class leads both to
// its free list and to its bump range.
static_assert(sizeof(bump_range) == class_offset_unit);
static_assert(MALLARD_FRESH_CLASSES == span_class_first);

inline std::size_t bytes_of(const bump_range& range) noexcept
{
    return static_cast<std::size_t>(range.end - range.next);
}

/// A heap. The memory of a destroyed heap is reused for another heap, but never freed, so that
/// remote frees that arrive late still find an inbox.
///
/// The chunk list identifies a chunk by its first slice. The slab records of the first and last
/// slice of a free span store the span's length. Adjacent free spans of one chunk are merged.
struct heap : thread_cache {
    mallard_fresh fresh{};                   ///< the owner thread, and the bump ranges
    std::uint32_t chunks = no_chunk;         ///< newest chunk; linked by slab::chunk_next
    std::uint32_t step = chunk_slices_first; ///< slices of the next chunk
    std::uint32_t bins_used = 0;             ///< bit i is set if bins[i] has a free span
    slab* bins[bin_count] = {};

    // Other threads use the members below and the inbox:
    /// The lock of a shared heap. Protects the members above. (If the heap is confined, only its
    /// thread uses those members.)
    os::lock lock;
    os::lock large_lock;   ///< protects `large`
    slab* large = nullptr; ///< blocks that are not in chunks
    limits limit;          ///< limits of the bytes in chunks and large blocks
    std::atomic<std::size_t> held_max{0};

    heap* next_unused = nullptr; ///< next in the list of destroyed heaps; `this` in a live heap
    heap* next_of_all = nullptr;
};

/// Returns the thread that a heap is confined to, or null if the heap is shared. Any thread may
/// call this function.
inline atomic_ref<const void*> thread_of(const heap& h) noexcept
{
    return atomic_ref(const_cast<const void*&>(h.fresh.thread));
}
inline bool is_confined_to_caller(const heap& h) noexcept
{
    return thread_of(h).load(std::memory_order_relaxed) == this_thread();
}

/// Returns the newest of all heaps. All heaps, including destroyed heaps, are linked by
/// `next_of_all`.
heap* all_heaps() noexcept;

/// Creates a heap that is shared, or confined to the calling thread. Returns null if there is no
/// memory.
heap* make_heap(bool shared) noexcept;
/// Frees all blocks and destroys the heap. The next `make_heap` reuses `h`.
void unmake(heap& h) noexcept;

[[gnu::noinline]] void* allocate_slowly(heap& h, std::size_t bytes, std::size_t align = 1,
                                        bool* zero = nullptr) noexcept;

/// Allocates from the free list or the bump range of a class. Returns null if both are empty.
[[gnu::always_inline]] inline void* allocate_cached(heap& h, class_offset offset) noexcept
{
    if (h.list_at(offset).head != nullptr)
        return pop(&h, offset);
    bump_range& range = h.fresh.of_class[class_of_offset(offset)];
    char* const block = range.next;
    if (block == range.end) [[unlikely]]
        return nullptr;
    range.next = block + shapes[class_of_offset(offset)].bytes;
    clear(block);
    return block;
}

[[gnu::always_inline]] inline void* allocate(heap& h, std::size_t bytes) noexcept
{
    if (bytes <= looked_up_max && is_confined_to_caller(h)) [[likely]]
        if (void* const block = allocate_cached(h, offsets_by_16[(bytes + 15) / 16])) [[likely]]
            return block;
    return allocate_slowly(h, bytes);
}
void* allocate_zeroed(heap& h, std::size_t bytes) noexcept;

/// Frees any block, as `deallocate(block)` does. This function is faster if the block belongs to
/// this heap.
void deallocate(heap& h, void* block) noexcept;

// The two functions below are for blocks that belong to a heap according to `find_block`.
void free_of_heap(found_block const& b, void* block) noexcept;
void* reallocate_of_heap(found_block const& b, void* block, std::size_t bytes) noexcept;

/// Free all blocks. `release` returns the memory to the slice heap, and `reset` retains the chunks.
/// Both take O(chunks + large blocks) time.
void release(heap& h) noexcept;
void reset(heap& h) noexcept;
/// Returns unused chunks to the slice heap while the heap holds more than `keep` bytes.
[[gnu::cold]] void trim(heap& h, std::size_t keep) noexcept;

/// Returns whether `p` points into the chunks or large blocks of the heap.
bool owns(const heap& h, const void* p) noexcept;

struct heap_numbers {
    std::size_t blocks_live = 0;
    std::size_t bytes_live = 0;
    std::size_t chunks = 0;
    std::size_t large_blocks = 0;
};
/// Counts the blocks of a heap in O(slabs) time.
[[gnu::cold]] heap_numbers count(heap& h) noexcept;

// --- the memory of heaps: heap_memory.cpp ----------------------------------------

span take_of(heap& h, std::size_t slices) noexcept;
void give_to(heap& h, slab& s) noexcept;
void free_chunks(heap& h) noexcept;
/// Marks all slices of all chunks as free.
void empty_chunks(heap& h) noexcept;
[[gnu::cold]] void trim_chunks(heap& h, std::size_t keep) noexcept;
/// Counts the used blocks of the heap's slabs. Blocks in free lists and blocks in the inbox count
/// as used, too.
[[gnu::cold]] heap_numbers count_chunks(const heap& h) noexcept;

/// Allocates a large block, which is a separate span outside of the chunks. Any thread may call
/// this function.
void* allocate_large(heap& h, std::size_t bytes, std::size_t align, bool* zero = nullptr) noexcept;
void free_large(heap& h, reservation& in, std::size_t slice) noexcept;
bool resize_large(heap& h, slab& s, std::size_t bytes) noexcept;
void free_all_large(heap& h) noexcept;

// --- around a fork: see guests.hpp --------------------------------------------------

[[gnu::cold]] void lock_heaps() noexcept;
[[gnu::cold]] void unlock_heaps() noexcept;
[[gnu::cold]] void reset_heaps() noexcept;

} // namespace mallard::engine

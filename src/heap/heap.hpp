// A heap of its own: a thread cache without a thread, whose slices are of chunks that it has for
// itself. No slab enters or leaves it, so all of it is freed by giving the chunks back.
//
//   confined   with one thread, which alone allocates, without a lock
//   shared     any thread allocates, behind a lock
//
// Any thread frees, and reallocates, by any call that takes a block: entries say which heap a
// block is of. What is freed by a thread that cannot touch the thread cache goes to its inbox at
// once, never into a parcel: that would be written to after its memory went with the heap.
#pragma once

#include "limits.hpp"
#include "requests.hpp"
#include "slice_heap.hpp"

#include <mallard/c/malloc.h>

namespace mallard::engine {

/// Spans of free slices are found by their length: 1, 2, ..., 7, from 8, from 16, ...
inline constexpr std::size_t bin_count = 14;
inline constexpr std::uint32_t no_chunk = ~std::uint32_t{0};
inline constexpr std::uint32_t chunk_slices_first = (std::uint32_t{64} << 10) / slice_bytes;
inline constexpr std::uint32_t chunk_slices_max = (std::uint32_t{4} << 20) / slice_bytes;

/// The blocks of a slab that were never given out, all of them: they count as used, and are
/// the list that a thread cache would make of them, but nobody has written it.
using bump_range = mallard_stretch;
static_assert(sizeof(bump_range) == class_offset_unit); // so that a class offset leads to both
static_assert(MALLARD_FRESH_CLASSES == span_class_first);

inline std::size_t bytes_of(const bump_range& s) noexcept
{
    return static_cast<std::size_t>(s.end - s.next);
}

/// Type-stable, like all fronts: a late message finds an inbox.
///
/// A chunk is known by the record of its first slice; a free span by those of its first and
/// last, and by the entries of its slices. Two spans that meet become one, within a chunk.
struct heap : thread_cache {
    mallard_fresh fresh{};
    std::uint32_t chunks = no_chunk;         ///< newest first; see chunk_next
    std::uint32_t step = chunk_slices_first; ///< slices of the next chunk
    std::uint32_t bins_used = 0;             ///< bit i: bins[i] has a span
    slab* bins[bin_count] = {};

    // What other threads may touch, as the inbox.
    os::lock lock;         ///< of a shared heap, over all that a confined one's thread may touch
    os::lock large_lock;   ///< over `large`
    slab* large = nullptr; ///< blocks that are no part of chunks
    limits bounds;         ///< of bytes in chunks and large blocks
    std::atomic<std::size_t> held_max{0};

    heap* next_idle = nullptr;
    heap* next_of_all = nullptr;
};

/// What a thread is known by.
inline const void* this_thread() noexcept
{
    return __builtin_thread_pointer();
}

/// The thread that it is with; null: it is shared. Others ask too, of a heap that is not
/// theirs.
inline std::atomic_ref<const void*> holder_of(const heap& h) noexcept
{
    return std::atomic_ref(const_cast<const void*&>(h.fresh.thread));
}
inline bool is_with_caller(const heap& h) noexcept
{
    return holder_of(h).load(std::memory_order_relaxed) == this_thread();
}

/// Of all heaps there are, in use or not, each linked by its `next_of_all`.
heap* all_heaps() noexcept;

/// Null: the system refuses.
heap* make_heap(bool shared) noexcept;
/// All its blocks are freed; the number is another heap's next.
void unmake(heap& h) noexcept;

[[gnu::noinline]] void* allocate_slowly(heap& h, std::size_t bytes, std::size_t align = 1,
                                        bool* zero = nullptr) noexcept;

/// Without asking anybody for more; null: there is none.
[[gnu::always_inline]] inline void* take_at_hand(heap& h, class_offset offset) noexcept
{
    if (h.list_at(offset).head != nullptr)
        return pop(&h, offset);
    bump_range& s = h.fresh.of_class[class_of_offset(offset)];
    char* const block = s.next;
    if (block == s.end) [[unlikely]]
        return nullptr;
    s.next = block + shapes[class_of_offset(offset)].bytes;
    clear(block);
    return block;
}

[[gnu::always_inline]] inline void* allocate(heap& h, std::size_t bytes) noexcept
{
    if (bytes <= looked_up_max && is_with_caller(h)) [[likely]]
        if (void* const block = take_at_hand(h, offsets_by_16[(bytes + 15) / 16])) [[likely]]
            return block;
    return allocate_slowly(h, bytes);
}
void* allocate_zeroed(heap& h, std::size_t bytes) noexcept;

/// As `deallocate(block)`, and quick where the block is this heap's.
void deallocate(heap& h, void* block) noexcept;

/// As those of requests.hpp, for blocks that `find` found to be a heap's.
void free_of_heap(found const& b, void* block) noexcept;
void* reallocate_of_heap(found const& b, void* block, std::size_t bytes) noexcept;

/// All blocks are freed; `release` gives the memory back to the slice heap, `reset` keeps that of
/// chunks. O(chunks + large blocks).
void release(heap& h) noexcept;
void reset(heap& h) noexcept;
/// Gives chunks back that are wholly free, as long as more than `keep` bytes are taken.
[[gnu::cold]] void trim(heap& h, std::size_t keep) noexcept;

/// Whether `p` points into its chunks or large blocks.
bool owns(const heap& h, const void* p) noexcept;

struct heap_numbers {
    std::size_t blocks_live = 0;
    std::size_t bytes_live = 0;
    std::size_t chunks = 0;
    std::size_t large_blocks = 0;
};
/// O(slabs).
[[gnu::cold]] heap_numbers count(heap& h) noexcept;

/// For `refill`: what is left of a slab becomes the stretch of its class, but for the first.
void* begin_bump_range(heap& h, slab& s) noexcept;

// --- its memory: heap_memory.cpp -------------------------------------------------

span take_of(heap& h, std::size_t slices) noexcept;
void give_to(heap& h, slab& s) noexcept;
void free_chunks(heap& h) noexcept;
/// All slices of all chunks are free, whatever was there.
void empty_chunks(heap& h) noexcept;
[[gnu::cold]] void trim_chunks(heap& h, std::size_t keep) noexcept;
/// Of the slabs in chunks: with callers, in lists, on the way.
[[gnu::cold]] heap_numbers count_chunks(const heap& h) noexcept;

/// A block of slices of its own, whoever asks.
void* allocate_large(heap& h, std::size_t bytes, std::size_t align, bool* zero = nullptr) noexcept;
void free_large(heap& h, reservation& in, std::size_t slice) noexcept;
bool resize_large(heap& h, slab& s, std::size_t bytes) noexcept;
void free_all_large(heap& h) noexcept;

// --- around fork ------------------------------------------------------------------

void lock_heaps() noexcept;
void unlock_heaps() noexcept;
void reset_heaps() noexcept;

} // namespace mallard::engine

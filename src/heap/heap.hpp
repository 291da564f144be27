// A heap of its own: a front without a thread, whose granules are of chunks that it has for
// itself. No slab enters or leaves it, so all of it is freed by giving the chunks back.
//
//   confined   with one thread, which alone allocates, without a lock
//   shared     any thread allocates, behind a lock
//
// Any thread frees, and reallocates, by any call that takes a block: entries say which heap a
// block is of. What is freed by a thread that cannot touch the front goes to its inbox at
// once, never into a parcel: that would be written to after its memory went with the heap.
#pragma once

#include "central.hpp"
#include "limits.hpp"
#include "requests.hpp"

#include <mallard/malloc.h>

namespace mallard::engine {

/// Runs of free granules are found by their length: 1, 2, ..., 7, from 8, from 16, ...
inline constexpr std::size_t bin_count = 14;
inline constexpr std::uint32_t no_chunk = ~std::uint32_t{0};
inline constexpr std::uint32_t chunk_granules_first = (std::uint32_t{64} << 10) / granule_bytes;
inline constexpr std::uint32_t chunk_granules_max = (std::uint32_t{4} << 20) / granule_bytes;

/// The blocks of a slab that were never given out, all of them: they count as used, and are
/// the list that a front would make of them, but nobody has written it.
using stretch = mallard_stretch;
static_assert(sizeof(stretch) == code_unit); // so that a code leads to both
static_assert(MALLARD_FRESH_CLASSES == run_class_first);

inline std::size_t bytes_of(const stretch& s) noexcept
{
    return static_cast<std::size_t>(s.end - s.next);
}

/// Type-stable, like all fronts: a late message finds an inbox.
///
/// A chunk is known by the record of its first granule; a free run by those of its first and
/// last, and by the entries of its granules. Two runs that meet become one, within a chunk.
struct heap : front {
    mallard_fresh fresh{};
    std::uint32_t chunks = no_chunk;           ///< newest first; see chunk_next
    std::uint32_t step = chunk_granules_first; ///< granules of the next chunk
    std::uint32_t bins_used = 0;               ///< bit i: bins[i] has a run
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
inline const void* here() noexcept
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
    return holder_of(h).load(std::memory_order_relaxed) == here();
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
[[gnu::always_inline]] inline void* take_at_hand(heap& h, code c) noexcept
{
    if (h.list_of(c).head != nullptr)
        return pop(&h, c);
    stretch& s = h.fresh.of_class[class_of_code(c)];
    char* const block = s.next;
    if (block == s.end) [[unlikely]]
        return nullptr;
    s.next = block + shapes[class_of_code(c)].bytes;
    clear(block);
    return block;
}

[[gnu::always_inline]] inline void* allocate(heap& h, std::size_t bytes) noexcept
{
    if (bytes <= looked_up_max && is_with_caller(h)) [[likely]]
        if (void* const block = take_at_hand(h, codes_by_16[(bytes + 15) / 16])) [[likely]]
            return block;
    return allocate_slowly(h, bytes);
}
void* allocate_zeroed(heap& h, std::size_t bytes) noexcept;

/// As `deallocate(block)`, and quick where the block is this heap's.
void deallocate(heap& h, void* block) noexcept;

/// As those of requests.hpp, for blocks that `find` found to be a heap's.
void free_of_heap(found const& b, void* block) noexcept;
void* reallocate_of_heap(found const& b, void* block, std::size_t bytes) noexcept;

/// All blocks are freed; `release` gives the memory back to central, `reset` keeps that of
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
void* begin_stretch(heap& h, slab& s) noexcept;

// --- its memory: heap_memory.cpp -------------------------------------------------

run take_of(heap& h, std::size_t granules) noexcept;
void give_to(heap& h, slab& s) noexcept;
void free_chunks(heap& h) noexcept;
/// All granules of all chunks are free, whatever was there.
void empty_chunks(heap& h) noexcept;
[[gnu::cold]] void trim_chunks(heap& h, std::size_t keep) noexcept;
/// Of the slabs in chunks: with callers, in lists, on the way.
[[gnu::cold]] heap_numbers count_chunks(const heap& h) noexcept;

/// A block of granules of its own, whoever asks.
void* allocate_large(heap& h, std::size_t bytes, std::size_t align, bool* zero = nullptr) noexcept;
void free_large(heap& h, window& in, std::size_t granule) noexcept;
bool resize_large(heap& h, slab& s, std::size_t bytes) noexcept;
void free_all_large(heap& h) noexcept;

// --- around fork ------------------------------------------------------------------

void lock_heaps() noexcept;
void unlock_heaps() noexcept;
void reset_heaps() noexcept;

} // namespace mallard::engine

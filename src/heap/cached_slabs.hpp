// The slabs of a thread cache. They come from the slice heap, are carved into blocks, and return
// when none of their blocks is used.
//
// All functions require that the thread is inside a `busy_scope` (it has marked its cache as busy
// with a slow path, see thread_cache.hpp), or that no thread uses the cache.
#pragma once

#include "thread_cache.hpp"

namespace mallard::engine {

/// Takes a new slab for this class and makes it `queue.fresh`, the slab that is being carved.
/// False: out of memory.
bool take_slab(thread_cache& cache, class_offset offset, slab_queue& queue) noexcept;

/// Takes a span that holds one block of `bytes`. Sets `zero` to whether the block reads as zero.
/// Null: out of memory.
void* take_span(thread_cache& cache, std::size_t bytes, bool& zero) noexcept;

/// Takes about a page of never-allocated blocks from the slab `queue.fresh`. Returns one of the
/// blocks and puts the others onto the list. Thread caches use this function as their
/// `cache_policy::carve`.
void* carve_page(thread_cache& cache, class_offset offset, slab_queue& queue) noexcept;

/// Moves all free blocks of a slab onto the free list of its class.
void take_free_blocks(thread_cache& cache, slab& s) noexcept;

/// Returns a block to its slab, or a whole span as `give_slab` does.
void return_block(thread_cache& cache, void* block) noexcept;
/// Returns the blocks of a list, from `first` on.
void return_blocks(thread_cache& cache, void* first) noexcept;

/// Updates the queue after blocks were returned to a slab. Puts the slab into the queue if it has
/// free blocks, and frees the slab if none of its blocks is used.
void settle(thread_cache& cache, slab& s) noexcept;

/// Returns the fresh slab (the one that is being carved) to its source, if none of its blocks is
/// used.
void give_fresh_if_unused(slab_queue& queue) noexcept;

/// Returns an unused slab or span to the chunks of the heap that owns it, or to the slice heap if a
/// thread cache owns it.
inline void give_slab(slab& s) noexcept
{
    thread_cache& owner = *s.owner.load(std::memory_order_relaxed);
    owner.policy->give_slab(owner, s);
}

/// Returns a block to its slab, which `cache` owns. The caller has checked the block.
[[gnu::always_inline]] inline void return_to_slab(thread_cache& cache, slab& s, void* block,
                                                  std::uint64_t mark) noexcept
{
    link(block, s.free, mark);
    s.free = block;
    s.used -= 1;
    if (s.used == 0 || !s.listed) [[unlikely]]
        settle(cache, s);
}

} // namespace mallard::engine

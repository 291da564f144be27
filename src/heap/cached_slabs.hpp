// The slabs of a thread cache. The slice heap or the chunks of a heap supply the slabs, which are
// carved into blocks. A slab is returned when none of its blocks is used.
//
// All functions require that the thread is inside a `busy_scope` (it has marked its cache as busy
// with a slow path, see thread_cache.hpp), or that no thread uses the cache.
#pragma once

#include "thread_cache.hpp"

namespace mallard::engine {

/// Allocates a new slab for this class and makes it `queue.fresh`, the slab that is being carved
/// into blocks. Returns false if there is no memory.
bool take_slab(thread_cache& cache, class_offset offset, slab_queue& queue) noexcept;

/// Allocates a span for one block of `bytes` bytes. Sets `zero` to whether all bytes of the block
/// are 0. Returns null if there is no memory.
void* take_span(thread_cache& cache, std::size_t bytes, bool& zero) noexcept;

/// Carves about a page of never-allocated blocks from the slab `queue.fresh`. Returns one of the
/// blocks and puts the others onto the free list. Thread caches use this function as their
/// `cache_policy::carve`.
void* carve_page(thread_cache& cache, class_offset offset, slab_queue& queue) noexcept;

/// Moves all free blocks of a slab onto the free list of its class.
void take_free_blocks(thread_cache& cache, slab& s) noexcept;

/// Returns a block to its slab. A span contains one block, so a span is freed as a whole by
/// `give_slab`.
void return_block(thread_cache& cache, void* block) noexcept;
/// Returns the blocks of a list to their slabs, from `first` on.
void return_blocks(thread_cache& cache, void* first) noexcept;

/// Updates the queue of a class after blocks were returned to the slab `s`. If some blocks of the
/// slab are still used, adds the slab to the queue. Otherwise, the slab becomes `queue.fresh`, or
/// is freed if another slab is `queue.fresh` already.
void settle(thread_cache& cache, slab& s) noexcept;

/// Frees the slab `queue.fresh`, which is being carved into blocks, if no block of the slab is
/// used.
void give_fresh_if_unused(slab_queue& queue) noexcept;

/// Returns an unused slab or span to the chunks of the heap that owns it, or to the slice heap if a
/// thread cache owns it.
inline void give_slab(slab& s) noexcept
{
    thread_cache& owner = *s.owner.load(std::memory_order_relaxed);
    owner.policy->give_slab(owner, s);
}

/// Returns a block to its slab, which `cache` must own. The caller must have checked the block.
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

// The slow paths of free, for blocks whose free list is full, and for blocks of other threads.
#include "cached_slabs.hpp"
#include "deferred_frees.hpp"
#include "misuse.hpp"
#include "remote.hpp"
#include "thread_cache.hpp"

namespace mallard::engine {
namespace {

/// Returns a block to its slab if `cache` owns the slab. Otherwise adds the block to the batch that
/// will be sent to the slab's owner. Stops the process if the address is not an allocated block.
[[gnu::always_inline]] inline void return_checked(thread_cache& cache, void* block) noexcept
{
    slab& s = slab_of(block);
    if (!s.shape().begins(s.offset_of(block))) [[unlikely]]
        stop_at_interior(block, "free");
    std::uint64_t const mark = mark_for(block, cache.key);
    if (is_free(block, mark)) [[unlikely]]
        stop_at_freed_twice(block);
    if (s.owner.load(std::memory_order_relaxed) != &cache) [[unlikely]]
        return add_to_batch(cache, s, block);
    return_to_slab(cache, s, block, mark);
}

/// If the free list of class `index` is hidden (its blocks cannot be allocated while frees are
/// deferred), returns up to `count` of its blocks to their slabs.
void return_hidden(thread_cache& cache, std::size_t index, std::size_t count) noexcept
{
    for (; count != 0; --count) {
        void* const block = cache.deferred.pop_hidden(cache.lists[index], index, cache.key);
        if (block == nullptr)
            return;
        return_block(cache, block);
    }
}

/// Returns the deferred blocks. Called when no further block can be deferred.
[[gnu::noinline]] void return_deferred(thread_cache& cache) noexcept
{
    busy_scope const busy(cache);
    tick(cache);
    // Besides the deferred blocks, return blocks of one hidden list. A thread that frees blocks of
    // several classes may have several hidden lists. The count of slow paths selects one deferred
    // block, and the class of that block selects the list. So successive calls select different
    // classes.
    std::uint32_t const chosen =
        cache.slow_paths.load(std::memory_order_relaxed) % deferred_frees::capacity;
    std::size_t const index = slab_of(cache.deferred.block(chosen)).index;
    return_deferred_blocks(cache);
    return_hidden(cache, index, deferred_frees::capacity);
}

/// Defers the free of a block, no matter which thread owns the slab. Requires a class below
/// `deferred_class_count`.
[[gnu::always_inline]] inline void defer(thread_cache& cache, void* block) noexcept
{
    if (cache.deferred.add(block)) [[unlikely]]
        return_deferred(cache);
}

[[gnu::always_inline]] inline void count_overflow(thread_cache& cache, std::size_t index) noexcept
{
    std::uint16_t& overflows = cache.overflows[index];
    overflows = static_cast<std::uint16_t>(overflows + (overflows != 0xffff));
}

/// Frees a block for a thread that uses a trap cache, in which every fast path fails. Pushes the
/// block onto a free list of the thread's real cache. While allocations are sampled, every free of
/// a thread's own block calls this function, because the lists of the trap cache always look full.
[[gnu::noinline]] void push_to_real(void* block, thread_cache& decoy, class_offset offset) noexcept
{
    push(block, decoy.real, offset);
}

/// Frees a block whose free list is full and not hidden. After many such frees in a row, defers the
/// free and hides the list, so that its blocks cannot be allocated until the deferred frees are
/// checked for double frees.
[[gnu::noinline]] void overflow_shown(void* block, thread_cache& cache,
                                      class_offset offset) noexcept
{
    free_list& l = cache.list_at(offset);
    l.room = 0;
    if (cache.is_decoy()) [[unlikely]]
        return push_to_real(block, cache, offset);
    std::size_t const index = class_of_offset(offset);
    count_overflow(cache, index);
    bool const are_many = cache.deferred.count_free();
    if (index >= classed_count)
        cache.overflows[index] = static_cast<std::uint16_t>(slab_of(block).slices);
    if (index >= deferred_class_count || !are_many)
        return free_past_list(block, cache);
    {
        busy_scope const busy(cache); // prevents visits (visit.hpp), which may empty hidden lists
        cache.deferred.hide(l, index);
    }
    defer(cache, block);
}

/// Returns whether the free of this block may be deferred, that is, whether its slab belongs to a
/// thread (not to a heap) and has a class that may be deferred. Requires that the calling thread
/// does not own the slab.
bool may_be_deferred(const void* block) noexcept
{
    std::size_t const slice = reservations[0].slice_of(block);
    if (!reservations[0].has(slice))
        return false;
    entry const e = reservations[0].entry_at(slice);
    return (e & (heap_bit | (class_offset_end - 1))) - offset_of_class(0) <
           deferred_class_count * class_offset_unit;
}

} // namespace

// Frees a block whose free list is full. If a program frees many blocks in a row, most of its frees
// call this function.
void overflow(void* block, thread_cache* cache, class_offset offset) noexcept
{
    free_list& l = cache->list_at(offset);
    if (!deferred_frees::is_hidden(l)) [[unlikely]]
        return overflow_shown(block, *cache, offset);
    l.room += 1; // undoes the change by `push`
    count_overflow(*cache, class_of_offset(offset));
    cache->deferred.count_free();
    defer(*cache, block);
}

void free_elsewhere(void* block, thread_cache* cache) noexcept
{
    if (cache->is_decoy() || !may_be_deferred(block)) [[unlikely]]
        return free_rare(block, cache);
    if (!cache->deferred.count_free())
        return free_past_list(block, *cache);
    defer(*cache, block);
}

void free_past_list(void* block, thread_cache& cache) noexcept
{
    busy_scope const busy(cache);
    tick(cache);
    slab& s = slab_of(block);
    if (s.index < span_class_first)
        return return_checked(cache, block);
    if (block != s.start)
        stop_at_interior(block, "free");
    if (is_free(block, mark_for(block, cache.key)))
        stop_at_freed_twice(block);
    give_slab(s);
}

void return_deferred_blocks(thread_cache& cache) noexcept
{
    cache.deferred.take_blocks([&](void* block) { return_checked(cache, block); });
}

void return_all_deferred(thread_cache& cache) noexcept
{
    return_deferred_blocks(cache);
    for (std::size_t i = 0; i < deferred_class_count; ++i)
        cache.deferred.show(cache.lists[i], i);
}

void stop_at_freed_inside(void* block) noexcept
{
    stop_at_interior(block, "free");
}
void stop_at_freed_twice(void* block) noexcept
{
    stop_at_double_free(block, "free");
}

} // namespace mallard::engine

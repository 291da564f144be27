// Refills and shrinks the free lists of a thread cache.
#include "cached_slabs.hpp"
#include "remote.hpp"
#include "slice_heap.hpp"
#include "thread_cache.hpp"

#include <algorithm>

namespace mallard::engine {

namespace {

/// When a list has this many blocks, a refill adds the blocks of no further slab. In a longer list,
/// the first blocks would have left the processor's cache before they are used.
constexpr std::int32_t refilled_blocks = 32;
/// The largest values of `thread_cache::allowance`, that is, the bytes by which the list limits of
/// one cache may exceed their initial values.
constexpr std::size_t allowance_max[] = {std::size_t{2} << 20, std::size_t{32} << 20};

constexpr std::size_t kind_of(const class_shape& shape) noexcept
{
    return shape.is_classed() ? 0 : 1;
}

/// Lowers the limit of a list to `limit` blocks.
void lower_limit(thread_cache& cache, std::size_t index, std::size_t limit) noexcept
{
    free_list& l = cache.lists[index];
    const class_shape& shape = shapes[index];
    if (limit >= l.limit)
        return;
    std::size_t const less = l.limit - limit;
    // The allowance of the cache may be smaller than the part that this list uses, because a thread
    // that scavenges the free blocks of this cache (visit.hpp) resets the allowance to 0.
    std::size_t& allowance = cache.allowance[kind_of(shape)];
    std::size_t const bytes = std::min(allowance, less * shape.bytes);
    allowance -= bytes;
    cache.policy->change_allowances(-static_cast<std::ptrdiff_t>(bytes));
    l.room -= static_cast<std::int32_t>(less);
    l.limit = static_cast<std::uint16_t>(limit);
}

/// Raises the limit of a list by `more` blocks, if the maximum for this cache and the maximum for
/// all caches permit that.
void lengthen(thread_cache& cache, std::size_t index, std::size_t more) noexcept
{
    free_list& l = cache.lists[index];
    const class_shape& shape = shapes[index];
    std::size_t const kind = kind_of(shape);
    std::size_t const bytes = more * shape.bytes;
    if (l.limit + more > shape.limit_max || cache.allowance[kind] + bytes > allowance_max[kind] ||
        !cache.policy->change_allowances(static_cast<std::ptrdiff_t>(bytes)))
        return;
    cache.allowance[kind] += bytes;
    if (kind == 1)
        start_watch(cache); // the list may retain many MiB
    l.room += static_cast<std::int32_t>(more);
    l.limit = static_cast<std::uint16_t>(l.limit + more);
}

/// Chooses a new limit for an empty list. The choice depends on how often the list overflowed after
/// it was last empty.
///
/// If the program freed more blocks than fit into the list and then allocated them again, the limit
/// is doubled, as far as the allowance permits. If the program freed more blocks than any list may
/// hold, the limit is lowered, because a long list could contain a few blocks of every slab, and
/// then no slab would become free.
void adapt_limit(thread_cache& cache, std::size_t index) noexcept
{
    const class_shape& shape = shapes[index];
    std::uint16_t const limit = cache.lists[index].limit;
    if (index < classed_count)
        cache.refilled |= std::uint64_t{1} << index;
    std::uint32_t const overflows = std::exchange(cache.overflows[index], 0);
    if (overflows == 0)
        return;
    if (overflows > shape.limit_max)
        return lower_limit(cache, index, std::max<std::size_t>(shape.limit, limit / 2));
    lengthen(cache, index, shape.capacity == 1 ? 1 : limit);
}

} // namespace

// Refills from the first of these places that has blocks:
// - the free list itself, if deferred frees had hidden its blocks (these frees are completed first)
// - slabs with free blocks, after the remote frees of other threads were read
// - the slab that is being carved
// - a slab of a thread that has exited
// - a new slab
void* refill_in(thread_cache& cache, class_offset offset) noexcept
{
    tick(cache);
    std::size_t const index = class_of_offset(offset);
    free_list& l = cache.list_at(offset);
    return_deferred_blocks(cache);
    cache.deferred.end_row();
    if (index < deferred_class_count)
        cache.deferred.show(l, index);
    if (l.head != nullptr)
        return pop(&cache, offset);
    adapt_limit(cache, index);
    if (index >= span_class_first) {
        bool zero = false;
        return take_span(cache, shapes[index].bytes, zero);
    }
    read_messages(cache);
    slab_queue& queue = cache.queues[index];
    if (queue.partial == nullptr &&
        (queue.fresh != nullptr || cache.policy->reclaim_slab(cache, offset) == nullptr)) {
        if (queue.fresh == nullptr && !take_slab(cache, offset, queue))
            return nullptr;
        return cache.policy->carve(cache, offset, queue);
    }
    // A nearly full slab has only one or two free blocks, which alone are not worth a slow path. So
    // move the free blocks of several slabs into the list.
    do
        take_free_blocks(cache, *queue.partial);
    while (queue.partial != nullptr && l.limit - l.room < refilled_blocks);
    return pop(&cache, offset);
}

void make_room_for_span(thread_cache& cache, std::size_t bytes) noexcept
{
    std::size_t const index = block_class::of(bytes);
    std::size_t const needed = slices_for(bytes);
    bool const comes_again = std::exchange(cache.overflows[index], 0) == needed;
    if (cache.lists[index].head != nullptr)
        shrink(cache, index, 0);
    for (std::size_t i = class_count; i-- != classed_count;)
        if (cache.lists[i].head != nullptr && the_slice_heap.now().dirty < needed)
            return_block(cache, pop(&cache, offset_of_class(i)));
    if (!comes_again)
        return;
    if (cache.allowance[1] + shapes[index].bytes > allowance_max[1])
        for (std::size_t i = classed_count; i < class_count; ++i)
            shrink(cache, i, 0); // the program allocates no blocks of this class now
    lengthen(cache, index, 1);
}

void shrink(thread_cache& cache, std::size_t index, std::size_t keep) noexcept
{
    free_list& l = cache.lists[index];
    while (static_cast<std::size_t>(l.limit - l.room) > keep)
        return_block(cache, pop(&cache, offset_of_class(index)));
    std::size_t const first = index < span_class_first ? shapes[index].limit : 0;
    lower_limit(cache, index, std::max(keep, first));
}

void shrink_idle(thread_cache& cache) noexcept
{
    for (std::size_t i = 0; i < class_count; ++i) {
        free_list& l = cache.lists[i];
        bool const was_refilled = i < classed_count && (cache.refilled >> i & 1) != 0;
        if (!was_refilled && l.limit != 0)
            shrink(cache, i, static_cast<std::size_t>(l.limit - l.room) / 2);
        if (i < span_class_first && l.head == nullptr)
            give_fresh_if_unused(cache.queues[i]);
    }
    cache.refilled = 0;
}

void flush(thread_cache& cache) noexcept
{
    return_all_deferred(cache);
    for (std::size_t i = 0; i < class_count; ++i)
        shrink(cache, i, 0);
    flush_slabs(cache);
}

void flush_slabs(thread_cache& cache) noexcept
{
    send_batches(cache);
    read_messages(cache, ~std::size_t{0});
    for (slab_queue& queue : cache.queues)
        give_fresh_if_unused(queue);
}

} // namespace mallard::engine

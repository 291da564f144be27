// Where blocks go when a list of a thread cache is full.
#include "thread_cache.hpp"

#include "decay.hpp"
#include "heap.hpp"
#include "misuse.hpp"
#include "remote.hpp"
#include "slice_heap.hpp"
#include "threads.hpp"

#include <algorithm>
#include <utility>

namespace mallard::engine {

void link_slab(slab_queue& q, slab& s) noexcept
{
    s.listed = true;
    s.previous = nullptr;
    s.next = q.partial;
    if (q.partial != nullptr)
        q.partial->previous = &s;
    q.partial = &s;
}

void unlink_slab(slab_queue& q, slab& s) noexcept
{
    s.listed = false;
    (s.previous != nullptr ? s.previous->next : q.partial) = s.next;
    if (s.next != nullptr)
        s.next->previous = s.previous;
}

void give_slab(slab& s) noexcept
{
    thread_cache& cache = *s.owner.load(std::memory_order_relaxed);
    if (is_heaps(cache.tag))
        return give_to(static_cast<heap&>(cache), s);
    reservation& w = *reservation_of(s.start);
    the_slice_heap.give_of_class(w, w.slice_of(s.start));
}

void settle(thread_cache& cache, slab& s) noexcept
{
    slab_queue& q = cache.queues[s.index];
    if (s.used != 0) {
        if (!s.listed)
            link_slab(q, s);
        return;
    }
    if (s.listed)
        unlink_slab(q, s);
    s.free = nullptr;
    s.carved = 0;
    if (q.fresh == nullptr)
        q.fresh = &s;
    else if (q.fresh != &s)
        give_slab(s);
}

namespace {

[[gnu::always_inline]] inline void give_to_slab(thread_cache& cache, slab& s, void* block,
                                                std::uint64_t mark) noexcept
{
    link(block, s.free, mark);
    s.free = block;
    s.used -= 1;
    if (s.used == 0 || !s.listed) [[unlikely]]
        settle(cache, s);
}

/// To its slab; or into a batch, if that is another thread cache's.
[[gnu::always_inline]] inline void return_checked_block(thread_cache& cache, void* block) noexcept
{
    slab& s = slab_of(block);
    if (!s.shape().begins(s.offset_of(block))) [[unlikely]]
        stop_at_interior(block, "free");
    std::uint64_t const mark = mark_for(block, cache.key);
    if (is_free(block, mark)) [[unlikely]]
        stop_at_freed_twice(block);
    if (s.owner.load(std::memory_order_relaxed) != &cache) [[unlikely]]
        return add_to_batch(cache, s, block);
    give_to_slab(cache, s, block, mark);
}

} // namespace

void return_block(thread_cache& cache, void* block) noexcept
{
    slab& s = slab_of(block);
    if (s.index >= span_class_first)
        return give_slab(s);
    // `push` has seen that the block is aligned, which is not enough in most classes.
    if (!s.shape().begins(s.offset_of(block))) [[unlikely]]
        stop_at_interior(block, "free");
    give_to_slab(cache, s, block, mark_for(block, cache.key));
}

void return_deferred_blocks(thread_cache& cache) noexcept
{
    std::uint32_t const count = std::exchange(cache.deferred.count, 0);
    for (std::uint32_t i = 0; i < count; ++i)
        return_checked_block(cache, cache.deferred.blocks[i]);
}

void unhide_list(thread_cache& cache, std::size_t index) noexcept
{
    free_list& l = cache.lists[index];
    if (!l.is_hidden())
        return;
    l.head = std::exchange(cache.deferred.hidden[index], nullptr);
    l.room += free_list::hidden_by;
}

void free_past_list(void* block, thread_cache& cache) noexcept
{
    busy_scope const busy(cache);
    tick(cache);
    slab& s = slab_of(block);
    if (s.index < span_class_first)
        return return_checked_block(cache, block);
    if (block != s.start)
        stop_at_interior(block, "free");
    if (is_free(block, mark_for(block, cache.key)))
        stop_at_freed_twice(block);
    give_slab(s);
}

void return_all_deferred(thread_cache& cache) noexcept
{
    return_deferred_blocks(cache);
    for (std::size_t i = 0; i < deferred_class_count; ++i)
        unhide_list(cache, i);
}

namespace {

/// Of a list that is hidden, if it is.
void return_hidden(thread_cache& cache, std::size_t index, std::size_t count) noexcept
{
    void*& head = cache.deferred.hidden[index];
    for (; head != nullptr && count != 0; --count) {
        void* const block = std::exchange(head, next_of(head, cache.key));
        cache.lists[index].room += 1;
        return_block(cache, block);
    }
}

} // namespace

void return_deferred(thread_cache& cache) noexcept
{
    busy_scope const busy(cache);
    tick(cache);
    // Now of one class, now of another: who frees several has several hidden lists.
    std::uint32_t const one =
        cache.slow_paths.load(std::memory_order_relaxed) % deferred_frees::most;
    std::size_t const index = slab_of(cache.deferred.blocks[one]).index;
    return_deferred_blocks(cache);
    return_hidden(cache, index, deferred_frees::most);
}

namespace {

void count_overflow(thread_cache& cache, std::size_t index) noexcept
{
    std::uint16_t& overflows = cache.overflows[index];
    overflows = static_cast<std::uint16_t>(overflows + (overflows != 0xffff));
    cache.deferred.in_a_row += 1;
}

/// What stands before a thread cache is always full.
[[gnu::noinline]] void push_behind(void* block, thread_cache& cache, class_offset offset) noexcept
{
    push(block, cache.real, offset);
}

/// Of a list that is not hidden. After several in a row it will be.
[[gnu::noinline]] void overflow_shown(void* block, thread_cache& cache,
                                      class_offset offset) noexcept
{
    free_list& l = cache.list_at(offset);
    l.room = 0;
    if (cache.is_decoy()) [[unlikely]]
        return push_behind(block, cache, offset);
    std::size_t const index = class_of_offset(offset);
    count_overflow(cache, index);
    if (index >= classed_count)
        cache.overflows[index] = static_cast<std::uint16_t>(slab_of(block).slices);
    if (index >= deferred_class_count || cache.deferred.in_a_row <= deferred_frees::at_once)
        return free_past_list(block, cache);
    {
        busy_scope const busy(cache); // a visitor may take what is hidden
        l.room -= free_list::hidden_by;
        cache.deferred.hidden[index] = std::exchange(l.head, nullptr);
    }
    defer(cache, block);
}

} // namespace

// Most of a large number of frees come by here: as short as it can be.
void overflow(void* block, thread_cache* cache, class_offset offset) noexcept
{
    free_list& l = cache->list_at(offset);
    if (!l.is_hidden()) [[unlikely]]
        return overflow_shown(block, *cache, offset);
    l.room += 1; // as it was
    count_overflow(*cache, class_of_offset(offset));
    defer(*cache, block);
}

void change_allowance(thread_cache& cache, const class_shape& shape, int blocks) noexcept
{
    std::size_t& allowance = cache.allowance[shape.is_classed() ? 0 : 1];
    std::size_t const change =
        shape.bytes * static_cast<std::size_t>(blocks < 0 ? -blocks : blocks);
    std::size_t const next =
        blocks < 0 ? allowance - std::min(allowance, change) : allowance + change;
    if (!is_heaps(cache.tag))
        os::add(allowances, next - allowance);
    allowance = next;
}

void shrink(thread_cache& cache, std::size_t index, std::size_t keep) noexcept
{
    free_list& l = cache.lists[index];
    const class_shape& shape = shapes[index];
    while (static_cast<std::size_t>(l.limit - l.room) > keep)
        return_block(cache, pop(&cache, offset_of_class(index)));
    int const less =
        l.limit -
        static_cast<int>(std::max<std::size_t>(keep, index < span_class_first ? shape.limit : 0));
    if (less <= 0)
        return;
    l.limit = static_cast<std::uint16_t>(l.limit - less);
    l.room -= less;
    change_allowance(cache, shape, -less);
}

void shrink_idle(thread_cache& cache) noexcept
{
    for (std::size_t i = 0; i < class_count; ++i) {
        free_list& l = cache.lists[i];
        bool const was_refilled = i < classed_count && (cache.refilled >> i & 1) != 0;
        if (!was_refilled && l.limit != 0)
            shrink(cache, i, static_cast<std::size_t>(l.limit - l.room) / 2);
        if (i < span_class_first) {
            slab_queue& q = cache.queues[i];
            if (q.fresh != nullptr && q.fresh->used == 0 && l.head == nullptr)
                give_slab(*std::exchange(q.fresh, nullptr));
        }
    }
    cache.refilled = 0;
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

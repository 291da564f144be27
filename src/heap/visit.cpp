// Visits return the free blocks of idle threads while these threads sleep.
//
// In every call a thread uses the lists of its own thread cache without a lock, and no other thread
// uses them. A visitor, a thread that wants the blocks, can still take these lists, and only the
// slow paths of the visited thread pay for that:
//
//   1. The visitor shows the thread `visited_thread_cache`, whose lists are empty, in place of its
//      own thread cache, and marks the thread cache as wanted. All threads pass a barrier. From now
//      on the thread begins no operation on its lists before `resume_after_visit`, which waits for
//      the visitor. Only an operation that was interrupted in the middle can still go on.
//   2. The visitor takes the heads of all lists. All threads pass a barrier again.
//   3. An operation changes `room` first, then reads the head. Suppose that the operation has read
//      a head before the visitor took that head. Then the visitor now sees that `room` plus the
//      number of blocks is not `limit`, or that the list has a head again. Such a list is in doubt,
//      and its thread decides in `resume_after_visit`. All other lists belong to the visitor. (If
//      the system refuses the second barrier, the blocks taken belong to no thread.)
//
// tests/models/engine_lists.pml models this protocol for Spin.
#include "threads.hpp"

#include "fork.hpp"
#include "remote.hpp"
#include "slice_heap.hpp"

#include <algorithm>
#include <utility>

namespace mallard::engine {
namespace {

constexpr std::size_t caches_at_once = 64; // then the lock is released for a moment

/// Counts the blocks of a list that the caller owns.
std::size_t length(const void* block, std::uint64_t key) noexcept
{
    std::size_t count = 0;
    for (; block != nullptr; block = next_of(block, key))
        count += 1;
    return count;
}

/// Counts the blocks of a list whose first block may be in use by now; at most one too many.
std::size_t length_if_free(const void* block, std::size_t most, std::uint64_t key) noexcept
{
    std::size_t count = 0;
    while (block != nullptr && count <= most) {
        auto const& now = *static_cast<const free_block*>(block);
        void* const next = racy_read(now.next);
        if ((racy_read(now.guarded) ^ mark_for(block, key)) !=
            reinterpret_cast<std::uintptr_t>(next))
            return count;
        block = next;
        count += 1;
    }
    return count;
}

void return_blocks(thread_cache& cache, void* block) noexcept
{
    while (block != nullptr)
        return_block(cache, std::exchange(block, next_of(block, cache.key)));
}

/// Takes the heads of all lists that are not hidden. False: all of them are empty.
bool take_heads(thread_cache& cache, void** heads) noexcept
{
    bool any = false;
    for (std::size_t i = 0; i < class_count; ++i) {
        free_list& l = cache.lists[i];
        heads[i] = free_list::is_hidden(racy_read(l.room)) ||
                           head_of(l).load(std::memory_order_relaxed) == nullptr
                       ? nullptr
                       : head_of(l).exchange(nullptr, std::memory_order_acq_rel);
        any |= heads[i] != nullptr;
    }
    return any;
}

/// Whether the thread has lost the list: no operation read the head before the visitor took it.
bool is_lost(free_list& l, const void* taken, std::uint64_t key) noexcept
{
    std::size_t const count = length_if_free(taken, l.limit, key);
    return count != 0 && head_of(l).load(std::memory_order_relaxed) == nullptr &&
           racy_read(l.room) + static_cast<std::int32_t>(count) == l.limit;
}

void empty_taken(thread_cache& cache, std::size_t index, void* taken) noexcept
{
    if (is_lost(cache.lists[index], taken, cache.key)) {
        return_blocks(cache, taken);
    } else {
        cache.in_doubt = taken; // at most one list: only one operation can be under way
        cache.in_doubt_index = static_cast<std::uint32_t>(index);
    }
}

void empty_lists_of_visited(thread_cache& cache) noexcept
{
    void* heads[class_count];
    if (take_heads(cache, heads) && os::barrier_in_all_threads())
        for (std::size_t i = 0; i < class_count; ++i)
            if (heads[i] != nullptr)
                empty_taken(cache, i, heads[i]);
    if (racy_read(cache.deferred.count) !=
        0) // one of the deferred blocks may have been freed twice
        return;
    for (std::size_t i = 0; i < deferred_class_count; ++i)
        if (free_list::is_hidden(racy_read(cache.lists[i].room)))
            return_blocks(cache, std::exchange(cache.deferred.hidden[i], nullptr));
}

/// Empties a thread cache whose thread waits for the caller before it uses the thread cache.
void empty_visited(thread_cache& cache) noexcept
{
    empty_lists_of_visited(cache);
    send_batches(cache);
    read_messages(cache, ~std::size_t{0});
    for (slab_queue& q : cache.queues)
        if (q.fresh != nullptr && q.fresh->used == 0)
            give_slab(*std::exchange(q.fresh, nullptr));
    os::add(allowances, ~(cache.allowance[0] + cache.allowance[1]) + 1);
    cache.allowance[0] = cache.allowance[1] = 0;
}

bool is_visited(const thread_cache& cache) noexcept
{
    return cache.wanted.load(std::memory_order_relaxed) != 0;
}

bool is_to_be_visited(thread_cache& cache, visits which) noexcept
{
    // Skip thread caches without a thread, and the caller's own.
    if (cache.shown_at == nullptr || cache.shown_at == &my_cache || is_visited(cache))
        return false;
    std::uint32_t const passed = cache.slow_paths.load(std::memory_order_relaxed);
    return std::exchange(cache.slow_paths_seen, passed) == passed || which == visits::of_all;
}

void show_own_cache(thread_cache& cache) noexcept
{
    cache.wanted.store(0, std::memory_order_release);
    if (cache.shown_at != nullptr)
        *cache.shown_at = cache_to_show(cache);
}

/// Visits the next thread caches from `cache` on; returns where to continue.
thread_cache* visit_some(thread_cache* cache, visits which) noexcept
{
    thread_cache* these[caches_at_once];
    std::size_t count = 0;
    for (; cache != nullptr && count < caches_at_once; cache = cache->next_of_all) {
        if (!is_to_be_visited(*cache, which))
            continue;
        these[count++] = cache;
        *cache->shown_at = &visited_thread_cache;
        cache->wanted.store(1, std::memory_order_relaxed);
    }
    bool const is_settled = count == 0 || os::barrier_in_all_threads();
    for (std::size_t i = 0; i < count; ++i) {
        thread_cache& each = *these[i];
        if (is_settled && each.busy.load(std::memory_order_acquire) == 0)
            empty_visited(each);
        else
            show_own_cache(each);
    }
    return cache;
}

/// Puts the blocks of a list in doubt back if `room` shows that the list misses them.
void settle_doubt(thread_cache& cache) noexcept
{
    void* const taken = std::exchange(cache.in_doubt, nullptr);
    if (taken == nullptr)
        return;
    free_list& l = cache.lists[cache.in_doubt_index];
    auto const count = static_cast<std::int32_t>(length(l.head, cache.key));
    if (l.room + count == l.limit)
        return;
    void* last = taken;
    while (void* const next = next_of(last, cache.key))
        last = next;
    link(last, l.head, mark_for(last, cache.key));
    l.head = taken;
}

/// Sets `room` and `limit` of a list from its blocks. Even an empty list loses what it may keep
/// above its first limit.
void count_again(thread_cache& cache, std::size_t index) noexcept
{
    free_list& l = cache.lists[index];
    bool const is_hidden = l.is_hidden();
    std::size_t const count = length(is_hidden ? cache.deferred.hidden[index] : l.head, cache.key);
    l.limit = std::max(std::min(l.limit, shapes[index].limit), static_cast<std::uint16_t>(count));
    l.room = l.limit - static_cast<std::int32_t>(count);
    if (is_hidden)
        l.room -= free_list::hidden_by;
}

} // namespace

void resume_after_visit(thread_cache& cache) noexcept
{
    if (!is_visited(cache))
        return;
    settle_doubt(cache);
    for (std::size_t i = 0; i < class_count; ++i)
        count_again(cache, i);
    show_own_cache(cache);
}

void visit_threads(visits which) noexcept
{
    the_slice_heap.expect_growth(); // so that no other thread visits at the same time
    for (thread_cache* cache = all_caches(); cache != nullptr;) {
        access const alone(abandoned_lock);
        if (alone.is_guest()) // a fork keeps the lock, and visits do not wait for forks
            break;
        cache = visit_some(cache, which);
    }
    the_slice_heap.expect_growth();
}

void visit_threads_soon() noexcept
{
    constinit static std::atomic<std::uint64_t> visited_last{0};
    std::uint64_t const now = os::coarse_milliseconds();
    std::uint64_t last = visited_last.load(std::memory_order_relaxed);
    if (now - last >= 250 &&
        visited_last.compare_exchange_strong(last, now, std::memory_order_relaxed))
        visit_threads(visits::of_idle);
}

} // namespace mallard::engine

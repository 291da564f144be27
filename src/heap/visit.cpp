// In a visit, a thread (the visitor) removes the free blocks from the cache of another thread,
// which is idle, and returns these blocks to their slabs. visit.hpp explains why the other thread
// needs no lock.
#include "visit.hpp"

#include "cached_slabs.hpp"
#include "guests.hpp"
#include "racy_read.hpp"
#include "registry.hpp"
#include "remote.hpp"
#include "slice_heap.hpp"

#include <algorithm>
#include <utility>

namespace mallard::engine {
namespace {

// The number of caches that a thread scavenges before it releases `registry_lock` for a moment, so
// that other threads can lock it.
constexpr std::size_t caches_at_once = 64;

/// Counts the blocks of a list that no other thread uses.
std::size_t length(const void* block, std::uint64_t key) noexcept
{
    std::size_t count = 0;
    for (; block != nullptr; block = next_of(block, key))
        count += 1;
    return count;
}

/// Counts the blocks of a list from `block` on, while the list's thread may be using it. The count
/// ends at a block that does not look free, because the thread may have allocated the first block
/// in the meantime. The count also ends after `most` + 1 blocks.
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

/// Removes the first block, and thereby all blocks, from each list that is not hidden because of
/// deferred frees. Returns false if all these lists are empty.
bool take_heads(thread_cache& cache, void** heads) noexcept
{
    bool any = false;
    for (std::size_t i = 0; i < class_count; ++i) {
        free_list& l = cache.lists[i];
        heads[i] = deferred_frees::is_hidden(racy_read(l.room)) ||
                           head_of(l).load(std::memory_order_relaxed) == nullptr
                       ? nullptr
                       : head_of(l).exchange(nullptr, std::memory_order_acq_rel);
        any |= heads[i] != nullptr;
    }
    return any;
}

/// Returns whether the blocks at `taken`, which the calling thread has removed from a list,
/// certainly belong to the calling thread now. That is true if no operation of the list's own
/// thread had read the head of the list before the head was removed.
bool is_lost(free_list& l, const void* taken, std::uint64_t key) noexcept
{
    std::size_t const count = length_if_free(taken, l.limit, key);
    return count != 0 && head_of(l).load(std::memory_order_relaxed) == nullptr &&
           racy_read(l.room) + static_cast<std::int32_t>(count) == l.limit;
}

void return_taken(thread_cache& cache, std::size_t index, void* taken) noexcept
{
    if (is_lost(cache.lists[index], taken, cache.key)) {
        return_blocks(cache, taken);
    } else {
        cache.in_doubt = taken; // one list at most, as the thread has one operation under way
        cache.in_doubt_index = static_cast<std::uint32_t>(index);
    }
}

void take_lists(thread_cache& cache) noexcept
{
    void* heads[class_count];
    if (take_heads(cache, heads) && os::barrier_in_all_threads())
        for (std::size_t i = 0; i < class_count; ++i)
            if (heads[i] != nullptr)
                return_taken(cache, i, heads[i]);
    if (racy_read(cache.deferred.count()) != 0) // a deferred block may also be in a hidden list
        return;
    for (std::size_t i = 0; i < deferred_class_count; ++i)
        if (deferred_frees::is_hidden(racy_read(cache.lists[i].room)))
            return_blocks(cache, cache.deferred.take_hidden(i));
}

/// Flushes the cache of another thread. Requires that this other thread waits for the caller before
/// it uses the cache again.
void flush_visited(thread_cache& cache) noexcept
{
    take_lists(cache);
    flush_slabs(cache);
    os::add(allowances, ~(cache.allowance[0] + cache.allowance[1]) + 1);
    cache.allowance[0] = cache.allowance[1] = 0;
}

bool is_visited(const thread_cache& cache) noexcept
{
    return cache.wanted.load(std::memory_order_relaxed) != 0;
}

/// Returns whether the thread of `cache` has entered no slow path since the last call of this
/// function for `cache`.
bool is_idle(thread_cache& cache) noexcept
{
    std::uint32_t const now = cache.slow_paths.load(std::memory_order_relaxed);
    return std::exchange(cache.slow_paths_seen, now) == now;
}

bool is_to_be_visited(thread_cache& cache, visited which) noexcept
{
    // Skip caches without a thread, the cache of the calling thread, and caches that were visited
    // already.
    if (cache.shown_at == nullptr || cache.shown_at == &my_caches || is_visited(cache))
        return false;
    return is_idle(cache) || which == visited::all;
}

void show_own_cache(thread_cache& cache) noexcept
{
    cache.wanted.store(0, std::memory_order_release);
    if (cache.shown_at != nullptr)
        cache.shown_at->show(cache_to_show(cache));
}

/// Visits some caches, beginning with `cache`. Returns the cache with which to continue.
thread_cache* visit_some(thread_cache* cache, visited which) noexcept
{
    thread_cache* these[caches_at_once];
    std::size_t count = 0;
    for (; cache != nullptr && count < caches_at_once; cache = cache->next_of_all) {
        if (!is_to_be_visited(*cache, which))
            continue;
        these[count++] = cache;
        cache->shown_at->show(visited_thread_cache);
        cache->wanted.store(1, std::memory_order_relaxed);
    }
    bool const is_settled = count == 0 || os::barrier_in_all_threads();
    for (std::size_t i = 0; i < count; ++i) {
        thread_cache& each = *these[i];
        if (is_settled && each.busy.load(std::memory_order_acquire) == 0)
            flush_visited(each);
        else
            show_own_cache(each);
    }
    return cache;
}

/// Handles a list in doubt, which its thread may have been using while another thread removed the
/// blocks. Puts the blocks back if `room` shows that the list lacks them.
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

/// Counts the blocks of a list, and sets its `room` and `limit`. Resets a raised limit to the
/// initial limit, because the scavenging thread has reset the allowance of the cache.
void count_again(thread_cache& cache, std::size_t index) noexcept
{
    free_list& l = cache.lists[index];
    std::size_t const count = length(cache.deferred.head(l, index), cache.key);
    l.limit = std::max(std::min(l.limit, shapes[index].limit), static_cast<std::uint16_t>(count));
    deferred_frees::set_room(l, l.limit - static_cast<std::int32_t>(count));
}

/// Makes the calling thread use its cache again after a visit. The caller holds `registry_lock`.
void resume_after_visit(thread_cache& cache) noexcept
{
    if (!is_visited(cache))
        return;
    settle_doubt(cache);
    for (std::size_t i = 0; i < class_count; ++i)
        count_again(cache, i);
    show_own_cache(cache);
}

void splice_if_idle(thread_cache& cache) noexcept
{
    if (!registry_lock.try_take())
        return;
    if (is_idle(cache)) {
        std::uint32_t const before = cache.wanted.exchange(1, std::memory_order_relaxed);
        bool const waits = before != 0; // an earlier visit took the lists, so the thread will wait
        if (waits ||
            (os::barrier_in_all_threads() && cache.busy.load(std::memory_order_acquire) == 0))
            read_messages(cache, ~std::size_t{0});
        cache.wanted.store(before, std::memory_order_release);
    }
    registry_lock.give();
}

} // namespace

/// Waits for the thread that visits this cache. `busy` stays set during the wait, so no other
/// thread starts a visit.
void busy_scope::wait_for_visitor() noexcept
{
    access const visitor_is_gone(registry_lock);
    resume_after_visit(cache_);
}

void visit_threads(visited which) noexcept
{
    the_slice_heap.expect_growth(); // prevents visits by other threads at the same time
    for (thread_cache* cache = all_caches(); cache != nullptr;) {
        access const alone(registry_lock);
        if (alone.is_guest()) // another thread forks, and visits do not wait for forks
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
        visit_threads(visited::idle);
}

void visit_if_much_is_waiting(thread_cache& to, std::size_t bytes) noexcept
{
    constexpr std::size_t bytes_per_visit = std::size_t{1} << 20;
    // If two threads send at the same moment, one count may be lost. A lost count is harmless,
    // because an occasional visit is enough.
    std::size_t const waiting = to.waiting.load(std::memory_order_relaxed);
    to.waiting.store(waiting + bytes, std::memory_order_relaxed);
    if (waiting / bytes_per_visit != (waiting + bytes) / bytes_per_visit) [[unlikely]]
        splice_if_idle(to);
}

} // namespace mallard::engine

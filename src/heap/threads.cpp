// Makes, abandons and reclaims thread caches, and keeps them consistent over a fork.
#include "threads.hpp"

#include "fork.hpp"
#include "permanent_store.hpp"
#include "remote.hpp"
#include "sample.hpp"
#include "slice_heap.hpp"

#include <new>
#include <utility>

#include <pthread.h>

namespace mallard::engine {

constinit std::uint64_t the_key = 0;
constinit os::lock abandoned_lock;

namespace {

constinit os::lock fallback_lock;

// `abandoned_lock` protects these:
constinit thread_cache* abandoned = nullptr;
constinit thread_cache* newest = nullptr;
constinit entry numbers = 0;
constinit permanent_store store;
constinit pthread_key_t exit_key{};
constinit bool has_exit_key = false;
constinit bool sampling = false;

/// Bit i: an abandoned thread cache may have free blocks of class i. Read without the lock.
constinit std::atomic<std::uint64_t> abandoned_classes{0};

/// The thread cache that this thread owns, even while `my_cache` is a decoy.
constinit thread_local thread_cache* owned_cache = nullptr;

/// The thread cache of threads that cannot have their own. It has an owner number like any other.
thread_cache the_fallback_cache;

/// The round of key destructors in which a thread abandons its thread cache. The system calls the
/// destructors again while keys have values, in at most four rounds. By the second round the
/// destructors of other keys have freed most of their memory. A thread that first allocates in one
/// of the first two rounds still abandons its thread cache in time.
constexpr std::uintptr_t exit_rounds = 2;

void abandon_at_exit(thread_cache& cache) noexcept;

extern "C" void mallard_at_thread_exit(void* value)
{
    auto const round = reinterpret_cast<std::uintptr_t>(value);
    if (round < exit_rounds &&
        ::pthread_setspecific(exit_key, reinterpret_cast<void*>(round + 1)) == 0)
        return;
    if (thread_cache* const cache = std::exchange(owned_cache, nullptr))
        abandon_at_exit(*cache);
}

void register_cache(thread_cache& cache) noexcept
{
    cache.real = &cache;
    cache.tag = ++numbers << owner_shift;
    cache.key = the_key;
    empty_lists(cache);
    cache.next_of_all = newest;
    std::atomic_signal_fence(std::memory_order_seq_cst); // a fork may happen here
    newest = &cache;
}

/// Initialises the key and the fallback cache, once.
void initialize() noexcept
{
    if (the_key != 0)
        return;
    // The highest bit is set, so that no small number or address in a block looks like a mark.
    the_key = os::random_bits() | std::uint64_t{1} << 63;
    has_exit_key = ::pthread_key_create(&exit_key, mallard_at_thread_exit) == 0;
    register_cache(the_fallback_cache);
}

thread_cache* make() noexcept
{
    if (numbers == thread_owner_max)
        return nullptr;
    void* const room = store.allocate(sizeof(thread_cache));
    if (room == nullptr)
        return nullptr;
    thread_cache* const cache = ::new (room) thread_cache;
    register_cache(*cache);
    return cache;
}

std::uint64_t classes_of(const thread_cache& cache) noexcept
{
    std::uint64_t classes = 0;
    for (std::size_t i = 0; i < span_class_first; ++i)
        if (cache.queues[i].partial != nullptr)
            classes |= std::uint64_t{1} << i;
    return classes;
}

bool make_sampling_decoy(thread_cache& cache) noexcept
{
    if (cache.sampled != nullptr)
        return true;
    void* const room = store.allocate(align_up(sizeof(sampling_decoy), alignof(sampling_decoy)));
    if (room == nullptr)
        return false;
    cache.sampled = ::new (room) sampling_decoy;
    set_up_sampling_decoy(*cache.sampled, cache);
    return true;
}

/// From now on other threads may change this thread's `my_cache`.
void publish_cache(thread_cache& cache) noexcept
{
    access const alone(abandoned_lock);
    cache.shown_at = &my_cache;
    if (sampling)
        make_sampling_decoy(cache);
    my_cache = cache_to_show(cache);
}

void unpublish_cache(thread_cache& cache) noexcept
{
    access const alone(abandoned_lock);
    cache.shown_at = nullptr;
    my_cache = &exited_thread_cache;
}

/// Adds a thread cache to the abandoned ones. A guest may do so too.
void abandon(thread_cache& cache) noexcept
{
    access const alone(abandoned_lock);
    cache.next_abandoned = abandoned;
    std::atomic_signal_fence(std::memory_order_seq_cst); // a fork may happen here
    abandoned = &cache;
    abandoned_classes.fetch_or(classes_of(cache), std::memory_order_relaxed);
}

/// Reclaims an abandoned thread cache, or makes a new one; null if there is no memory. A guest does
/// not reclaim.
thread_cache* reclaim_or_make() noexcept
{
    access const alone(abandoned_lock);
    initialize();
    if (abandoned == nullptr || alone.is_guest())
        return make();
    return std::exchange(abandoned, abandoned->next_abandoned);
}

void abandon_at_exit(thread_cache& cache) noexcept
{
    unpublish_cache(cache);
    {
        busy_scope const busy(cache);
        empty(cache);
    }
    abandon(cache);
}

} // namespace

thread_cache* cache_to_show(thread_cache& cache) noexcept
{
    return sampling && cache.sampled != nullptr ? cache.sampled : &cache;
}

void empty(thread_cache& cache) noexcept
{
    return_all_deferred(cache);
    for (std::size_t i = 0; i < class_count; ++i)
        shrink(cache, i, 0);
    send_batches(cache);
    read_messages(cache, ~std::size_t{0});
    for (slab_queue& q : cache.queues)
        if (q.fresh != nullptr && q.fresh->used == 0)
            give_slab(*std::exchange(q.fresh, nullptr));
}

std::uint64_t key_of_process() noexcept
{
    access const alone(abandoned_lock);
    initialize();
    return the_key;
}

thread_cache* own_cache() noexcept
{
    thread_cache* cache = shown_cache();
    if (cache->real != nullptr)
        return cache->real;
    if (cache == &exited_thread_cache)
        return nullptr;
    if (cache == &visited_thread_cache) {
        busy_scope const busy(*owned_cache);
        return owned_cache;
    }
    cache = reclaim_or_make();
    if (cache == nullptr)
        return nullptr;
    owned_cache = cache;
    my_cache = cache; // before pthread_setspecific, which may allocate
    if (has_exit_key &&
        ::pthread_setspecific(exit_key, reinterpret_cast<void*>(std::uintptr_t{1})) == 0)
        publish_cache(*cache);
    return cache;
}

thread_cache* take_fallback_cache() noexcept
{
    // While a fork keeps the lock, use another thread cache for this call.
    return fallback_lock.take_unless_kept() ? &the_fallback_cache : reclaim_or_make();
}

const thread_cache& fallback_cache() noexcept
{
    return the_fallback_cache;
}

void give_fallback_cache(thread_cache& cache) noexcept
{
    if (&cache == &the_fallback_cache)
        fallback_lock.give();
    else
        abandon(cache);
}

/// Waits for the visitor, who holds the lock. A later visitor sees `busy`.
void busy_scope::wait_for_visitor() noexcept
{
    access const until_he_is_gone(abandoned_lock);
    resume_after_visit(front_);
}

void visit_if_idle(thread_cache& cache) noexcept
{
    if (!abandoned_lock.try_take())
        return;
    std::uint32_t const passed = cache.slow_paths.load(std::memory_order_relaxed);
    if (std::exchange(cache.slow_paths_seen, passed) == passed) {
        std::uint32_t const before = cache.wanted.exchange(1, std::memory_order_relaxed);
        bool const is_visited =
            before != 0; // an earlier visit has not ended: the thread still waits
        if (is_visited ||
            (os::barrier_in_all_threads() && cache.busy.load(std::memory_order_acquire) == 0))
            read_messages(cache, ~std::size_t{0});
        cache.wanted.store(before, std::memory_order_release);
    }
    abandoned_lock.give();
}

slab* reclaim_slab(thread_cache& cache, class_offset offset, slab_queue& q) noexcept
{
    std::size_t const index = class_of_offset(offset);
    std::uint64_t const bit = std::uint64_t{1} << index;
    if ((abandoned_classes.load(std::memory_order_relaxed) & bit) == 0)
        return nullptr;
    access const alone(abandoned_lock);
    if (alone.is_guest())
        return nullptr;
    for (thread_cache* each = abandoned; each != nullptr; each = each->next_abandoned) {
        slab* const s = each->queues[index].partial;
        if (s == nullptr)
            continue;
        unlink_slab(each->queues[index], *s);
        if (each->queues[index].fresh == s)
            each->queues[index].fresh = nullptr; // the rest of the slab stays uncarved
        s->owner.store(&cache, std::memory_order_release);
        reservation& w = *reservation_of(s->start);
        w.mark(w.slice_of(s->start), s->slices, entry_of(cache.tag, offset));
        link_slab(q, *s);
        return s;
    }
    abandoned_classes.fetch_and(~bit, std::memory_order_relaxed);
    return nullptr;
}

void empty_abandoned() noexcept
{
    // No thread may ever use the fallback cache again.
    if (fallback_lock.try_take()) {
        {
            busy_scope const busy(the_fallback_cache);
            empty(the_fallback_cache);
        }
        fallback_lock.give();
    }
    if (!abandoned_lock.try_take())
        return;
    std::uint64_t classes = 0;
    for (thread_cache* each = abandoned; each != nullptr; each = each->next_abandoned) {
        empty(*each);
        classes |= classes_of(*each);
    }
    abandoned_classes.store(classes, std::memory_order_relaxed);
    abandoned_lock.give();
}

namespace {

void flush_own_and(visits others) noexcept
{
    if (owned_cache != nullptr) {
        busy_scope const busy(*owned_cache);
        empty(*owned_cache);
    }
    visit_threads(others);
    empty_abandoned();
}

} // namespace

void flush_idle_threads() noexcept
{
    flush_own_and(visits::of_idle);
}

void flush_all_threads() noexcept
{
    flush_own_and(visits::of_all);
}

thread_cache* all_caches() noexcept
{
    access const alone(abandoned_lock);
    return newest;
}

bool show_sampling_decoys(bool shown) noexcept
{
    os::hold const alone(abandoned_lock);
    for (thread_cache* cache = newest; shown && cache != nullptr; cache = cache->next_of_all)
        if (cache->shown_at != nullptr && !make_sampling_decoy(*cache))
            return false;
    sampling = shown;
    for (thread_cache* cache = newest; cache != nullptr; cache = cache->next_of_all)
        if (cache->shown_at != nullptr && cache->wanted.load(std::memory_order_relaxed) == 0)
            *cache->shown_at = cache_to_show(*cache);
    return true;
}

void take_caches() noexcept
{
    fallback_lock.take();
    abandoned_lock.take();
    initialize(); // so that a guest never has to
}

void keep_caches() noexcept
{
    fallback_lock.keep();
    abandoned_lock.keep();
}

void open_caches() noexcept
{
    abandoned_lock.open();
    fallback_lock.open();
}

void reset_caches() noexcept
{
    abandoned_lock.reset();
    fallback_lock.reset();
    // Compute the sum anew: another thread may have been changing it during the fork.
    std::size_t allowed = 0;
    for (thread_cache* cache = newest; cache != nullptr; cache = cache->next_of_all) {
        if (cache->shown_at != &my_cache) {
            cache->shown_at = nullptr;
            cache->allowance[0] = cache->allowance[1] = 0;
        }
        allowed += cache->allowance[0] + cache->allowance[1];
    }
    allowances.store(allowed, std::memory_order_relaxed);
}

} // namespace mallard::engine

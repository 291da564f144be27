// Creates, abandons and reclaims thread caches. A thread that exits abandons its cache, and a new
// thread reclaims an abandoned cache if there is one. A thread without a cache uses a trap cache,
// whose lists are empty, so that each call of the thread enters a slow path.
#include "threads.hpp"

#include "cached_slabs.hpp"
#include "guests.hpp"
#include "registry.hpp"
#include "slice_heap.hpp"
#include "visit.hpp"

#include <utility>

#include <pthread.h>

namespace mallard::engine {

namespace {

constinit os::lock fallback_lock;

// The variables below are protected by `registry_lock`.
constinit thread_cache* abandoned = nullptr;
constinit pthread_key_t exit_key{};
constinit bool has_exit_key = false;

/// Bit i is set if an abandoned cache may have a slab of class i with free blocks. Threads read
/// this bit set without the lock.
constinit std::atomic<std::uint64_t> abandoned_classes{0};

/// The cache that this thread owns, even while the thread uses a trap cache.
constinit thread_local thread_cache* owned_cache = nullptr;

/// The fallback cache, for calls of threads that have no cache. Like every cache, it has a tag by
/// which `free` finds its slabs.
thread_cache the_fallback_cache;

// --- the cache policy of threads -------------------------------------------------------

span take_slices(thread_cache&, std::size_t index, std::size_t slices) noexcept
{
    if (the_slice_heap.has_grown()) [[unlikely]]
        visit_threads(visited::idle);
    return index < classed_count ? the_slice_heap.take_of_class(index)
                                 : the_slice_heap.take(slices);
}

void give_to_slice_heap(thread_cache&, slab& s) noexcept
{
    reservation& in = *reservation_of(s.start);
    the_slice_heap.give_of_class(in, in.slice_of(s.start));
    watch_if_idle();
}

slab* reclaim_slab(thread_cache& cache, class_offset offset) noexcept
{
    std::size_t const index = class_of_offset(offset);
    std::uint64_t const bit = std::uint64_t{1} << index;
    if ((abandoned_classes.load(std::memory_order_relaxed) & bit) == 0)
        return nullptr;
    access const alone(registry_lock);
    if (alone.is_guest())
        return nullptr;
    for (thread_cache* each = abandoned; each != nullptr; each = each->next_abandoned) {
        slab* const s = each->queues[index].partial;
        if (s == nullptr)
            continue;
        each->queues[index].unlink(*s);
        if (each->queues[index].fresh == s)
            each->queues[index].fresh = nullptr; // the rest of this slab is never carved
        s->owner.store(&cache, std::memory_order_release);
        reservation& in = *reservation_of(s->start);
        in.mark(in.slice_of(s->start), s->slices, entry_of(cache.tag, offset));
        cache.queues[index].link(*s);
        return s;
    }
    abandoned_classes.fetch_and(~bit, std::memory_order_relaxed);
    return nullptr;
}

bool change_allowances(std::ptrdiff_t bytes) noexcept
{
    auto const more = static_cast<std::size_t>(bytes);
    if (bytes > 0 && allowances.load(std::memory_order_relaxed) + more > allowances_max) {
        visit_threads_soon();
        return false;
    }
    os::add(allowances, more);
    return true;
}

constexpr cache_policy policy_of_threads{.take_slices = take_slices,
                                         .give_slab = give_to_slice_heap,
                                         .reclaim_slab = reclaim_slab,
                                         .carve = carve_page,
                                         .change_allowances = change_allowances,
                                         .after_message = visit_if_much_is_waiting};

// --- the end of a thread ---------------------------------------------------------------

/// The round of destructors in which an exiting thread abandons its cache. If a destructor of
/// thread-specific data sets a value again, the C library runs another round of destructors, up to
/// four in all. Other destructors free most of their blocks by the second round. Four rounds are
/// enough even for a thread whose first allocation is in the second round.
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

std::uint64_t classes_with_free_blocks(const thread_cache& cache) noexcept
{
    std::uint64_t classes = 0;
    for (std::size_t i = 0; i < span_class_first; ++i)
        if (cache.queues[i].partial != nullptr)
            classes |= std::uint64_t{1} << i;
    return classes;
}

/// Adds a cache to the list of abandoned caches. Threads may also call this function while another
/// thread forks, because the function changes only this list.
void abandon(thread_cache& cache) noexcept
{
    access const alone(registry_lock);
    cache.next_abandoned = abandoned;
    std::atomic_signal_fence(std::memory_order_seq_cst); // a fork may happen between the two writes
    abandoned = &cache;
    abandoned_classes.fetch_or(classes_with_free_blocks(cache), std::memory_order_relaxed);
}

/// Flushes a cache before it is abandoned. `reclaim_slab` moves the slabs of abandoned caches to
/// other caches, so the free lists of an abandoned cache must not contain blocks of these slabs.
void flush_and_abandon(thread_cache& cache) noexcept
{
    {
        busy_scope const busy(cache);
        flush(cache);
    }
    abandon(cache);
}

void abandon_at_exit(thread_cache& cache) noexcept
{
    {
        access const alone(registry_lock);
        stop_showing(cache);
    }
    flush_and_abandon(cache);
}

// --- the start of a thread -------------------------------------------------------------

/// Chooses the secret key and registers the fallback cache. Only the first call has an effect.
void init_once() noexcept
{
    if (the_key != 0)
        return;
    // Set the highest bit, which is clear in small numbers and addresses. If a block in use begins
    // with two such numbers, they then do not look like the guarded link of a free block.
    the_key = os::random_bits() | std::uint64_t{1} << 63;
    has_exit_key = ::pthread_key_create(&exit_key, mallard_at_thread_exit) == 0;
    register_cache(the_fallback_cache, policy_of_threads);
}

/// Chooses the secret key when the library is loaded. Later, a sandbox may forbid the system call
/// for random bits, or the program may have used up all keys of thread-specific data.
[[gnu::constructor(101)]] void init_at_start() noexcept
{
    key_of_process();
}

/// Reclaims an abandoned cache, or creates one. Returns null if there is no memory. Threads may
/// also call this function while another thread forks, because it removes the cache from the list
/// with one write, before it changes the cache.
thread_cache* take_cache() noexcept
{
    access const alone(registry_lock);
    init_once();
    if (abandoned == nullptr)
        return make_cache(policy_of_threads);
    return std::exchange(abandoned, abandoned->next_abandoned);
}

} // namespace

thread_cache* own_cache() noexcept
{
    thread_cache* cache = shown_cache();
    if (cache->real != nullptr)
        return cache->real;
    if (cache == &exited_thread_cache)
        return nullptr;
    if (cache != &empty_thread_cache) { // the cache is being scavenged, or this thread watches
        busy_scope const resumed(*owned_cache); // waits until the cache is scavenged
        if (cache == &watching_thread_cache)
            watch(*owned_cache);
        return owned_cache;
    }
    cache = take_cache();
    if (cache == nullptr)
        return nullptr;
    owned_cache = cache;
    my_caches.show(*cache); // set before `pthread_setspecific`, which may allocate
    if (has_exit_key &&
        ::pthread_setspecific(exit_key, reinterpret_cast<void*>(std::uintptr_t{1})) == 0) {
        access const alone(registry_lock);
        start_showing(*cache);
    }
    watch_if_idle();
    return cache;
}

std::uint64_t key_of_process() noexcept
{
    access const alone(registry_lock);
    init_once();
    return the_key;
}

thread_cache* take_fallback_cache() noexcept
{
    // If this thread has tried to get its own cache, the fallback cache is registered already.
    if (the_key == 0) [[unlikely]]
        key_of_process();
    return fallback_lock.take_unless_kept() ? &the_fallback_cache : take_cache();
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
        flush_and_abandon(cache);
}

void watch_if_idle() noexcept
{
    if (!the_slice_heap.is_idle())
        return;
    if (owned_cache != nullptr)
        start_watch(*owned_cache);
    if (the_slice_heap.is_newly_idle() && let_all_watch())
        the_slice_heap.end_news();
}

void flush_abandoned() noexcept
{
    // Flush the fallback cache here, too, because possibly no thread ever uses it again.
    if (fallback_lock.try_take()) {
        {
            busy_scope const busy(the_fallback_cache);
            flush(the_fallback_cache);
        }
        fallback_lock.give();
    }
    if (!registry_lock.try_take())
        return;
    std::uint64_t classes = 0;
    for (thread_cache* each = abandoned; each != nullptr; each = each->next_abandoned) {
        flush(*each);
        classes |= classes_with_free_blocks(*each);
    }
    abandoned_classes.store(classes, std::memory_order_relaxed);
    registry_lock.give();
}

namespace {

void flush_own_and(visited others) noexcept
{
    if (owned_cache != nullptr) {
        busy_scope const busy(*owned_cache);
        flush(*owned_cache);
    }
    visit_threads(others);
    flush_abandoned();
}

} // namespace

void flush_idle_threads() noexcept
{
    flush_own_and(visited::idle);
}

void flush_all_threads() noexcept
{
    flush_own_and(visited::all);
}

void take_cache_locks() noexcept
{
    fallback_lock.take();
    registry_lock.take();
    init_once(); // other threads must not initialise during the fork
}

void keep_cache_locks() noexcept
{
    fallback_lock.keep();
    registry_lock.keep();
}

void open_cache_locks() noexcept
{
    registry_lock.open();
    fallback_lock.open();
}

void reset_cache_locks() noexcept
{
    registry_lock.reset();
    fallback_lock.reset();
    forget_missing_threads();
}

} // namespace mallard::engine

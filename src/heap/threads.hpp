// The caches of threads that start and end.
//
// A thread that ends abandons its cache together with its slabs. The next thread that needs a cache
// reclaims the abandoned cache as it is. Until then other threads reclaim single slabs from it.
//
// A thread may need memory and have no cache: after its end has begun, if there is no memory for a
// cache, or while the loader still relocates the program. Such threads share the fallback cache,
// behind a lock, for one call at a time.
//
// tests/models/engine_exit.pml models this for Spin.
#pragma once

#include "limits.hpp"
#include "thread_cache.hpp"

namespace mallard::engine {

/// Returns `the_key`. Chooses the key if no thread has done so.
std::uint64_t key_of_process() noexcept;

/// This thread's cache. Makes or reclaims one if the thread has none yet. Null: the end of the
/// thread has begun, or there is no memory for a cache.
[[gnu::cold]] thread_cache* own_cache() noexcept;

/// The cache of this thread, which may use a decoy. Makes or reclaims the cache like `own_cache`.
inline thread_cache* real_cache() noexcept
{
    thread_cache* const real = shown_cache()->real;
    return real != nullptr ? real : own_cache();
}

/// Locks and returns the fallback cache. If another thread forks and keeps the lock, returns a
/// cache for this call only. Null: there is no memory.
thread_cache* take_fallback_cache() noexcept;
void give_fallback_cache(thread_cache& cache) noexcept;
const thread_cache& fallback_cache() noexcept;

/// Calls `use(cache)` with this thread's cache or the fallback cache.
template <class F>
[[gnu::noinline]] auto with_cache(thread_cache* cache, F use) noexcept
{
    if (cache->is_decoy())
        cache = own_cache();
    if (cache != nullptr)
        return use(*cache);
    thread_cache* const fallback = take_fallback_cache();
    if (fallback == nullptr)
        return decltype(use(*cache)){};
    auto const result = use(*fallback);
    give_fallback_cache(*fallback);
    return result;
}

/// If much memory is idle, lets this thread watch for it (see decay.hpp), and other threads as well
/// if they do not know yet. Called after memory was returned to the slice heap.
void watch_if_idle() noexcept;

/// Flushes the abandoned caches and the fallback cache: reads the messages that other threads sent
/// to them and returns unused slabs to the slice heap.
void flush_abandoned() noexcept;
/// Flushes this thread's cache, the caches of idle threads, and the abandoned caches. Called before
/// a request fails.
void flush_idle_threads() noexcept;
/// Flushes the caches of all threads that are not in a slow path right now.
void flush_all_threads() noexcept;

/// Returns the result of `allocate()`. If the result is null, flushes other threads' caches and
/// tries again.
template <class F>
[[gnu::always_inline]] inline void* retry_after_flush(F allocate) noexcept
{
    void* block = within_limits(allocate);
    if (block == nullptr) [[unlikely]] {
        flush_idle_threads();
        block = allocate();
    }
    return block != nullptr ? block : os::out_of_memory();
}

// --- around a fork: see guests.hpp ---------------------------------------------------

void take_cache_locks() noexcept;
void keep_cache_locks() noexcept;
void open_cache_locks() noexcept;
void reset_cache_locks() noexcept;

} // namespace mallard::engine

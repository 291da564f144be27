// Creates, abandons and reclaims the caches of threads that start and exit.
//
// A thread that exits abandons its cache together with its slabs. The next thread that needs a
// cache reclaims the abandoned cache as it is. Until then, other threads reclaim single slabs from
// that cache.
//
// A thread may need memory but have no cache, because the thread is exiting, because there is no
// memory for a cache, or because the loader still relocates the program. Such threads share the
// fallback cache, which each of them locks for one call at a time.
//
// tests/models/engine_exit.pml models this for Spin.
#pragma once

#include "limits.hpp"
#include "thread_cache.hpp"

namespace mallard::engine {

/// Returns `the_key`. Chooses the key if no thread has chosen it yet.
std::uint64_t key_of_process() noexcept;

/// Returns this thread's cache. If the thread has no cache yet, creates or reclaims one. Returns
/// null if the thread is exiting, or if there is no memory for a cache.
[[gnu::cold]] thread_cache* own_cache() noexcept;

/// Returns the cache of this thread, even if the thread uses a trap cache. Creates or reclaims the
/// cache like `own_cache`.
inline thread_cache* real_cache() noexcept
{
    thread_cache* const real = shown_cache()->real;
    return real != nullptr ? real : own_cache();
}

/// Locks and returns the fallback cache. If another thread holds the lock across a fork, returns a
/// cache for this call only, or null if there is no memory.
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

/// If much memory is idle, makes this thread watch for idle memory (see decay.hpp), and also the
/// other threads if the memory became idle only recently. Called after memory was returned to the
/// slice heap.
void watch_if_idle() noexcept;

/// Flushes the abandoned caches and the fallback cache. Reads the remote frees that other threads
/// sent to these caches, and returns unused slabs to the slice heap.
void flush_abandoned() noexcept;
/// Flushes this thread's cache, the caches of idle threads, and the abandoned caches. Called before
/// a request fails.
void flush_idle_threads() noexcept;
/// Flushes the caches of all threads that are not in a slow path right now.
void flush_all_threads() noexcept;

/// Returns the result of `allocate()`. If the result is null, flushes the caches of this thread and
/// of idle threads, and tries again.
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

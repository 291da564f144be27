// The registry is the list of all thread caches. It also decides whether a thread uses its own
// cache or a trap cache, in which every fast path of malloc and free fails. To show a cache to a
// thread means to store a pointer to the cache in the `my_caches` of that thread.
#pragma once

#include "thread_cache.hpp"

#include "../os/lock.hpp"

namespace mallard::engine {

/// Protects the registry, the abandoned caches (see threads.cpp), and `my_caches` of every thread.
/// `guests.hpp` defines the lock order.
extern constinit os::lock registry_lock;

/// Returns the newest of all thread caches. The caches are linked by `next_of_all`, and include the
/// fallback cache.
thread_cache* all_caches() noexcept;

/// The secret key of the process, which guards the links of free blocks (see free_list.hpp). The
/// key is 0 until `key_of_process` or the first thread cache needs it.
extern std::uint64_t the_key;

/// The bytes by which the list limits of all threads together may exceed their initial values
/// (`allowances_max`), and by which they exceed them now (`allowances`).
inline constexpr std::size_t allowances_max = std::size_t{64} << 20;
extern constinit std::atomic<std::size_t> allowances;

/// A trap cache, in which every fast path fails. A thread uses the trap cache instead of its real
/// cache while allocations are sampled (see sample.hpp).
struct sampling_decoy : thread_cache {
    double left = 0; ///< distance to the next sampled byte, as a fraction of the mean distance
    std::uint64_t random = 0;
};
/// Prepares the trap cache `decoy` for `cache`. Defined in sample.cpp.
void set_up_sampling_decoy(sampling_decoy& decoy, thread_cache& cache) noexcept;

/// Makes all threads use their trap caches for sampling if `shown` is true, or their real caches if
/// `shown` is false. Threads that start later use the same kind of cache. If there is no memory for
/// a trap cache, returns false, and all threads continue as before.
bool show_sampling_decoys(bool shown) noexcept;

/// Makes all threads watch for idle memory (see decay.hpp). Does nothing and returns false if
/// another thread holds `registry_lock`.
bool let_all_watch() noexcept;

// The functions below require `registry_lock`.

/// Creates and registers a cache. Returns null if there is no memory, or if there are too many
/// caches.
thread_cache* make_cache(const cache_policy& policy) noexcept;
/// Gives a cache a tag and adds it to the registry.
void register_cache(thread_cache& cache, const cache_policy& policy) noexcept;

/// Returns the cache that the thread of `cache` should use, which is `cache` or its trap cache.
thread_cache& cache_to_show(thread_cache& cache) noexcept;
/// Makes this thread use its cache. From now on, other threads may change this thread's
/// `my_caches`.
void start_showing(thread_cache& cache) noexcept;
/// Makes this thread use `exited_thread_cache`. From now on, no other thread changes this thread's
/// `my_caches`.
void stop_showing(thread_cache& cache) noexcept;

/// Runs in the child of a fork. Marks the caches of all threads that do not exist in the child as
/// caches without a thread. The contents of these caches stay as they are.
void forget_missing_threads() noexcept;

} // namespace mallard::engine

// The registry: the list of all thread caches. It also decides which cache each thread uses: its
// own, or a decoy that makes the fast path of malloc and free fail. To show a cache to a thread
// means to store the cache in the `my_caches` of that thread.
#pragma once

#include "thread_cache.hpp"

#include "../os/lock.hpp"

namespace mallard::engine {

/// Protects the registry, the abandoned caches (see threads.cpp), and `my_caches` of every thread.
/// Lock order: see guests.hpp.
extern constinit os::lock registry_lock;

/// The newest of all caches of threads, linked by `next_of_all`. The fallback cache is one of them.
thread_cache* all_caches() noexcept;

/// The secret key of the process, which guards the links of free blocks (see free_list.hpp). 0
/// until a thread has a cache.
extern std::uint64_t the_key;

/// The bytes by which the list limits of all threads together exceed their initial values: the
/// maximum, and the current sum.
inline constexpr std::size_t allowances_max = std::size_t{64} << 20;
extern constinit std::atomic<std::size_t> allowances;

/// The decoy that a thread uses instead of its cache while allocations are sampled: see sample.hpp.
struct sampling_decoy : thread_cache {
    double left = 0; ///< distance to the next sampled byte, as a fraction of the mean distance
    std::uint64_t random = 0;
};
/// Prepares a decoy for `cache`. Defined in sample.cpp.
void set_up_sampling_decoy(sampling_decoy& decoy, thread_cache& cache) noexcept;

/// Makes all threads use their decoys if `shown` is true, or their real caches if `shown` is false.
/// Also applies to threads that start later. False: there is no memory, and nothing has changed.
bool show_sampling_decoys(bool shown) noexcept;

/// Lets all threads watch for idle memory (see decay.hpp). False: the registry is in use, and
/// nothing has changed.
bool let_all_watch() noexcept;

// The functions below require `registry_lock`.

/// Makes a cache and registers it. Null: there is no memory, or there are too many caches.
thread_cache* make_cache(const cache_policy& policy) noexcept;
/// Gives a cache a tag and adds it to the registry.
void register_cache(thread_cache& cache, const cache_policy& policy) noexcept;

/// The cache that the thread of `cache` should use: `cache` or its decoy.
thread_cache& cache_to_show(thread_cache& cache) noexcept;
/// Makes this thread use its cache. From now on other threads may change `my_caches`.
void start_showing(thread_cache& cache) noexcept;
/// Makes this thread use `exited_thread_cache`. From now on no other thread changes `my_caches`.
void stop_showing(thread_cache& cache) noexcept;

/// Called in the child of a fork. Marks the caches of all threads that do not exist in the child as
/// caches without a thread. Their contents stay as they are.
void forget_missing_threads() noexcept;

} // namespace mallard::engine

// Registers thread caches, and decides whether a thread uses its own cache or a trap cache. In a
// trap cache, every fast path fails, so each call of the thread enters a slow path.
#include "registry.hpp"

#include "guests.hpp"
#include "permanent_store.hpp"

#include <new>

namespace mallard::engine {

constinit os::lock registry_lock;
constinit std::uint64_t the_key = 0;
constinit std::atomic<std::size_t> allowances{0};

namespace {

// The variables below are protected by `registry_lock`.
constinit thread_cache* newest = nullptr;
constinit entry numbers = 0; // number of caches created so far
constinit permanent_store store;
constinit bool sampling = false;

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

} // namespace

thread_cache* all_caches() noexcept
{
    access const alone(registry_lock);
    return newest;
}

bool show_sampling_decoys(bool shown) noexcept
{
    os::hold const alone(registry_lock);
    for (thread_cache* cache = newest; shown && cache != nullptr; cache = cache->next_of_all)
        if (cache->shown_at != nullptr && !make_sampling_decoy(*cache))
            return false;
    sampling = shown;
    for (thread_cache* cache = newest; cache != nullptr; cache = cache->next_of_all)
        if (cache->shown_at != nullptr && cache->wanted.load(std::memory_order_relaxed) == 0)
            cache->shown_at->show(cache_to_show(*cache));
    return true;
}

bool let_all_watch() noexcept
{
    if (!registry_lock.try_take())
        return false;
    for (thread_cache* cache = newest; cache != nullptr; cache = cache->next_of_all)
        if (cache->shown_at != nullptr)
            cache->shown_at->replace(*cache, watching_thread_cache);
    registry_lock.give();
    return true;
}

thread_cache* make_cache(const cache_policy& policy) noexcept
{
    if (numbers == thread_owner_max)
        return nullptr;
    void* const room = store.allocate(sizeof(thread_cache));
    if (room == nullptr)
        return nullptr;
    thread_cache* const cache = ::new (room) thread_cache;
    register_cache(*cache, policy);
    return cache;
}

void register_cache(thread_cache& cache, const cache_policy& policy) noexcept
{
    cache.real = &cache;
    cache.policy = &policy;
    cache.tag = ++numbers << owner_shift; // no entry has this number yet
    cache.key = the_key;
    empty_lists(cache);
    cache.next_of_all = newest;
    std::atomic_signal_fence(std::memory_order_seq_cst); // a fork may happen between the two writes
    newest = &cache;
}

thread_cache& cache_to_show(thread_cache& cache) noexcept
{
    return sampling && cache.sampled != nullptr ? *cache.sampled : cache;
}

void start_showing(thread_cache& cache) noexcept
{
    cache.shown_at = &my_caches;
    if (sampling)
        make_sampling_decoy(cache);
    my_caches.show(cache_to_show(cache));
}

void stop_showing(thread_cache& cache) noexcept
{
    cache.shown_at = nullptr;
    my_caches.show(exited_thread_cache);
}

void forget_missing_threads() noexcept
{
    // Recompute the sum of all allowances, because a thread that does not exist in the child may
    // have been changing the sum when the fork happened.
    std::size_t allowed = 0;
    for (thread_cache* cache = newest; cache != nullptr; cache = cache->next_of_all) {
        if (cache->shown_at != &my_caches) {
            cache->shown_at = nullptr;
            cache->allowance[0] = cache->allowance[1] = 0;
        }
        allowed += cache->allowance[0] + cache->allowance[1];
    }
    allowances.store(allowed, std::memory_order_relaxed);
}

} // namespace mallard::engine

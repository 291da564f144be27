// Sampling chooses each allocated byte with the same probability. The engine reports the block of
// each chosen byte to the program.
//
// The fast path does not test whether sampling is on. Instead, while sampling is on, each thread
// uses a trap cache in place of its cache (`sampling_decoy`, in registry.hpp). The trap cache has
// the same tag and key as the cache. Its lists look empty to malloc, which then calls `refill` to
// count bytes. The lists look full to free, which then calls `overflow`. Both functions continue
// with the real cache. To start and stop sampling, the engine replaces the caches that each thread
// uses (`show_sampling_decoys`).
//
// Each sampled block is a separate span. Its map entry matches no cache's tag, so every free of a
// sampled block calls `free_elsewhere`, whether sampling is on or not.
//
// The distance to the next chosen byte is stored as a multiple of the mean distance. This multiple
// is exponentially distributed with mean 1 for every mean distance, so the mean distance may change
// at any time.
#pragma once

#include "found_block.hpp"
#include "registry.hpp"

#include <mallard/c/malloc.h>

namespace mallard::engine {

/// Does the work of `sample` for a thread that uses a trap cache, in which every fast path fails.
[[gnu::noinline]] void* sample_in_decoy(thread_cache* cache, std::size_t bytes, std::size_t align,
                                        bool* zero) noexcept;

/// Allocates a sampled block if sampling chooses one of its bytes. Otherwise, or if there is no
/// memory, returns null, and the caller allocates as usual.
inline void* sample(thread_cache* cache, std::size_t bytes, std::size_t align, bool* zero) noexcept
{
    return cache->is_decoy() ? sample_in_decoy(cache, bytes, align, zero) : nullptr;
}

// The functions below are for blocks that are sampled according to `find_block`.
void free_sample(found_block const& b) noexcept;
std::size_t sample_bytes(found_block const& b) noexcept;
/// Records the new size after a `realloc` that does not move the block.
void resize_sample(found_block const& b, std::size_t bytes) noexcept;

/// Starts sampling, or stops sampling if `mean_bytes` is 0. Returns 0, ENOMEM, or, if called from
/// the function to which samples are reported, EDEADLK.
int set_sampling(std::size_t mean_bytes, mallard_sampled call, void* context) noexcept;

// The functions for the fork handlers (see guests.hpp). While a thread forks, other threads sample
// no allocations, and their frees of sampled blocks are reported after the fork.
void take_sample_lock() noexcept;
void keep_sample_lock() noexcept;
void open_sample_lock() noexcept; ///< reports the frees during the fork, then unlocks
void reset_sample_lock() noexcept;

} // namespace mallard::engine

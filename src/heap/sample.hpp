// Sampling: each allocated byte is chosen with the same probability, and the engine reports the
// block of each chosen byte to the program.
//
// No function asks whether sampling is on. While sampling is on, each thread uses a decoy instead
// of its cache (`sampling_decoy`, in registry.hpp). The decoy has the same tag and key as the
// cache. Its lists look empty to malloc, which then calls `refill` to count bytes. They look full
// to free, which then calls `overflow`. Both functions continue with the real cache. Starting and
// stopping writes one pointer for each thread (`show_sampling_decoys`).
//
// A sampled block is a span of its own. Its map entry matches no cache's tag, so every free of a
// sampled block calls `free_elsewhere`, whether sampling is on or not.
//
// The distance to the next chosen byte is counted as a fraction of the mean distance. That fraction
// is exponentially distributed with mean 1, whatever the mean distance is. So the mean distance may
// change at any time.
#pragma once

#include "found_block.hpp"
#include "registry.hpp"

#include <mallard/c/malloc.h>

namespace mallard::engine {

/// Counts bytes for a thread that uses a decoy: see `sample`.
[[gnu::noinline]] void* sample_in_decoy(thread_cache* cache, std::size_t bytes, std::size_t align,
                                        bool* zero) noexcept;

/// Allocates a sampled block if one of its bytes is chosen. Null: no byte is chosen, or there is no
/// memory; the caller allocates as usual.
inline void* sample(thread_cache* cache, std::size_t bytes, std::size_t align, bool* zero) noexcept
{
    return cache->is_decoy() ? sample_in_decoy(cache, bytes, align, zero) : nullptr;
}

// The functions below are for blocks that `find_block` found to be sampled.
void free_sample(found_block const& b) noexcept;
std::size_t sample_bytes(found_block const& b) noexcept;
/// Records the new size after a `realloc` that leaves the block where it is.
void resize_sample(found_block const& b, std::size_t bytes) noexcept;

/// Starts sampling, or stops sampling if `mean_bytes` is 0. Returns 0, ENOMEM, or EDEADLK if the
/// program's function calls this.
int set_sampling(std::size_t mean_bytes, mallard_sampled call, void* context) noexcept;

// The functions around a fork: see guests.hpp. A guest samples nothing, and its frees are reported
// after the fork.
void take_sample_lock() noexcept;
void keep_sample_lock() noexcept;
void open_sample_lock() noexcept; ///< other threads may be guests; calls the program's function
void reset_sample_lock() noexcept;

} // namespace mallard::engine

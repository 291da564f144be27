// Samples of what is allocated: each byte has the same chance to be chosen, and who asked for
// it is told of the block that it is in.
//
// Nobody asks whether there is sampling. While there is, what a thread takes for its thread cache
// is another that stands before it, of the same number and key: its lists are empty, so malloc
// comes to `refill`, where bytes are counted, and full, so free comes to `overflow`; both go on
// with the real one. One store a thread, by whoever begins, changes that (`show_sampling_decoys`).
//
// A chosen block is a span of its own, whose entry matches no thread cache's number: whoever frees
// it comes to `free_elsewhere`, sampling or not.
//
// Bytes are counted as fractions of the mean distance: what is left to the next chosen one is
// exponential with mean 1, whatever the mean, which may change at any time.
#pragma once

#include "requests.hpp"

#include <mallard/c/malloc.h>

namespace mallard::engine {

struct sampling_decoy : thread_cache {
    double left = 0; ///< means to the next chosen byte
    std::uint64_t random = 0;
};

/// Makes what stands before `cache`.
void set_up_sampling_decoy(sampling_decoy& before, thread_cache& cache) noexcept;

/// As `sample`, of a thread cache whose lists are never used.
[[gnu::noinline]] void* sample_before(thread_cache* cache, std::size_t bytes, std::size_t align,
                                      bool* zero) noexcept;

/// A block of its own, if one of its bytes is chosen. Else null: then all goes on as without.
inline void* sample(thread_cache* cache, std::size_t bytes, std::size_t align, bool* zero) noexcept
{
    return cache->is_decoy() ? sample_before(cache, bytes, align, zero) : nullptr;
}

/// Of those that `find` found to be samples.
void free_sample(found const& b) noexcept;
std::size_t sample_bytes(found const& b) noexcept;
/// After a `realloc` that leaves it where it is.
void resize_sample(found const& b, std::size_t bytes) noexcept;

/// 0, or ENOMEM, or EDEADLK from within a call.
int set_sampling(std::size_t mean_bytes, mallard_sampled call, void* context) noexcept;

// Around a fork: see fork.hpp. A guest samples nothing, and its frees are reported after the fork.
void take_samples() noexcept;
void keep_samples() noexcept;
void open_samples() noexcept; ///< other threads may be guests; calls the program
void reset_samples() noexcept;

} // namespace mallard::engine

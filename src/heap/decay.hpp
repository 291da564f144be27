// Time, as the slow paths see it. Nobody else looks at a clock, and no thread is started
// for it: a process that calls neither malloc nor free does nothing here either.
#pragma once

#include "thread_cache.hpp"

namespace mallard::engine {

inline constexpr std::uint64_t decay_interval_milliseconds = 250;
inline constexpr std::uint32_t ticks_per_clock_read = 64;

/// When a decay interval has ended: what this thread cache keeps, then what all keep together.
[[gnu::cold, gnu::noinline]] void decay_if_due(thread_cache& cache) noexcept;

/// Each slow path passes here.
inline void tick(thread_cache& cache) noexcept
{
    std::uint32_t const passed = cache.slow_paths.load(std::memory_order_relaxed) + 1;
    cache.slow_paths.store(passed, std::memory_order_relaxed);
    if (passed % ticks_per_clock_read == 0) [[unlikely]]
        decay_if_due(cache);
}

} // namespace mallard::engine

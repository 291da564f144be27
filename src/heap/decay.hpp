// Decay: returns memory to the system that nothing needed for a while, or sooner if memory is
// short. There is no background thread: slow paths count ticks and read the clock now and then. A
// process that calls neither malloc nor free returns nothing.
#pragma once

#include "thread_cache.hpp"

#include "../os/cgroup.hpp"

namespace mallard::engine {

inline constexpr std::uint64_t decay_interval_milliseconds = 250;
inline constexpr std::uint32_t ticks_per_clock_read = 64;

/// If a decay interval has ended, shrinks the lists of this thread cache, and once per interval in
/// the process, returns memory from the slice heap to the system.
[[gnu::cold, gnu::noinline]] void decay_if_due(thread_cache& cache) noexcept;

/// Counts a tick. Every slow path calls this.
inline void tick(thread_cache& cache) noexcept
{
    std::uint32_t const passed = cache.slow_paths.load(std::memory_order_relaxed) + 1;
    cache.slow_paths.store(passed, std::memory_order_relaxed);
    if (passed % ticks_per_clock_read == 0) [[unlikely]]
        decay_if_due(cache);
}

/// Whether the control group of this process is short of memory. Reads the group's files at most
/// once a second, and not in the first second, so that short programs read no file.
bool memory_is_short(std::uint64_t now_milliseconds) noexcept;
/// Replaces the control group that `memory_is_short` reads; for tests.
void watch_memory(os::cgroup const& group) noexcept;
/// In the child of a fork, which may move to another control group: looks the group up again.
void forget_memory() noexcept;

} // namespace mallard::engine

// Decay: memory that stayed idle for a decay interval goes back to the operating system, or sooner
// if memory is short. There is no background thread: each thread reads the clock in every 64th slow
// path of malloc and free. So a process that calls neither returns nothing.
#pragma once

#include "../os/cgroup.hpp"

#include <cstdint>

namespace mallard::engine {

inline constexpr std::uint64_t decay_interval_milliseconds = 250;

/// Whether the control group of this process is short of memory. Reads the group's files at most
/// once a second, and never in the first second, so that short programs read no file.
bool memory_is_short(std::uint64_t now_milliseconds) noexcept;
/// Replaces the control group that `memory_is_short` reads; for tests.
void watch_memory(os::cgroup const& other) noexcept;
/// Called in the child of a fork. The child may move to another control group, so this function
/// looks the group up again.
void forget_memory() noexcept;

} // namespace mallard::engine

// Decay: memory that stayed idle for a decay interval goes back to the operating system, or sooner
// if memory is short. There is no background thread: each thread reads the clock in every 64th slow
// path of malloc and free. So a process that calls neither returns nothing.
//
// A quiet program may find all its blocks in the lists of its threads, and enter no slow path for
// minutes. Therefore a thread watches while much memory is idle: malloc uses a decoy, so that each
// call enters a slow path, which reads the clock. free uses the thread's cache: a program that
// frees much memory in a row pays nothing. A thread that is not quiet would lose time in this way,
// so its calls of malloc while it watches are limited to 100 in a millisecond, on average: such a
// thread enters slow paths often enough by itself.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mallard::engine {

inline constexpr std::uint64_t decay_interval_milliseconds = 250;

/// How many calls of malloc a call for more than `classed_bytes_max` counts as, while the thread
/// watches. A thread also watches while one of its lists may hold such a block. So a program that
/// uses the block again and again soon stops watching.
inline constexpr std::uint32_t credit_of_span = 1000;

/// Whether the memory of malloc exceeds three quarters of the memory limit of this process's
/// control group. The rest of the limit is for stacks, code and other processes of the group. The
/// limit is read when the process starts: a process that runs in a sandbox may open no file.
bool memory_is_short() noexcept;
/// Replaces the memory limit of the control group, in bytes; for tests. 0: there is no limit.
void set_group_limit(std::size_t bytes) noexcept;

} // namespace mallard::engine

// Decay returns memory that stayed idle for a decay interval to the operating system, or sooner if
// memory is short. There is no background thread. Instead, each thread reads the clock in every
// 64th slow path of malloc and free. So a process that calls neither function returns no memory.
//
// A program that allocates little may find all its blocks in the free lists of its threads, and
// enter no slow path for minutes. Therefore a thread "watches" while much memory is idle. While a
// thread watches, malloc uses a trap cache, in which every fast path fails. So each call of malloc
// enters a slow path, which reads the clock. free still uses the thread's cache, so that a program
// that frees much memory in a row pays nothing. For a thread that allocates often, watching would
// cost time, and such a thread enters slow paths often enough anyway. So a thread stops watching
// when it calls malloc more than 100 times per millisecond on average.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mallard::engine {

inline constexpr std::uint64_t decay_interval_milliseconds = 250;

/// An allocation of more than `classed_bytes_max` bytes counts as this many calls of malloc while a
/// thread watches, that is, checks for idle memory in each call of malloc. A thread also watches
/// while one of its free lists may contain such a large block. So a thread that repeatedly reuses a
/// large block soon stops watching.
inline constexpr std::uint32_t credit_of_span = 1000;

/// Returns whether the memory of malloc exceeds three quarters of the memory limit of this
/// process's control group. The rest of the limit is for stacks, code and other processes in the
/// group. The limit is read when the process starts, because later a sandbox may forbid the process
/// to open files.
bool memory_is_short() noexcept;
/// Sets the memory limit of the process's control group, in bytes, for `memory_is_short`. 0 means
/// no limit. Tests call this function, too.
void set_group_limit(std::size_t bytes) noexcept;

} // namespace mallard::engine

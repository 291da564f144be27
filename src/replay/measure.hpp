// Measures the cost of a replay in time, page faults and memory.
#pragma once

#include <cstdint>

#include <time.h>

namespace mallard::replay {

/// Returns the time of a clock in nanoseconds.
inline std::uint64_t now(clockid_t clock) noexcept
{
    timespec at{};
    ::clock_gettime(clock, &at);
    return static_cast<std::uint64_t>(at.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(at.tv_nsec);
}

/// Time that does not count as part of a replay, because a thread reads its next ops, joins threads
/// that have exited, or prepares a thread that it starts.
struct time_off {
    std::uint64_t wall_ns = 0;
    std::uint64_t cpu_ns = 0;

    /// Adds the time of another thread.
    void add(time_off const& other) noexcept
    {
        wall_ns += other.wall_ns;
        cpu_ns += other.cpu_ns;
    }
};

/// A scope whose duration is added to a `time_off`.
class clock_stopped {
public:
    explicit clock_stopped(time_off& to) noexcept
        : to_(to), wall_(now(CLOCK_MONOTONIC)), cpu_(now(CLOCK_THREAD_CPUTIME_ID))
    {
    }
    ~clock_stopped()
    {
        to_.cpu_ns += now(CLOCK_THREAD_CPUTIME_ID) - cpu_;
        to_.wall_ns += now(CLOCK_MONOTONIC) - wall_;
    }
    clock_stopped(clock_stopped const&) = delete;
    clock_stopped& operator=(clock_stopped const&) = delete;

private:
    time_off& to_;
    std::uint64_t wall_;
    std::uint64_t cpu_;
};

/// The resident memory of the process, according to the system.
struct memory_use {
    std::uint64_t rss_kib = 0;
    std::uint64_t peak_rss_kib = 0; ///< since `forget_peak`

    static memory_use read() noexcept; ///< allocates nothing
};

/// Resets the system's record of peak memory to the memory in use now. Does nothing on a system
/// without /proc/self/clear_refs, where the peak is counted from the start of the process.
void forget_peak() noexcept;

/// The time and page faults of the process since its start.
struct process_use {
    std::uint64_t wall_ns = 0;
    std::uint64_t cpu_ns = 0;
    std::uint64_t system_ns = 0; ///< the part of cpu_ns that was in the kernel
    std::uint64_t minor_faults = 0;
    std::uint64_t major_faults = 0;

    static process_use read() noexcept;

    /// Returns the difference to an earlier reading.
    process_use since(process_use const& before) const noexcept
    {
        return {wall_ns - before.wall_ns, cpu_ns - before.cpu_ns, system_ns - before.system_ns,
                minor_faults - before.minor_faults, major_faults - before.major_faults};
    }
};

} // namespace mallard::replay

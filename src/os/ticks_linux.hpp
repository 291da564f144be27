// The clock for recorded events. The clock is the processor's time stamp counter if the rate of the
// counter is constant, and CLOCK_MONOTONIC otherwise.
#pragma once

#include <cstdint>

#include <time.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

namespace mallard::os {

/// Returns the time of CLOCK_MONOTONIC in nanoseconds. The vDSO reads this clock without a system
/// call.
inline std::uint64_t monotonic_ns() noexcept
{
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(now.tv_nsec);
}

#if defined(__x86_64__)

/// Returns whether the time stamp counter has the same rate in all states of the processor.
inline bool has_constant_ticks() noexcept
{
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & 1U << 8) != 0;
}

/// Reads the time stamp counter. The processor may execute the reading before earlier instructions
/// are complete.
inline std::uint64_t ticks() noexcept
{
    return __rdtsc();
}

/// Reads the time stamp counter after all earlier and before all later instructions. So the reading
/// does not overlap with a call that begins now.
inline std::uint64_t ticks_before() noexcept
{
    _mm_lfence();
    std::uint64_t const now = __rdtsc();
    _mm_lfence();
    return now;
}

/// Reads the time stamp counter after all earlier loads are complete, such as the loads of a call
/// that has returned.
inline std::uint64_t ticks_after() noexcept
{
    unsigned processor = 0;
    return __rdtscp(&processor);
}

#else

inline bool has_constant_ticks() noexcept
{
    return false;
}
inline std::uint64_t ticks() noexcept
{
    return monotonic_ns();
}
inline std::uint64_t ticks_before() noexcept
{
    return monotonic_ns();
}
inline std::uint64_t ticks_after() noexcept
{
    return monotonic_ns();
}

#endif

} // namespace mallard::os

// The clock of recorded events: the time stamp counter of the processor where its rate is constant,
// and CLOCK_MONOTONIC otherwise.
#pragma once

#include <cstdint>

#include <time.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

namespace mallard::os {

/// Nanoseconds of CLOCK_MONOTONIC. The vDSO reads the clock without a system call.
inline std::uint64_t monotonic_ns() noexcept
{
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(now.tv_nsec);
}

#if defined(__x86_64__)

/// Whether the time stamp counter has one rate in all states of the processor.
inline bool has_constant_ticks() noexcept
{
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & 1U << 8) != 0;
}

/// The time stamp counter. The processor may read it before earlier instructions are done.
inline std::uint64_t ticks() noexcept
{
    return __rdtsc();
}

/// Reads the time stamp counter between all earlier and all later instructions. So a call that
/// begins now takes its time after the reading, not during it.
inline std::uint64_t ticks_before() noexcept
{
    _mm_lfence();
    std::uint64_t const now = __rdtsc();
    _mm_lfence();
    return now;
}

/// Reads the time stamp counter after all earlier loads are done, such as the loads of a call that
/// has returned.
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

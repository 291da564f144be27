// Reads clocks. A case uses the CPU time of the thread if it can afford the cost of a reading,
// about a microsecond. CPU time does not include the time of other programs. A case that measures
// shorter times uses the time-stamp counter.
#pragma once

#include <time.h>
#include <x86intrin.h>

#include <cstdint>
#include <optional>

namespace mallard::bench {

inline double cpu_ns() noexcept
{
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

/// Returns the CPU time of all threads, in ns.
inline double process_cpu_ns() noexcept
{
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

inline double wall_ns() noexcept
{
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

/// Reads the time-stamp counter. Instructions before the call are finished before the reading, and
/// instructions after the call begin after the reading.
inline std::uint64_t ticks() noexcept
{
    unsigned processor = 0;
    std::uint64_t const now = __rdtscp(&processor);
    _mm_lfence();
    return now;
}

// Returns the number of ns in a tick of the time-stamp counter, measured at the first call.
double ns_per_tick();
double ticks_of_a_reading(); ///< the smallest difference between two successive readings
double ns_of_a_step();       ///< the smallest step of the counter, in ns

/// Returns the number of cycles of this processor in a ns. Each call measures two chains of
/// dependent operations with known latencies. Returns an empty value if the two chains disagree,
/// because then one of the assumed latencies is wrong.
std::optional<double> cycles_per_ns();
inline constexpr const char* no_cycles =
    "two chains of operations of known latency disagree about this processor's cycles";

/// Computes the number of cycles in a tick. `product` and `exclusive_or` are the measured ticks of
/// one step in the two chains. A step takes three cycles in the first chain and one cycle in the
/// second. Returns an empty value if the two results differ by more than a twentieth.
std::optional<double> cycles_per_tick(double product, double exclusive_or);

} // namespace mallard::bench

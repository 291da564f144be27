// Reads clocks. Cases use the CPU time of the thread if the cost of a reading, near a microsecond,
// does not matter: CPU time does not include the time of other programs. Shorter times come from
// the time-stamp counter.
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

/// The CPU time of all threads, in ns.
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

/// Reads the time-stamp counter. Earlier instructions end before the reading, and later ones begin
/// after it.
inline std::uint64_t ticks() noexcept
{
    unsigned processor = 0;
    std::uint64_t const now = __rdtscp(&processor);
    _mm_lfence();
    return now;
}

// The ns of a tick of the time-stamp counter, measured at the first call.
double ns_per_tick();
double ticks_of_a_reading(); ///< the least difference of two readings in a row
double ns_of_a_step();       ///< the least by which the counter moves

/// Cycles of this processor in a ns, measured at every call from two chains of operations with
/// known latencies. Empty if the two chains disagree: then one of the latencies is wrong, and a
/// figure in cycles would be wrong too.
std::optional<double> cycles_per_ns();
inline constexpr const char* no_cycles =
    "two chains of operations of known latency disagree about this processor's cycles";

/// Computes the cycles in a tick from the ticks of a step of two chains: `product` takes three
/// cycles, `exclusive_or` one. Empty if the two differ by more than a twentieth.
std::optional<double> cycles_per_tick(double product, double exclusive_or);

} // namespace mallard::bench

// Time. CPU time of the thread where a reading's cost (near a microsecond) does
// not matter, because other programs' shares of the processor are not in it;
// the time-stamp counter for what is shorter.
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

/// Of all threads.
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

/// Waits for what came before; what comes after waits for it.
inline std::uint64_t ticks() noexcept
{
    unsigned processor = 0;
    std::uint64_t const now = __rdtscp(&processor);
    _mm_lfence();
    return now;
}

// What this machine's clocks are worth, measured at the first call.
double ns_per_tick();
double ticks_of_a_reading(); ///< the least difference of two readings in a row
double ns_of_a_step();       ///< the least by which the counter moves

/// Cycles of this processor in a ns, measured at every call from two chains of operations whose
/// latencies are known. Nothing where the two disagree: then one of them is not what it takes to
/// be, and a figure in cycles would be wrong.
std::optional<double> cycles_per_ns();
inline constexpr const char* no_cycles =
    "two chains of operations of known latency disagree about this processor's cycles";

/// The judgement: a step of one chain, three cycles, took so many ticks; a step of the other,
/// one cycle, so many. Nothing where they are more than a twentieth apart.
std::optional<double> cycles_per_tick(double product, double exclusive_or);

} // namespace mallard::bench

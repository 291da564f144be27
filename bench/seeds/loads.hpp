// Runs the cases in hakmem's and hakozuna's tables. Each case is a job of a worker process, with
// each malloc preloaded.
#pragma once

#include <bench/preload/worker.hpp>
#include <bench/seeds/contenders.hpp>

namespace mallard::bench {

/// The number of rounds of timed cases, which take more than a second in total.
inline constexpr std::size_t rounds_of_a_second = 26;

/// Returns the figures of a case with threads. ns_per_op is the cost for one thread: wall time *
/// threads / operations of all threads. Without the factor "threads" it is the aggregate.
inline std::vector<figure> costs_of_threads(std::string const& name, const char* variant,
                                            std::size_t threads, bool is_remote = false)
{
    std::vector<figure> all;
    for (const char* const metric :
         {"aggregate_ns_per_op", "cpu_ns_per_op", "ns_per_op", "page_faults"})
        all.push_back({name, metric, variant, static_cast<int>(threads)});
    if (is_remote)
        all.push_back({name, "remote_percent", variant, static_cast<int>(threads)});
    return all;
}

/// Runs a case as it was published: each time in a new process, where the start of the process is
/// part of the time.
inline experiment published(load l, effort how, std::size_t rounds)
{
    l.fresh = true;
    experiment e = timed(l, how);
    e.rounds = rounds;
    return e;
}

inline experiment corrected(load const& l, effort how, std::size_t rounds)
{
    experiment e = timed(l, how);
    e.rounds = rounds;
    return e;
}

} // namespace mallard::bench

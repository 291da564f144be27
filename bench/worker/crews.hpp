// Several threads at one job, and what a step of it costs them.
#pragma once

#include <bench/threads/crew.hpp>

#include <array>

namespace mallard::bench {

/// How many steps each thread did: `tell` divides by their sum.
class step_counts {
public:
    std::size_t& of(std::size_t thread) { return all_.at(thread).steps; }

    /// The ns of a step: wall time / steps of all threads, and CPU time / steps.
    void tell(work_time taken, std::span<double> out) const
    {
        double steps = 0;
        for (counter const& c : all_)
            steps += static_cast<double>(c.steps);
        out[0] = taken.wall_ns / steps;
        out[1] = taken.cpu_ns / steps;
    }

private:
    struct alignas(128) counter {
        std::size_t steps = 0;
    };
    std::array<counter, 64> all_{};
};

/// For a while, each thread does `work(thread)`, which says how many steps it did.
template <class Work>
void time_crew(crew& team, effort how, std::span<double> out, Work work)
{
    step_counts counts;
    counts.tell(team.run_for(window_ns(how), [&](std::size_t i) { counts.of(i) = work(i); }), out);
}

/// Each thread does `work(thread)` once.
template <class Work>
void time_pass(crew& team, std::span<double> out, Work work)
{
    step_counts counts;
    counts.tell(team.run([&](std::size_t i) { counts.of(i) = work(i); }), out);
}

} // namespace mallard::bench

// Runs a job on several threads, and reports the cost of a step.
#pragma once

#include <bench/clock.hpp>
#include <bench/page_faults.hpp>
#include <bench/threads/crew.hpp>
#include <bench/worker/task.hpp>

#include <array>

namespace mallard::bench {

/// Counts the steps of each thread, and the page faults since construction. `tell` writes the cost
/// of one step.
class step_counts {
public:
    std::size_t& of(std::size_t thread) { return all_.at(thread).steps; }

    double sum() const
    {
        double steps = 0;
        for (counter const& c : all_)
            steps += static_cast<double>(c.steps);
        return steps;
    }

    /// Writes the ns of a step: wall time / steps of all threads, and CPU time / steps of all
    /// threads. If more figures are requested, also writes wall time / steps of one thread, and the
    /// page faults for each 1,000 steps.
    void tell(work_time taken, std::size_t threads, std::span<double> out) const
    {
        double const steps = sum();
        out[0] = taken.wall_ns / steps;
        out[1] = taken.cpu_ns / steps;
        if (out.size() > 2)
            out[2] = out[0] * static_cast<double>(threads);
        if (out.size() > 3)
            out[3] = (page_faults() - faults_before_) * 1000 / steps;
    }

private:
    struct alignas(128) counter {
        std::size_t steps = 0;
    };
    std::array<counter, 64> all_{};
    double faults_before_ = page_faults();
};

/// Calls `work(thread)` in each thread, repeatedly for `ns`. `work` returns the number of steps
/// that it did.
template <class Work>
void time_crew(crew& team, double ns, std::span<double> out, Work work)
{
    step_counts counts;
    counts.tell(team.run_for(ns, [&](std::size_t i) { counts.of(i) = work(i); }), team.size(), out);
}
template <class Work>
void time_crew(crew& team, effort how, std::span<double> out, Work work)
{
    time_crew(team, window_ns(how), out, work);
}

/// Returns the time that a task specifies, in ns. In a short run, or if the task specifies no time,
/// returns the usual time of a round.
inline double window_ns(task const& t, effort how)
{
    bool const is_own = t.times != 0 && how.kind == effort::size::full;
    return is_own ? static_cast<double>(t.times) * 1e6 : window_ns(how);
}

/// Returns the number of repetitions that a task specifies, or a tenth of it in a short run.
inline std::size_t repetitions(task const& t, effort how)
{
    return how.count(how.is_brief() ? std::max<std::size_t>(1, t.times / 10) : t.times);
}

/// Calls `work(thread)` once in each thread.
template <class Work>
void time_pass(crew& team, std::span<double> out, Work work)
{
    step_counts counts;
    counts.tell(team.run([&](std::size_t i) { counts.of(i) = work(i); }), team.size(), out);
}

/// Starts threads that each call `work(thread)`, and joins them. The time includes starting and
/// joining the threads.
template <class Work>
void time_lives(std::size_t threads, std::span<double> out, Work work)
{
    step_counts counts;
    double const cpu = process_cpu_ns();
    double const from = wall_ns();
    std::vector<std::thread> all;
    for (std::size_t i = 0; i < threads; ++i)
        all.emplace_back([&, i] { counts.of(i) = work(i); });
    for (std::thread& t : all)
        t.join();
    counts.tell({wall_ns() - from, process_cpu_ns() - cpu}, threads, out);
}

} // namespace mallard::bench

// A group of threads that exist as long as a case, and the clocks around their work.
//
// All threads have started before anything is timed. Between rounds the threads sleep. Wall time
// goes from the moment when the first thread starts its work to the moment when the last thread is
// done.
//
// CPU time is the CPU time of the process. It is the same whether each thread has a processor or
// several threads share one, and it does not include the time in which a thread sleeps.
#pragma once

#include <bench/harness.hpp>

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace mallard::bench {

struct work_time {
    double wall_ns = 0;
    double cpu_ns = 0;
};

/// A barrier: no thread leaves until `count` threads have arrived. Waiting threads sleep.
class gate {
public:
    explicit gate(std::size_t count)
    {
        pthread_barrier_init(&barrier_, nullptr, static_cast<unsigned>(count));
    }
    gate(const gate&) = delete;
    gate& operator=(const gate&) = delete;
    ~gate() { pthread_barrier_destroy(&barrier_); }

    void pass() { pthread_barrier_wait(&barrier_); }

private:
    pthread_barrier_t barrier_;
};

class crew {
public:
    using work = std::function<void(std::size_t thread)>;

    explicit crew(std::size_t count);
    crew(const crew&) = delete;
    crew& operator=(const crew&) = delete;
    ~crew(); ///< tells the threads to exit, and joins them

    std::size_t size() const noexcept { return threads_.size(); }

    /// Runs `task` in each thread, and waits until all threads have finished it.
    work_time run(work task);

    /// Runs `task` in each thread for `ns`. The task has to return soon after `is_over()` becomes
    /// true.
    work_time run_for(double ns, work task);

    /// Starts the task in each thread. This is the first half of `run`; the caller must call
    /// `finish`, the second half, and may do other work before.
    void start(work task);
    work_time finish();

    bool is_over() const noexcept { return over_.load(std::memory_order_relaxed); }

private:
    struct alignas(128) span_of_time {
        double begin_ns = 0;
        double end_ns = 0;
    };

    void live(std::size_t index);

    gate started_; // the threads of the crew and the owner meet here
    gate finished_;
    std::atomic<bool> over_ = false;
    work task_; // if empty, the threads exit
    double cpu_before_ = 0;
    std::unique_ptr<span_of_time[]> spans_;
    std::vector<std::thread> threads_;
};

/// Calls `step()` until the time of the round is over. Returns the number of calls.
template <class Step>
std::size_t repeat(crew const& team, Step step)
{
    std::size_t done = 0;
    do {
        for (int i = 0; i < 64; ++i)
            step();
        done += 64;
    } while (!team.is_over());
    return done;
}

/// Returns the thread counts 1, 2, 4 and 8, and further doublings up to the number of processors.
std::vector<std::size_t> thread_counts(std::size_t least, std::size_t most = 64);

/// Returns the length of a round of a timed case, in ns.
double window_ns(effort);

} // namespace mallard::bench

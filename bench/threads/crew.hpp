// Threads that live as long as a case, and the clocks around what they do.
//
// They are started, and have all arrived, before anything is timed; between
// rounds they sleep. Wall time is from the first that begins to the last that is
// done. CPU time is the process's, so it counts the same work whether each
// thread has a processor or several share one, and does not count waiting that
// sleeps.
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

/// A barrier: no thread leaves before `count` threads have come. Waiting threads sleep.
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
    ~crew(); ///< joins them

    std::size_t size() const noexcept { return threads_.size(); }

    /// Runs `task` in each thread, to its end.
    work_time run(work task);

    /// Runs `task` in each thread for `ns`. The task has to return soon after `is_over()`.
    work_time run_for(double ns, work task);

    /// The two halves of `run`, so that a caller can do something in between.
    void start(work task);
    work_time finish();

    bool is_over() const noexcept { return over_.load(std::memory_order_relaxed); }

private:
    struct alignas(128) span_of_time {
        double begin_ns = 0;
        double end_ns = 0;
    };

    void live(std::size_t index);

    gate started_; // the crew and its owner
    gate finished_;
    std::atomic<bool> over_ = false;
    work task_; // none: go home
    double cpu_before_ = 0;
    std::unique_ptr<span_of_time[]> spans_;
    std::vector<std::thread> threads_;
};

/// Calls `step()` until the time is over. Returns the number of calls.
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

/// The thread counts 1, 2, 4 and 8, and further doublings up to the number of processors.
std::vector<std::size_t> thread_counts(std::size_t least, std::size_t most = 64);

/// The ns of a round of a timed case.
double window_ns(effort);

} // namespace mallard::bench

#include <bench/threads/crew.hpp>

#include <bench/clock.hpp>

#include <algorithm>
#include <chrono>

namespace mallard::bench {
crew::crew(std::size_t count)
    : started_(count + 1), finished_(count + 1), spans_(std::make_unique<span_of_time[]>(count))
{
    for (std::size_t i = 0; i < count; ++i)
        threads_.emplace_back([this, i] { live(i); });
    run([](std::size_t) {}); // waits until all threads have started
}

crew::~crew()
{
    task_ = nullptr;
    started_.pass();
    for (std::thread& t : threads_)
        t.join();
}

void crew::live(std::size_t index)
{
    for (;;) {
        started_.pass();
        if (task_ == nullptr)
            return;
        spans_[index].begin_ns = wall_ns();
        task_(index);
        spans_[index].end_ns = wall_ns();
        finished_.pass();
    }
}

void crew::start(work task)
{
    over_.store(false, std::memory_order_relaxed);
    task_ = std::move(task);
    cpu_before_ = process_cpu_ns();
    started_.pass();
}

work_time crew::finish()
{
    over_.store(true, std::memory_order_relaxed);
    finished_.pass();
    double const cpu = process_cpu_ns() - cpu_before_;
    double first = spans_[0].begin_ns;
    double last = spans_[0].end_ns;
    for (std::size_t i = 1; i < size(); ++i) {
        first = std::min(first, spans_[i].begin_ns);
        last = std::max(last, spans_[i].end_ns);
    }
    return {last - first, cpu};
}

work_time crew::run(work task)
{
    start(std::move(task));
    return finish();
}

work_time crew::run_for(double ns, work task)
{
    start(std::move(task));
    std::this_thread::sleep_for(std::chrono::duration<double, std::nano>(ns));
    return finish();
}

std::vector<std::size_t> thread_counts(std::size_t least, std::size_t most)
{
    std::size_t const processors = std::max(8u, std::thread::hardware_concurrency());
    std::vector<std::size_t> all;
    for (std::size_t count = 1; count <= std::min(most, processors); count *= 2) {
        if (count >= least)
            all.push_back(count);
    }
    return all;
}

double window_ns(effort how)
{
    return how.is_smoke() ? 2e5 : how.is_brief() ? 8e6 : 40e6;
}

} // namespace mallard::bench

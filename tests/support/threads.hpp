// Helpers for tests with several threads. All waits have a timeout, so that a test fails instead of
// hanging.
#pragma once

#include "length.hpp"
#include "require.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <latch>
#include <mutex>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

namespace mallard::testing {

/// A gate that opens once and lets all waiting threads pass.
class gate {
public:
    void open()
    {
        std::lock_guard const alone(lock_);
        open_ = true;
        changed_.notify_all();
    }
    bool opens_in_the_end()
    {
        std::unique_lock held(lock_);
        return changed_.wait_for(held, std::chrono::seconds(60), [this] { return open_; });
    }
    void wait() { require(opens_in_the_end(), "a gate opens in the end"); }

private:
    std::mutex lock_;
    std::condition_variable changed_;
    bool open_ = false;
};

/// Waits until `is_so()` is true. After 60 seconds, stops the process and prints the event that has
/// not happened.
template <class F>
void wait_until(F is_so, const char* event)
{
    auto const last = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!is_so()) {
        require(std::chrono::steady_clock::now() < last, event);
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
}

/// Returns whether a thread sleeps in the kernel: the thread `id`, or the main thread of process
/// `id`. Does not allocate.
inline bool is_asleep(pid_t id)
{
    char path[64] = {};
    std::snprintf(path, sizeof path, "/proc/%d/stat", static_cast<int>(id));
    char text[512] = {};
    int const file = ::open(path, O_RDONLY | O_CLOEXEC);
    ssize_t const bytes = file < 0 ? 0 : ::read(file, text, sizeof text - 1);
    ::close(file);
    const char* const name_end = std::strrchr(text, ')'); // the state follows the name
    return bytes > 0 && name_end != nullptr && name_end[1] == ' ' && name_end[2] == 'S';
}

/// Calls `f(number)` in `count` threads that start together, and joins them.
template <class F>
void in_threads(std::size_t count, F f)
{
    std::latch all_here(static_cast<std::ptrdiff_t>(count));
    std::vector<std::jthread> threads;
    for (std::size_t number = 0; number < count; ++number)
        threads.emplace_back([&all_here, &f, number] {
            all_here.arrive_and_wait();
            f(number);
        });
}

/// Calls `f()` in a new thread, and joins the thread.
template <class F>
void in_a_thread(F f)
{
    std::jthread(std::move(f)).join();
}

/// Threads that call `work(number, round)` again and again until this object is destroyed.
template <class Work>
class at_work {
public:
    at_work(std::size_t count, Work work)
    {
        for (std::size_t number = 0; number < count; ++number)
            threads_.emplace_back([this, work, number] {
                for (std::size_t round = 0; !stop_; ++round)
                    work(number, round);
            });
    }
    ~at_work() { stop_ = true; }

private:
    std::atomic<bool> stop_ = false;
    std::vector<std::jthread> threads_;
};

/// A thread that runs functions for the test, one after the other.
class puppet {
public:
    puppet() : thread_([this] { run(); }) {}
    puppet(const puppet&) = delete;
    puppet& operator=(const puppet&) = delete;
    ~puppet()
    {
        do_(nullptr, nullptr);
        thread_.join();
    }

    /// Runs `f` in the thread and waits until it returns.
    template <class F>
    void operator()(F f)
    {
        do_([](void* what) { (*static_cast<F*>(what))(); }, &f);
    }

private:
    void do_(void (*call)(void*), void* what)
    {
        std::unique_lock held(lock_);
        call_ = call;
        what_ = what;
        busy_ = true;
        changed_.notify_all();
        changed_.wait(held, [this] { return !busy_; });
    }

    void run()
    {
        std::unique_lock held(lock_);
        for (;;) {
            changed_.wait(held, [this] { return busy_; });
            if (call_ != nullptr)
                call_(what_);
            busy_ = false;
            changed_.notify_all();
            if (call_ == nullptr)
                return;
        }
    }

    std::mutex lock_;
    std::condition_variable changed_;
    void (*call_)(void*) = nullptr;
    void* what_ = nullptr;
    bool busy_ = false;
    std::thread thread_; // last, because the thread uses the other members
};

} // namespace mallard::testing

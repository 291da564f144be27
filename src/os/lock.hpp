// The lock of the malloc engine.
#pragma once

#include "system.hpp"

namespace mallard::os {

/// The number of locks that this thread holds or waits for. If this number is above 0 in a signal
/// handler, the signal has interrupted code that holds or waits for a lock. Locks that are held
/// across a fork do not count.
extern constinit thread_local unsigned locks_of_thread;

/// A mutex of one word (futex). Waiters spin, then sleep. Threads hold a lock for a few dozen
/// nanoseconds, or during one system call. A forking thread holds all locks for longer, and marks
/// most of them as held across the fork (`keep`, see src/heap/guests.hpp).
class lock {
public:
    void take() noexcept
    {
        while (!take_unless_kept()) [[unlikely]]
            wait_for_fork();
    }
    /// Locks and returns true, or returns false if another thread holds the lock across a fork.
    bool take_unless_kept() noexcept
    {
        locks_of_thread += 1;
        std::uint32_t state = open_state;
        if (is_single_threaded() && state_.load(std::memory_order_relaxed) == open_state)
            state_.store(taken, std::memory_order_relaxed);
        else if (!state_.compare_exchange_strong(state, taken, std::memory_order_acquire))
            [[unlikely]]
            return wait();
        return true;
    }
    bool try_take() noexcept
    {
        locks_of_thread += 1;
        std::uint32_t state = open_state;
        bool const done = state_.compare_exchange_strong(state, taken, std::memory_order_acquire);
        locks_of_thread -= !done;
        return done;
    }
    void give() noexcept
    {
        if (is_single_threaded())
            state_.store(open_state, std::memory_order_relaxed);
        else if (state_.exchange(open_state, std::memory_order_release) == awaited) [[unlikely]]
            wake(1);
        locks_of_thread -= 1;
    }

    /// Marks the lock as held across a fork, until `open` unlocks it. The thread that holds the
    /// lock calls this function before it forks. Sleeping waiters wake up and stop waiting.
    void keep() noexcept
    {
        if (state_.exchange(kept, std::memory_order_acq_rel) == awaited)
            wake(all);
        locks_of_thread -= 1;
    }
    void open() noexcept
    {
        if (state_.exchange(open_state, std::memory_order_release) == kept_awaited)
            wake(all);
    }
    bool is_kept() const noexcept { return state_.load(std::memory_order_acquire) >= kept; }

    /// Unlocks in the child of a fork, where the thread that held the lock need not exist.
    void reset() noexcept { state_.store(open_state, std::memory_order_relaxed); }

private:
    enum : std::uint32_t {
        open_state,
        taken,
        awaited, ///< locked, and a waiter may sleep
        kept,
        kept_awaited,
    };
    static constexpr int all = 0x7fffffff;

    bool wait() noexcept;
    void wait_for_fork() noexcept;
    void sleep(std::uint32_t state) noexcept;
    void wake(int most) noexcept;

    std::atomic<std::uint32_t> state_{open_state};
};

/// A scope in which this thread holds a lock.
class hold {
public:
    explicit hold(lock& l) noexcept : lock_(l) { lock_.take(); }
    hold(const hold&) = delete;
    hold& operator=(const hold&) = delete;
    ~hold() { lock_.give(); }

private:
    lock& lock_;
};

} // namespace mallard::os

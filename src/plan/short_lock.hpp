// A lock that no thread waits for without end.
#pragma once

#include "../os/processor.hpp"
#include "../os/ticks_linux.hpp"

#include <atomic>
#include <cstdint>

#include <sched.h>

namespace mallard::plan {

/// Protects some tens of instructions. The child of a `clone` that no handler of fork sees may find
/// the lock taken by a thread that the child does not have, so `try_take` gives up after 20 ms,
/// and the caller does without. A signal handler that has interrupted the owner gives up at once.
/// So does a thread during a fork: the fork may wait for a lock of libc, such as that of the list
/// of streams, whose owner may wait for this thread.
class short_lock {
public:
    bool try_take() noexcept { return try_take(false); }
    void give() noexcept { owner_.store(0, std::memory_order_release); }

    /// Whether the calling thread has the lock.
    bool is_mine() const noexcept
    {
        return owner_.load(std::memory_order_relaxed) == os::thread_pointer();
    }

    /// Keeps other threads out during a fork, so that the child finds the protected variables as no
    /// thread is changing them. False: the lock was not available.
    bool lock_for_fork() noexcept
    {
        if (!try_take(true))
            return false;
        is_locked_for_fork_.store(true, std::memory_order_relaxed);
        return true;
    }
    /// A lock that was not available still has its owner in the parent. In the child it has none,
    /// unless a signal handler forks that has interrupted the owner.
    void unlock_after_fork(bool is_child) noexcept
    {
        bool const is_locked = is_locked_for_fork_.load(std::memory_order_relaxed);
        if (is_mine() ? is_locked : is_child) {
            is_locked_for_fork_.store(false, std::memory_order_relaxed);
            give();
        }
    }

private:
    bool try_take(bool waits_for_fork) noexcept
    {
        std::uintptr_t const me = os::thread_pointer();
        std::uint64_t begin = 0;
        for (int tries = 0;; ++tries) {
            std::uintptr_t owner = 0;
            if (owner_.compare_exchange_strong(owner, me, std::memory_order_acquire,
                                               std::memory_order_relaxed))
                return true;
            bool const forks = is_locked_for_fork_.load(std::memory_order_relaxed);
            if (owner == me || (forks && !waits_for_fork))
                return false;
            if (tries < tries_without_yield)
                continue;
            // On a busy machine a yield may take a time slice of other processes, so tries are not
            // counted.
            std::uint64_t const now = os::monotonic_ns();
            if (begin == 0)
                begin = now;
            else if (now - begin > patience_ns)
                return false;
            ::sched_yield();
        }
    }
    static constexpr int tries_without_yield = 100;
    static constexpr std::uint64_t patience_ns = 20'000'000;
    std::atomic<std::uintptr_t> owner_{0}; ///< the thread pointer of the owner
    std::atomic<bool> is_locked_for_fork_{false};
};

} // namespace mallard::plan

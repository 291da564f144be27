// A lock for which no thread waits forever.
#pragma once

#include "../os/processor.hpp"
#include "../os/ticks_linux.hpp"

#include <atomic>
#include <cstdint>

#include <sched.h>

namespace mallard::plan {

/// A lock that protects a few dozen instructions. After a `clone` for which no fork handlers run, a
/// thread that does not exist in the child may hold the lock. So `try_take` gives up after 20 ms,
/// and the caller must manage without the lock. A signal handler that has interrupted the owner
/// gives up immediately. A thread that needs the lock during a fork also gives up immediately. The
/// reason is that the fork may wait for a lock of libc, such as the lock of the stream list, whose
/// owner may wait for this thread.
class short_lock {
public:
    bool try_take() noexcept { return try_take(false); }
    void give() noexcept { owner_.store(0, std::memory_order_release); }

    /// Returns whether the calling thread holds the lock.
    bool is_mine() const noexcept
    {
        return owner_.load(std::memory_order_relaxed) == os::thread_pointer();
    }

    /// Locks for a fork, so that no thread is changing the protected variables when they are copied
    /// to the child. Returns false if the lock was not available.
    bool lock_for_fork() noexcept
    {
        if (!try_take(true))
            return false;
        is_locked_for_fork_.store(true, std::memory_order_relaxed);
        return true;
    }
    /// Unlocks after a fork. If `lock_for_fork` failed, the parent does not unlock, because another
    /// thread is still the owner. The child unlocks in that case, because the owner does not exist
    /// there. The exception is a child that a signal handler forked after it had interrupted the
    /// owner.
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
            // On a busy machine, a yield may last as long as the time slices of other processes. So
            // the time is limited, and not the number of yields.
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

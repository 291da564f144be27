// The position that a thread publishes, and for which other threads wait.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace mallard::replay {

/// The published position of one thread, in a separate cache line. Only this thread publishes. Any
/// other thread may wait.
///
///     publisher                      waiter
///     position_ = p    (release)     seen = wakes_
///     if (p >= wanted_)              wanted_ = min(wanted_, w)
///         wanted_ = never            barrier in all threads
///         ++wakes_, wake all         if (position_ < w) sleep while wakes_ == seen
///
/// Either the publisher sees the waiter's `wanted_`, or the waiter sees the new position, because
/// the waiter's barrier replaces a fence between the publisher's store and load. Such a fence would
/// cost more than the rest of a publish. A waiter reads `wakes_` before it writes `wanted_`. So if
/// the publisher resets `wanted_` before the waiter sleeps, `wakes_` changes, and the waiter does
/// not fall asleep. tests/models/replay_position.pml checks this protocol.
///
/// There is no deadlock, because all ops (recorded calls) can be put into one order in which each
/// publish comes before its waits (see `walk`).
class alignas(64) position {
public:
    /// Publishes a position, which must be larger than the last published position.
    void publish(std::uint64_t at) noexcept
    {
        position_.store(at, std::memory_order_release);
        std::atomic_signal_fence(
            std::memory_order_seq_cst); // the barrier of a waiter replaces a fence here
        if (at >= wanted_.load(std::memory_order_relaxed)) [[unlikely]]
            wake_all();
    }

    /// Waits until the position is at least `at`. If `spins` is not 0, spins for a few microseconds
    /// before it sleeps.
    void wait(std::uint64_t at, unsigned spins) noexcept
    {
        if (position_.load(std::memory_order_acquire) < at) [[unlikely]]
            wait_longer(at, spins);
    }

private:
    static constexpr std::uint64_t never = UINT64_MAX;

    void wake_all() noexcept;
    void wait_longer(std::uint64_t at, unsigned spins) noexcept;
    void ask_for(std::uint64_t at) noexcept;

    std::atomic<std::uint64_t> position_{0};
    std::atomic<std::uint64_t> wanted_{never}; ///< the smallest position for which a thread sleeps
    std::atomic<std::uint32_t> wakes_{0};      ///< threads sleep until this number changes
};

} // namespace mallard::replay

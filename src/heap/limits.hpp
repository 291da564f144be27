// Limits on the memory that malloc, or one heap, may hold.
#pragma once

#include "../os/system.hpp"

#include <atomic>
#include <cstddef>

namespace mallard::engine {

/// A function of the program that is called when a limit is reached. The thread that reaches the
/// limit calls the function without holding a lock, so the function may allocate and free. `held`
/// is the number of bytes that count against the limits.
using limit_call = void (*)(void* context, std::size_t held, std::size_t limit);

/// A soft and a hard limit on the memory in use. Spans, slabs and mappings in use count with their
/// whole size. Idle memory does not count.
///
/// When the soft limit is exceeded, the user's function is called. The next call for the soft limit
/// comes only after the held bytes have fallen below three quarters of that limit. When an
/// allocation would exceed the hard limit, the function is called, and may free memory. The
/// allocation fails if it would still exceed the limit.
class limits {
public:
    /// Sets both limits; 0 means no limit. The function `call` may be null.
    void set(std::size_t soft, std::size_t hard, limit_call call, void* context) noexcept;

    /// Counts bytes against the limits. If the hard limit would be exceeded, returns false and
    /// counts nothing.
    bool try_charge(std::size_t bytes) noexcept
    {
        std::size_t const held = os::add(held_, bytes);
        if (held <= low_.load(std::memory_order_relaxed)) [[likely]]
            return true;
        return charge_above(bytes, held);
    }
    void uncharge(std::size_t bytes) noexcept { os::add(held_, ~bytes + 1); }

    /// Returns whether a call of the user's function is due. `call_back` makes that call, and
    /// returns true if the hard limit was reached. The function may have freed memory then, so a
    /// second attempt to allocate may succeed.
    bool has_pending_call() const noexcept { return pending_.load(std::memory_order_relaxed) != 0; }
    [[gnu::cold]] bool call_back() noexcept;
    /// Runs in the child of a fork. If a thread that does not exist in the child was calling the
    /// user's function, marks that call as finished.
    void forget_calling_thread() noexcept;

    /// Returns how many bytes can still be allocated before the hard limit is reached.
    std::size_t left() const noexcept
    {
        std::size_t const hard = hard_.load(std::memory_order_relaxed);
        std::size_t const now = held();
        return hard > now ? hard - now : 0;
    }
    std::size_t held() const noexcept { return held_.load(std::memory_order_relaxed); }

private:
    [[gnu::cold]] bool charge_above(std::size_t bytes, std::size_t held) noexcept;

    enum : unsigned { soft_met = 1, hard_met = 2 };

    std::atomic<std::size_t> held_{0};
    /// The smaller of the two limits, or 0 after a report of the soft limit. A charge calls
    /// `charge_above` if the held bytes exceed `low_`. So while `low_` is 0, every charge calls
    /// `charge_above`. The first of these calls that finds the held bytes below three quarters of
    /// the soft limit resets `low_`.
    std::atomic<std::size_t> low_{~std::size_t{0}};
    std::atomic<unsigned> pending_{0};
    std::atomic<std::size_t> soft_{~std::size_t{0}};
    std::atomic<std::size_t> hard_{~std::size_t{0}};
    std::atomic<limit_call> call_{nullptr};
    std::atomic<void*> context_{nullptr};
    /// The thread that is inside the user's function. Until that thread returns, the function is
    /// not called again.
    std::atomic<const void*> calling_thread_{nullptr};
};

extern constinit limits the_limits;

/// Calls `allocate()`, then the user's function if a limit was reached, and then `allocate()` once
/// more if the first attempt failed at the hard limit. Requires that no lock is held and that no
/// thread cache is busy.
template <class F>
[[gnu::always_inline]] inline void* within_limits(limits& which, F allocate) noexcept
{
    void* const block = allocate();
    if (!which.has_pending_call()) [[likely]]
        return block;
    return which.call_back() && block == nullptr ? allocate() : block;
}
template <class F>
[[gnu::always_inline]] inline void* within_limits(F allocate) noexcept
{
    return within_limits(the_limits, allocate);
}

} // namespace mallard::engine

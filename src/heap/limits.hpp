// How much the program may have of the system's memory through malloc, or through a heap.
#pragma once

#include "../os/system.hpp"

#include <atomic>
#include <cstddef>

namespace mallard::engine {

/// Called when a limit is met, by the thread that meets it, with no lock held: it may
/// allocate and free. `held` is what the engine has, in bytes.
using limit_call = void (*)(void* context, std::size_t held, std::size_t limit);

/// Counted are slices in use, whole spans and slabs that is, and mappings; not what is free
/// and idle. Above the soft limit the call is made once, until a quarter less is held; what
/// would exceed the hard one is refused, after a call that may free something.
class limits {
public:
    /// 0: no limit. `call` may be null.
    void set(std::size_t soft, std::size_t hard, limit_call call, void* context) noexcept;

    /// So many bytes more are held from now on. False: refused.
    bool admit(std::size_t bytes) noexcept
    {
        std::size_t const held = os::add(held_, bytes);
        if (held <= low_.load(std::memory_order_relaxed)) [[likely]]
            return true;
        return admit_above(bytes, held);
    }
    void discharge(std::size_t bytes) noexcept { os::add(held_, ~bytes + 1); }

    /// Whether a call is due: then `tell`, and, after a refusal, try again if it says so.
    bool has_news() const noexcept { return news_.load(std::memory_order_relaxed) != 0; }
    [[gnu::cold]] bool tell() noexcept;
    /// In the child of a fork: a thread that is not there is in no call.
    void forget_teller() noexcept;

    /// Under the hard limit.
    std::size_t left() const noexcept
    {
        std::size_t const hard = hard_.load(std::memory_order_relaxed);
        std::size_t const now = held();
        return hard > now ? hard - now : 0;
    }
    std::size_t held() const noexcept { return held_.load(std::memory_order_relaxed); }

private:
    [[gnu::cold]] bool admit_above(std::size_t bytes, std::size_t held) noexcept;

    enum : unsigned { soft_met = 1, hard_met = 2 };

    std::atomic<std::size_t> held_{0};
    std::atomic<std::size_t> low_{~std::size_t{0}}; // no limit is met up to here
    std::atomic<unsigned> news_{0};
    std::atomic<std::size_t> soft_{~std::size_t{0}};
    std::atomic<std::size_t> hard_{~std::size_t{0}};
    std::atomic<limit_call> call_{nullptr};
    std::atomic<void*> context_{nullptr};
    std::atomic<bool> told_{false};            // of the soft one
    std::atomic<const void*> teller_{nullptr}; // the thread in a call, which is not told again
};

extern constinit limits the_limits;

/// What `allocate()` returns, after the calls that are due, and once more if one of them may
/// have helped. No lock is held, and no thread cache is at work.
template <class F>
[[gnu::always_inline]] inline void* within_limits(limits& which, F allocate) noexcept
{
    void* const block = allocate();
    if (!which.has_news()) [[likely]]
        return block;
    return which.tell() && block == nullptr ? allocate() : block;
}
template <class F>
[[gnu::always_inline]] inline void* within_limits(F allocate) noexcept
{
    return within_limits(the_limits, allocate);
}

} // namespace mallard::engine

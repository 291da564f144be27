// An adaptor that holds a lock around each call.
#pragma once

#include <mallard/adapt/adaptor.hpp>

#include <mutex>

namespace mallard {

/// Makes an allocator or source usable by any number of threads. Each call holds a lock, even while
/// the wrapped object grows. `Mutex` is any type with `lock` and `unlock`.
///
///     mallard::synchronized<mallard::arena<>> request;
///
/// Use `synchronized` for arenas and adaptors. A pool or multipool has faster threading modes. With
/// `sync::mutex` other threads continue while one thread grows the pool, and with
/// `sync::thread_cached` most calls lock nothing.
///
/// To hold the lock during several calls of the wrapped object, use `with`. The wrapped object must
/// not call this object. A `synchronized` is neither copied nor moved.
template <source Inner, class Mutex = std::mutex>
class synchronized : public adaptor_calls<synchronized<Inner, Mutex>, block_allocator<Inner>,
                                          chunk_source<Inner>> {
    friend adaptor_access;

public:
    using upstream_type = Inner;             ///< the type of the wrapped object
    static constexpr bool any_thread = true; ///< see the concept `shareable`

    constexpr synchronized() noexcept
        requires std::default_initializable<Inner>
    = default;
    /// Constructs the wrapped object from `args`.
    template <class... Args>
        requires std::constructible_from<Inner, Args...>
    constexpr explicit synchronized(std::in_place_t, Args&&... args)
        : inner_(std::forward<Args>(args)...)
    {
    }
    synchronized(const synchronized&) = delete;
    synchronized& operator=(const synchronized&) = delete;

    /// Calls `f(wrapped object)` under the lock.
    ///
    ///     memory.with([](auto& arena) { arena.trim(); });
    template <class F>
    decltype(auto) with(F f) noexcept(noexcept(f(std::declval<Inner&>())))
    {
        std::lock_guard const alone(lock_);
        return f(inner_);
    }
    /// Calls `f(wrapped object)` under the lock. `f` receives the object as a constant.
    template <class F>
    decltype(auto) with(F f) const noexcept(noexcept(f(std::declval<const Inner&>())))
    {
        std::lock_guard const alone(lock_);
        return f(inner_);
    }

    /// Frees all blocks and keeps the memory.
    void reset() noexcept
        requires resettable<Inner>
    {
        with([](Inner& in) { in.reset(); });
    }
    /// Frees all blocks and returns the memory to the source.
    void release() noexcept
        requires resettable<Inner>
    {
        with([](Inner& in) { in.release(); });
    }
    /// Returns idle memory to the source, except for `keep` bytes.
    void trim(std::size_t keep = 0) noexcept
        requires resettable<Inner>
    {
        with([keep](Inner& in) { in.trim(keep); });
    }

    /// Returns whether the wrapped object owns the address.
    bool owns(const void* p) const noexcept
        requires owning<Inner>
    {
        return with([p](const Inner& in) { return in.owns(p); });
    }
    /// Returns the counts of the wrapped object.
    auto counts() const noexcept
        requires counting<Inner>
    {
        return with([](const Inner& in) { return in.counts(); });
    }
    /// Returns the statistics of the wrapped allocator.
    auto stats() const noexcept
        requires measured<Inner>
    {
        return with([](const Inner& in) { return in.stats(); });
    }

private:
    template <bool Throws>
    [[gnu::always_inline]] chunk take_one(layout l) noexcept(!Throws)
    {
        return with([l](Inner& in) { return take_or_null<Throws>(in, l); });
    }
    [[gnu::always_inline]] void give_one(chunk c) noexcept
    {
        with([c](Inner& in) { mallard::give(in, c); });
    }

    mutable Mutex lock_;
    [[no_unique_address]] Inner inner_{};
};

} // namespace mallard

// An adaptor that calls an observer when an allocator grows, fails or is destroyed.
#pragma once

#include <mallard/adapt/counted.hpp>

namespace mallard {

/// An observer for a chunk source. It has at least one of the members `grew`, `failed` and `gave`.
template <class O>
concept source_observer = requires(O& o, chunk c) { o.grew(c); } || requires(O& o, layout l) {
    o.failed(l);
} || requires(O& o, chunk c) { o.gave(c); };
/// An observer for an allocator. It has the member `exhausted`.
template <class O>
concept allocator_observer = requires(O& o, layout l) { o.exhausted(l); };
/// An observer that is called before an allocator or source is destroyed. It has the member
/// `destroyed`.
template <class O>
concept end_observer = requires(O& o, const snapshot& s) { o.destroyed(s); };

/// An observer with at least one member that `observed<Inner>` can call.
template <class O, class Inner>
concept observer_of = (chunk_source<Inner> && source_observer<O>) ||
                      (block_allocator<Inner> && allocator_observer<O>) || end_observer<O>;

/// Calls members of `Observer` on slow paths. The observer may have any of these members:
///
///     struct log {
///         void grew(mallard::chunk) noexcept;                // after a source supplied a chunk
///         void failed(mallard::layout) noexcept;             // a source had no memory
///         void gave(mallard::chunk) noexcept;                // before the chunk is returned
///         void exhausted(mallard::layout) noexcept;          // an allocator had no memory
///         void destroyed(const mallard::snapshot&) noexcept; // before the end of the allocator
///     };
///     mallard::pool<mallard::observed<mallard::default_heap, log>> nodes(64);
///
/// Wrap the source to observe growth. Wrap the allocator to observe failures, and the blocks that
/// are still in use when the allocator is destroyed. On the hot path of an observed allocator,
/// `allocate` has no additional instruction, and `try_allocate` has one additional test.
///
/// An observer must not throw, and must not call the observed allocator. It may use other
/// allocators, lock mutexes and write to files. The thread whose call caused the event calls the
/// observer, so several threads may call the observer at the same time. `observed` holds no lock
/// during the call. But a pool for several threads holds its growth lock while it calls a source
/// that is not `shareable`. If that source is observed, the observer is called under this lock.
/// Meanwhile other threads can still free blocks, and allocate blocks that need no growth.
///
/// An `observed` is neither copied nor moved, so `destroyed` is called exactly once. A pool that
/// moves can use an `observed` source by `ref`, without owning the source.
template <source Inner, observer_of<Inner> Observer>
class observed : public adaptor<observed<Inner, Observer>, Inner> {
    using base = adaptor<observed, Inner>;
    friend adaptor_access;

public:
    /// Whether any thread may call this object (see `shareable`).
    static constexpr bool any_thread = shareable<Inner> && shareable<Observer>;

    constexpr observed() noexcept
        requires std::default_initializable<Inner> && std::default_initializable<Observer>
    = default;
    /// Makes an allocator that calls the observer.
    constexpr explicit observed(Observer told) noexcept
        requires std::default_initializable<Inner>
        : observer_(std::move(told))
    {
    }
    /// Makes an allocator that calls the observer. The other arguments construct the wrapped
    /// object.
    template <class... Args>
    constexpr observed(Observer told, std::in_place_t, Args&&... args)
        : base(std::in_place, std::forward<Args>(args)...), observer_(std::move(told))
    {
    }
    observed(const observed&) = delete;
    observed& operator=(const observed&) = delete;
    ~observed()
    {
        if constexpr (end_observer<Observer>) {
            snapshot const last = snapshot_of(base::upstream());
            static_assert(noexcept(observer_.destroyed(last)), "an observer must be noexcept");
            observer_.destroyed(last);
        }
    }

    /// Returns the observer.
    Observer& observer() noexcept { return observer_; }
    const Observer& observer() const noexcept { return observer_; }

private:
    template <bool Throws>
    [[gnu::always_inline]] chunk take_one(layout l) noexcept(!Throws)
    {
        chunk const taken =
            base::template take_below_or<Throws>(l, [this, l]() noexcept { report_failure(l); });
        if constexpr (chunk_source<Inner> && requires { observer_.grew(taken); }) {
            static_assert(noexcept(observer_.grew(taken)), "an observer must be noexcept");
            if (Throws || taken.data != nullptr)
                observer_.grew(taken);
        }
        return taken;
    }
    [[gnu::always_inline]] void give_one(chunk c) noexcept
    {
        if constexpr (chunk_source<Inner> && requires { observer_.gave(c); }) {
            static_assert(noexcept(observer_.gave(c)), "an observer must be noexcept");
            observer_.gave(c);
        }
        base::give_below(c);
    }
    static void forget_all() noexcept {}

    MALLARD_COLD void report_failure(layout l) noexcept
    {
        if constexpr (chunk_source<Inner> && requires { observer_.failed(l); }) {
            static_assert(noexcept(observer_.failed(l)), "an observer must be noexcept");
            observer_.failed(l);
        }
        if constexpr (block_allocator<Inner> && requires { observer_.exhausted(l); }) {
            static_assert(noexcept(observer_.exhausted(l)), "an observer must be noexcept");
            observer_.exhausted(l);
        }
    }

    [[no_unique_address]] Observer observer_{};
};

} // namespace mallard

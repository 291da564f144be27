// An adaptor that tells an observer what happens rarely.
#pragma once

#include <mallard/debug/snapshot.hpp>

namespace mallard {

/// What an observer may be told; it has one at least. Around a chunk source:
template <class O>
concept source_observer = requires(O& o, chunk c) { o.grew(c); } || requires(O& o, layout l) {
    o.refused(l);
} || requires(O& o, chunk c) { o.gave(c); };
/// Around an allocator:
template <class O>
concept allocator_observer = requires(O& o, layout l) { o.exhausted(l); };
/// And around either, at its end:
template <class O>
concept end_observer = requires(O& o, const snapshot& s) { o.destroyed(s); };

template <class O, class Inner>
concept observer_of = (chunk_source<Inner> && source_observer<O>) ||
                      (block_allocator<Inner> && allocator_observer<O>) || end_observer<O>;

/// Tells `Observer` what happens on slow paths, in those of its members that it has:
///
///     struct log {
///         void grew(mallard::chunk) noexcept;               // a source gave it
///         void refused(mallard::layout) noexcept;           // a source had nothing
///         void gave(mallard::chunk) noexcept;               // back to a source, just before
///         void exhausted(mallard::layout) noexcept;         // an allocator had nothing
///         void destroyed(const mallard::snapshot&) noexcept; // at the end, before it is
///     };
///     mallard::pool<mallard::observed<mallard::default_heap, log>> nodes(64);
///
/// So put it around the source to see growth, and around the allocator to see refusals
/// and what was left at the end. An allocator around which it stands keeps its hot
/// path: `allocate` gains nothing, `try_allocate` a test.
///
/// An observer does not throw, and does not call the allocator that it hears about.
/// It may use others, lock, and write; it is called by the thread that caused it, and
/// no lock of this layer is held. Under a pool for several threads the growing thread
/// is told while the growth lock is held, one at a time unless the source is
/// `shareable`; frees and hits of others go on meanwhile. Where `observed` is called by
/// several threads, so is its observer.
///
/// Neither copied nor moved: `destroyed` comes once. A pool that is to be moved
/// borrows it, by `ref`.
template <source Inner, observer_of<Inner> Observer>
class observed : public adaptor<observed<Inner, Observer>, Inner> {
    using base = adaptor<observed, Inner>;
    friend base;

public:
    static constexpr bool any_thread = shareable<Inner> && shareable<Observer>;

    constexpr observed() noexcept
        requires std::default_initializable<Inner> && std::default_initializable<Observer>
    = default;
    constexpr explicit observed(Observer told) noexcept
        requires std::default_initializable<Inner>
        : observer_(std::move(told))
    {
    }
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
            static_assert(noexcept(observer_.destroyed(last)), "an observer does not throw");
            observer_.destroyed(last);
        }
    }

    Observer& observer() noexcept { return observer_; }
    const Observer& observer() const noexcept { return observer_; }

private:
    template <bool Throws>
    [[gnu::always_inline]] chunk take_one(layout l) noexcept(!Throws)
    {
        chunk const taken =
            base::template take_below_or<Throws>(l, [this, l]() noexcept { failed(l); });
        if constexpr (chunk_source<Inner> && requires { observer_.grew(taken); }) {
            static_assert(noexcept(observer_.grew(taken)), "an observer does not throw");
            if (Throws || taken.data != nullptr)
                observer_.grew(taken);
        }
        return taken;
    }
    [[gnu::always_inline]] void give_one(chunk c) noexcept
    {
        if constexpr (chunk_source<Inner> && requires { observer_.gave(c); }) {
            static_assert(noexcept(observer_.gave(c)), "an observer does not throw");
            observer_.gave(c);
        }
        base::give_below(c);
    }
    static void forget_all() noexcept {}

    MALLARD_COLD void failed(layout l) noexcept
    {
        if constexpr (chunk_source<Inner> && requires { observer_.refused(l); }) {
            static_assert(noexcept(observer_.refused(l)), "an observer does not throw");
            observer_.refused(l);
        }
        if constexpr (block_allocator<Inner> && requires { observer_.exhausted(l); }) {
            static_assert(noexcept(observer_.exhausted(l)), "an observer does not throw");
            observer_.exhausted(l);
        }
    }

    [[no_unique_address]] Observer observer_{};
};

} // namespace mallard

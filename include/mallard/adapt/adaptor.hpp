// What all adaptors share: what they wrap, and how they look like it.
#pragma once

#include <mallard/source.hpp>

#include <type_traits>

namespace mallard {

// clang-format off
/// Can say what it was asked for: `counted`, and whatever is around it.
template <class A>
concept counting = requires(const A& a) { { a.counts() } noexcept; };

/// Can say what it holds: arenas, pools and multipools, and whatever is around them.
template <class A>
concept measured = requires(const A& a) { { a.stats() } noexcept; };
// clang-format on

/// The calls of an allocator where `Blocks`, of a chunk source where `Chunks`, made
/// of two functions of `Face`, `take_any` and `give_any`. All of this is inlined by
/// order: a chunk is three words, and between two calls they would pass through memory.
template <class Face, bool Blocks, bool Chunks>
class adaptor_calls {
public:
    [[nodiscard, gnu::always_inline]] void* allocate(layout l)
        requires Blocks
    {
        return face().template take_any<true>(l).data;
    }
    [[nodiscard, gnu::always_inline]] void* try_allocate(layout l) noexcept
        requires Blocks
    {
        return face().template take_any<false>(l).data;
    }
    [[gnu::always_inline]] void deallocate(void* block, layout l) noexcept
        requires Blocks
    {
        face().give_any({block, l.bytes, l.align});
    }

    [[nodiscard, gnu::always_inline]] chunk take(layout l)
        requires Chunks
    {
        return face().template take_any<true>(l);
    }
    [[nodiscard, gnu::always_inline]] chunk try_take(layout l) noexcept
        requires Chunks
    {
        return face().template take_any<false>(l);
    }
    [[gnu::always_inline]] void give(chunk c) noexcept
        requires Chunks
    {
        face().give_any(c);
    }

protected:
    ~adaptor_calls() = default;
    constexpr adaptor_calls() noexcept = default;
    constexpr adaptor_calls(adaptor_calls&&) noexcept = default;
    constexpr adaptor_calls& operator=(adaptor_calls&&) noexcept = default;

private:
    Face& face() noexcept { return static_cast<Face&>(*this); }
};

/// An allocator or a source with one thing added, which `Self` does:
///
///     template <bool Throws> chunk take_one(layout l) noexcept(!Throws);
///     void give_one(chunk c) noexcept; // what take_one gave, or for an allocator {block, layout}
///     void forget_all() noexcept;      // all blocks went at once: reset, release
///
/// An adaptor of an allocator is an allocator, an adaptor of a source is a source;
/// so adaptors stack, and stand wherever what they wrap could stand. What they wrap
/// is owned, and made in place from the arguments behind `std::in_place`; `ref`
/// borrows. What it knows of addresses, bytes and calls can be asked of the adaptor.
///
/// Never copied. Moved as what it wraps is, unless `Self` knows better.
template <class Self, source Inner>
class adaptor
    : public adaptor_calls<adaptor<Self, Inner>, block_allocator<Inner>, chunk_source<Inner>> {
    friend adaptor_calls<adaptor, block_allocator<Inner>, chunk_source<Inner>>;

public:
    using upstream_type = Inner;

    constexpr adaptor() noexcept
        requires std::default_initializable<Inner>
    = default;
    template <class... Args>
        requires std::constructible_from<Inner, Args...>
    constexpr explicit adaptor(std::in_place_t, Args&&... args) noexcept(
        std::is_nothrow_constructible_v<Inner, Args...>)
        : inner_(std::forward<Args>(args)...)
    {
    }
    constexpr adaptor(adaptor&&) noexcept(std::is_nothrow_move_constructible_v<Inner>) = default;
    constexpr adaptor&
    operator=(adaptor&&) noexcept(std::is_nothrow_move_assignable_v<Inner>) = default;

    void reset() noexcept
        requires resettable<Inner>
    {
        self().forget_all();
        inner_.reset();
    }
    void release() noexcept
        requires resettable<Inner>
    {
        self().forget_all();
        inner_.release();
    }
    void trim(std::size_t keep = 0) noexcept
        requires resettable<Inner>
    {
        inner_.trim(keep);
    }

    bool owns(const void* p) const noexcept
        requires owning<Inner>
    {
        return inner_.owns(p);
    }
    std::size_t most_to_take() const noexcept
        requires bounded<Inner>
    {
        return inner_.most_to_take();
    }
    auto counts() const noexcept
        requires counting<Inner>
    {
        return inner_.counts();
    }
    auto stats() const noexcept
        requires measured<Inner>
    {
        return inner_.stats();
    }

    Inner& upstream() noexcept { return inner_; }
    const Inner& upstream() const noexcept { return inner_; }

protected:
    ~adaptor() = default;

    /// From what is wrapped; null, or it throws, when that is dry.
    template <bool Throws>
    [[gnu::always_inline]] chunk take_below(layout l) noexcept(!Throws)
    {
        return take_or_null<Throws>(inner_, l);
    }
    [[gnu::always_inline]] void give_below(chunk c) noexcept { mallard::give(inner_, c); }

    /// The same; a refusal of either kind calls `refused()` first. Nothing is left
    /// of that in the way that throws but the exception's own.
    template <bool Throws, class F>
    [[gnu::always_inline]] chunk take_below_or(layout l, F refused) noexcept(!Throws)
    {
        struct told {
            F refused;
            bool given = false;
            [[gnu::always_inline]] ~told() // else it is kept in memory for the way out
            {
                if (!given)
                    refused();
            }
        } end{refused};
        chunk const taken = take_below<Throws>(l);
        end.given = Throws || taken.data != nullptr;
        return taken;
    }

private:
    Self& self() noexcept { return static_cast<Self&>(*this); }

    template <bool Throws>
    [[gnu::always_inline]] chunk take_any(layout l) noexcept(!Throws)
    {
        return self().template take_one<Throws>(l);
    }
    [[gnu::always_inline]] void give_any(chunk c) noexcept { self().give_one(c); }

    [[no_unique_address]] Inner inner_{};
};

/// `Adaptor`, or when it is off what that would have wrapped, and nothing of it:
/// not a branch, not a byte. `counted` and its kind can be switched by a constant.
///
///     using memory = mallard::adapt_if<is_test, mallard::counted<mallard::multipool<>>>;
///
/// Both are made alike by `adapted<memory>(arguments of the multipool)`.
template <bool On, class Adaptor>
using adapt_if =
    typename std::conditional_t<On, std::type_identity<Adaptor>,
                                std::type_identity<typename Adaptor::upstream_type>>::type;

template <class A, class... Args>
A adapted(Args&&... args)
{
    if constexpr (std::constructible_from<A, std::in_place_t, Args...>)
        return A(std::in_place, std::forward<Args>(args)...);
    else
        return A(std::forward<Args>(args)...);
}

/// As if what is wrapped had run out.
template <bool Throws>
chunk refuse() noexcept(!Throws)
{
    if constexpr (Throws)
        throw_bad_alloc();
    return {};
}

} // namespace mallard

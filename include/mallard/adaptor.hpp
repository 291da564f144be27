// What all adaptors share: what they wrap, and how they look like it.
#pragma once

#include <mallard/source.hpp>

namespace mallard {

/// An allocator or a source with one thing added, which `Self` does:
///
///     template <bool Throws> chunk take_one(layout l) noexcept(!Throws);
///     void give_one(chunk c) noexcept; // what take_one gave, or for an allocator {block, layout}
///     void forget_all() noexcept;      // all blocks went at once: reset, release
///
/// An adaptor of an allocator is an allocator, an adaptor of a source is a source;
/// so adaptors stack, and stand wherever what they wrap could stand. What they wrap
/// is owned, and made in place from the arguments behind `std::in_place`; `ref`
/// borrows.
template <class Self, source Inner>
class adaptor {
public:
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

    [[nodiscard]] void* allocate(layout l)
        requires block_allocator<Inner>
    {
        return self().template take_one<true>(l).data;
    }
    [[nodiscard]] void* try_allocate(layout l) noexcept
        requires block_allocator<Inner>
    {
        return self().template take_one<false>(l).data;
    }
    void deallocate(void* block, layout l) noexcept
        requires block_allocator<Inner>
    {
        self().give_one({block, l.bytes, l.align});
    }

    [[nodiscard]] chunk take(layout l)
        requires chunk_source<Inner>
    {
        return self().template take_one<true>(l);
    }
    [[nodiscard]] chunk try_take(layout l) noexcept
        requires chunk_source<Inner>
    {
        return self().template take_one<false>(l);
    }
    void give(chunk c) noexcept
        requires chunk_source<Inner>
    {
        self().give_one(c);
    }

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

    Inner& upstream() noexcept { return inner_; }
    const Inner& upstream() const noexcept { return inner_; }

protected:
    ~adaptor() = default;

    /// From what is wrapped; null, or it throws, when that is dry.
    template <bool Throws>
    chunk take_below(layout l) noexcept(!Throws)
    {
        return take_or_null<Throws>(inner_, l);
    }
    void give_below(chunk c) noexcept { mallard::give(inner_, c); }

private:
    Self& self() noexcept { return static_cast<Self&>(*this); }

    [[no_unique_address]] Inner inner_{};
};

} // namespace mallard

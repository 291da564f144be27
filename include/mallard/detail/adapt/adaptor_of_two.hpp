// What the adaptors of two allocators, or sources, share.
#pragma once

#include <mallard/adapt/adaptor.hpp>

namespace mallard {

/// Two behind one face. `Self` decides between them, in
///
///     template <bool Throws> chunk take_one(layout l) noexcept(!Throws);
///     void give_one(chunk c) noexcept; // to the one that it is from
///
/// An allocator where both are, else a source. Both are owned; `ref` borrows.
template <class Self, source First, source Second>
class adaptor_of_two : public adaptor_calls<adaptor_of_two<Self, First, Second>,
                                            block_allocator<First> && block_allocator<Second>,
                                            chunk_source<First> || chunk_source<Second>> {
    friend adaptor_calls<adaptor_of_two, block_allocator<First> && block_allocator<Second>,
                         chunk_source<First> || chunk_source<Second>>;
    static constexpr bool is_nothrow_movable =
        std::is_nothrow_move_constructible_v<First> && std::is_nothrow_move_assignable_v<First> &&
        std::is_nothrow_move_constructible_v<Second> && std::is_nothrow_move_assignable_v<Second>;

public:
    constexpr adaptor_of_two() noexcept
        requires std::default_initializable<First> && std::default_initializable<Second>
    = default;
    constexpr adaptor_of_two(First first, Second second) noexcept
        : first_(std::move(first)), second_(std::move(second))
    {
    }
    constexpr adaptor_of_two(adaptor_of_two&&) noexcept(is_nothrow_movable) = default;
    constexpr adaptor_of_two& operator=(adaptor_of_two&&) noexcept(is_nothrow_movable) = default;

    void reset() noexcept
        requires resettable<First> && resettable<Second>
    {
        first_.reset();
        second_.reset();
    }
    void release() noexcept
        requires resettable<First> && resettable<Second>
    {
        first_.release();
        second_.release();
    }
    /// `keep` bytes in each.
    void trim(std::size_t keep = 0) noexcept
        requires resettable<First> && resettable<Second>
    {
        first_.trim(keep);
        second_.trim(keep);
    }

    bool owns(const void* p) const noexcept
        requires owning<First> && owning<Second>
    {
        return first_.owns(p) || second_.owns(p);
    }
    auto stats() const noexcept
        requires measured<First> && measured<Second>
    {
        auto sum = first_.stats();
        return sum += second_.stats();
    }

    First& first() noexcept { return first_; }
    const First& first() const noexcept { return first_; }
    Second& second() noexcept { return second_; }
    const Second& second() const noexcept { return second_; }

protected:
    ~adaptor_of_two() = default;

private:
    Self& self() noexcept { return static_cast<Self&>(*this); }

    template <bool Throws>
    [[gnu::always_inline]] chunk take_any(layout l) noexcept(!Throws)
    {
        return self().template take_one<Throws>(l);
    }
    [[gnu::always_inline]] void give_any(chunk c) noexcept { self().give_one(c); }

    [[no_unique_address]] First first_{};
    [[no_unique_address]] Second second_{};
};

} // namespace mallard

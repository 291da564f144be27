// The binding by type parameter: for containers that name their allocator.
#pragma once

#include <mallard/source.hpp>

#include <memory>
#include <tuple>

namespace mallard {

template <class T>
inline constexpr bool is_pair = false;
template <class First, class Second>
inline constexpr bool is_pair<std::pair<First, Second>> = true;

/// Whether the constructor arguments of a `U` contain an allocator already, as those from
/// `std::scoped_allocator_adaptor` do: after `std::allocator_arg`, or as the last argument.
template <class U, class... Args>
inline constexpr bool has_allocator = false;
template <class U, class... Args>
    requires(sizeof...(Args) != 0)
inline constexpr bool has_allocator<U, Args...> = [] {
    using all = std::tuple<std::remove_cvref_t<Args>...>;
    return std::same_as<std::tuple_element_t<0, all>, std::allocator_arg_t> ||
           std::uses_allocator_v<U, std::tuple_element_t<sizeof...(Args) - 1, all>>;
}();

/// Whether `construct` adds an allocator `A` to the arguments `Args` of a `U`.
template <class U, class A, class... Args>
struct wants_allocator
    : std::bool_constant<std::uses_allocator_v<U, A> && !has_allocator<U, Args...>> {};
/// A pair gets the allocator unless one of its two halves has an allocator already.
template <class First, class Second, class... Args>
struct pair_wants_allocator : std::true_type {};
template <class First, class Second, class... X, class... Y>
struct pair_wants_allocator<First, Second, std::piecewise_construct_t, std::tuple<X...>,
                            std::tuple<Y...>>
    : std::bool_constant<!has_allocator<First, X...> && !has_allocator<Second, Y...>> {};
template <class First, class Second, class A, class... Args>
struct wants_allocator<std::pair<First, Second>, A, Args...>
    : pair_wants_allocator<First, Second, std::remove_cvref_t<Args>...> {};

/// Whether a `U`, or one half of a pair, can be constructed with an allocator `A`.
template <class U, class A>
inline constexpr bool takes_allocator = std::uses_allocator_v<U, A>;
template <class First, class Second, class A>
inline constexpr bool takes_allocator<std::pair<First, Second>, A> =
    takes_allocator<First, A> || takes_allocator<Second, A>;

/// A standard allocator that draws from `A`, an arena, pool or multipool. One
/// pointer; calls are direct and fold with the layout of `T`.
///
///     mallard::arena<> a;
///     std::vector<int, mallard::allocator<int, mallard::arena<>>> v(a);
///
/// Equal when they draw from the same `A`. Does not travel with a container on
/// copy assignment, move assignment or swap; a copied container draws from the
/// same `A`. Elements that take an allocator of this family get this one, as
/// under `std::pmr`; under `std::scoped_allocator_adaptor` they get the inner one. `A` outlives
/// whatever was allocated, and its thread rule is the container's. `allocate` throws
/// `std::bad_alloc`, also for a count that no address space holds.
template <class T, block_allocator A>
class allocator {
public:
    using value_type = T;
    // std::allocator has these too, for code that does not use std::allocator_traits.
    using size_type = std::size_t;
    using difference_type = std::ptrdiff_t;

    allocator(A& from) noexcept : from_(&from) {}
    template <class U>
    allocator(const allocator<U, A>& other) noexcept : from_(&other.resource())
    {
    }

    [[nodiscard]] T* allocate(std::size_t count)
    {
        return static_cast<T*>(from_->allocate(layout_of<T>(count)));
    }
    void deallocate([[maybe_unused]] T* first, [[maybe_unused]] std::size_t count) noexcept
    {
        if constexpr (!rewindable<A>)
            from_->deallocate(first, layout_of<T>(count));
    }

    /// Only for elements that want an allocator; the others stay as simple to
    /// the container as without it.
    template <class U, class... Args>
        requires(takes_allocator<U, allocator> && wants_allocator<U, allocator, Args...>::value)
    void construct(U* at, Args&&... args)
    {
        // libstdc++ 12 constructs a pair only from nothing, from two values or from another pair.
        if constexpr (is_pair<U> && sizeof...(Args) == 1 &&
                      !(is_pair<std::remove_cvref_t<Args>> && ...))
            construct(at, U(std::forward<Args>(args)...));
        else
            std::uninitialized_construct_using_allocator(at, *this, std::forward<Args>(args)...);
    }

    A& resource() const noexcept { return *from_; }

    template <class U>
    friend bool operator==(const allocator& a, const allocator<U, A>& b) noexcept
    {
        return &a.resource() == &b.resource();
    }

private:
    A* from_;
};

} // namespace mallard

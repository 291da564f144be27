// A standard allocator over any allocator of this library, for use as a template argument of a
// container.
#pragma once

#include <mallard/source.hpp>

#include <memory>
#include <tuple>

namespace mallard {

/// Whether `T` is a `std::pair`.
template <class T>
inline constexpr bool is_pair = false;
template <class First, class Second>
inline constexpr bool is_pair<std::pair<First, Second>> = true;

/// Whether `Arg`, the type of a constructor argument for a `U`, is an allocator or converts to one.
/// An arena, for example, converts to an allocator.
template <class U, class Arg>
inline constexpr bool is_allocator_for = std::uses_allocator_v<U, std::remove_cvref_t<Arg>>;
/// Whether `Arg` is the `allocator_type` of `U`, or converts to it.
template <class U, class Arg>
    requires requires { typename U::allocator_type; }
inline constexpr bool is_allocator_for<U, Arg> =
    std::convertible_to<Arg, typename U::allocator_type>;

/// Whether the constructor arguments of a `U` contain an allocator already, either after
/// `std::allocator_arg` or as the last argument. Arguments from `std::scoped_allocator_adaptor`
/// contain one.
template <class U, class... Args>
inline constexpr bool has_allocator = false;
/// Computes `has_allocator` for at least one argument.
template <class U, class... Args>
    requires(sizeof...(Args) != 0)
inline constexpr bool has_allocator<U, Args...> = [] {
    using all = std::tuple<Args...>;
    using first = std::remove_cvref_t<std::tuple_element_t<0, all>>;
    return std::same_as<first, std::allocator_arg_t> ||
           is_allocator_for<U, std::tuple_element_t<sizeof...(Args) - 1, all>>;
}();

/// Whether `construct` adds an allocator `A` to the constructor arguments `Args` of a `U`.
template <class U, class A, class... Args>
struct wants_allocator
    : std::bool_constant<std::uses_allocator_v<U, A> && !has_allocator<U, Args...>> {};
/// Whether `construct` adds the allocator to the constructor arguments of a pair. It does, unless
/// the arguments of `first` or `second` contain an allocator already.
template <class First, class Second, class... Args>
struct pair_wants_allocator : std::true_type {};
template <class First, class Second, class... X, class... Y>
struct pair_wants_allocator<First, Second, std::piecewise_construct_t, std::tuple<X...>,
                            std::tuple<Y...>>
    : std::bool_constant<!has_allocator<First, X...> && !has_allocator<Second, Y...>> {};
template <class First, class Second, class A, class... Args>
struct wants_allocator<std::pair<First, Second>, A, Args...>
    : pair_wants_allocator<First, Second, std::remove_cvref_t<Args>...> {};

/// Whether a `U`, or the `first` or `second` of a pair, can be constructed with an allocator `A`.
template <class U, class A>
inline constexpr bool takes_allocator = std::uses_allocator_v<U, A>;
template <class First, class Second, class A>
inline constexpr bool takes_allocator<std::pair<First, Second>, A> =
    takes_allocator<First, A> || takes_allocator<Second, A>;

namespace detail {
[[gnu::error("pass the allocator that a mallard::allocator uses, such as an arena")]]
void allocator_names_no_source() noexcept;
} // namespace detail

/// A standard allocator that allocates from `A`, which may be an arena, pool, multipool or other
/// allocator. The object has the size of a pointer. Calls are direct (not virtual), and the layout
/// of `T` is a constant in each call.
///
///     mallard::arena<> a;
///     std::vector<int, mallard::allocator<int, mallard::arena<>>> v(a);
///
/// Two such allocators are equal if they allocate from the same `A`. Copy assignment, move
/// assignment and swap of containers do not propagate the allocator. A copy of a container
/// allocates from the same `A`. As with `std::pmr`, elements that use such an allocator are
/// constructed with the allocator of their container. Under `std::scoped_allocator_adaptor` such
/// elements are constructed with the inner allocator. `A` must outlive all blocks. The thread rules
/// of `A` apply to the container. `allocate` throws what `A` throws, and `std::bad_alloc` for a
/// count that exceeds the address space. `deallocate` does nothing over an arena.
template <class T, block_allocator A>
class allocator {
public:
    using value_type = T;
    // The member types of std::allocator, for code that does not use std::allocator_traits.
    using size_type = std::size_t;
    using difference_type = std::ptrdiff_t;

    /// Makes an allocator over `from`. The conversion is implicit, so `from` itself can be passed
    /// to the constructor of a container.
    allocator(A& from) noexcept : from_(&from) {}
    /// Does not compile if it is called, because the allocator would have no `A` to allocate from.
    allocator() noexcept
        requires detail::compiles_default_allocators
        : from_(nullptr)
    {
        detail::allocator_names_no_source();
    }
    template <class U>
    allocator(const allocator<U, A>& other) noexcept : from_(&other.resource())
    {
    }

    /// Allocates memory for `count` objects, without constructing them.
    [[nodiscard]] T* allocate(std::size_t count)
    {
        return static_cast<T*>(from_->allocate(layout_of<T>(count)));
    }
    /// Frees the memory of `count` objects. Does nothing over an arena.
    void deallocate([[maybe_unused]] T* first, [[maybe_unused]] std::size_t count) noexcept
    {
        if constexpr (!rewindable<A>)
            from_->deallocate(first, layout_of<T>(count));
    }

    /// Constructs an element whose constructor accepts an allocator, and passes this allocator to
    /// that constructor. For other element types this function does not exist, so that containers
    /// may treat such elements as trivial.
    template <class U, class... Args>
        requires(takes_allocator<U, allocator> && wants_allocator<U, allocator, Args && ...>::value)
    void construct(U* at, Args&&... args)
    {
        // Constructs the pair first, because libstdc++ 12 can construct a pair with an allocator
        // only from no argument, from two values or from another pair.
        if constexpr (is_pair<U> && sizeof...(Args) == 1 &&
                      !(is_pair<std::remove_cvref_t<Args>> && ...))
            construct(at, U(std::forward<Args>(args)...));
        else
            std::uninitialized_construct_using_allocator(at, *this, std::forward<Args>(args)...);
    }

    /// Returns the arena, pool or other object from which this allocator allocates.
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

// Wink-out, which frees the memory of a whole data structure without running its destructors.
#pragma once

#include <mallard/allocator.hpp>

#include <array>
#include <memory_resource>

namespace mallard {

/// True for a type that may be winked out. Specialise `enable_wink_out` for your type if its
/// destructor does nothing but free memory of the allocator with which the object was constructed.
///
///     template <>
///     inline constexpr bool mallard::enable_wink_out<board> = true;
template <class T>
inline constexpr bool enable_wink_out = false;

/// Whether a standard allocator of type `Allocator` allocates from a resource of type `A`.
template <class Allocator, class A>
inline constexpr bool draws_from = false;
/// True for the allocators of Mallard.
template <class T, class A>
inline constexpr bool draws_from<allocator<T, A>, A> = true;
/// True for the allocator of `std::pmr`, if `A` is a memory resource.
template <class T, std::derived_from<std::pmr::memory_resource> A>
inline constexpr bool draws_from<std::pmr::polymorphic_allocator<T>, A> = true;

/// Returns whether the comparator and the hasher of a container have trivial destructors.
template <class T>
consteval bool has_plain_functors()
{
    bool plain = true;
    if constexpr (requires { typename T::key_compare; })
        plain = plain && std::is_trivially_destructible_v<typename T::key_compare>;
    if constexpr (requires { typename T::hasher; })
        plain = plain && std::is_trivially_destructible_v<typename T::hasher>;
    if constexpr (requires { typename T::key_equal; })
        plain = plain && std::is_trivially_destructible_v<typename T::key_equal>;
    return plain;
}

/// Whether a `T` that was constructed with `A` can be winked out (its destructor skipped) without a
/// leak. This is so if its destructor is trivial. It is also so if `T` is a container that
/// allocates from `A` and the elements of the container can be winked out. It is false for a
/// `std::string` in an arena, because the characters of the string are on the heap.
///
///     static_assert(mallard::is_winkable<std::pmr::vector<int>, mallard::pmr::arena>);
template <class T, class A>
inline constexpr bool is_winkable = std::is_trivially_destructible_v<T> || enable_wink_out<T>;

/// Computes `is_winkable` for a container.
template <class T, class A>
    requires(!std::is_trivially_destructible_v<T> && !enable_wink_out<T> &&
             requires {
                 typename T::allocator_type;
                 typename T::value_type;
             })
inline constexpr bool is_winkable<T, A> =
    draws_from<typename T::allocator_type, A> && is_winkable<typename T::value_type, A> &&
    has_plain_functors<T>();

template <class First, class Second, class A>
    requires(!std::is_trivially_destructible_v<std::pair<First, Second>>)
inline constexpr bool is_winkable<std::pair<First, Second>, A> =
    is_winkable<std::remove_const_t<First>, A> && is_winkable<std::remove_const_t<Second>, A>;

template <class... T, class A>
    requires(!std::is_trivially_destructible_v<std::tuple<T...>>)
inline constexpr bool is_winkable<std::tuple<T...>, A> = (is_winkable<T, A> && ...);

/// A `std::array` passes no allocator to its elements. With `std::pmr`, the elements would use the
/// default resource and leak, so the array is not winkable. If the allocator is a type parameter,
/// each element must get its allocator at construction, so the array is winkable.
template <class T, std::size_t Count, class A>
    requires(!std::is_trivially_destructible_v<T>)
inline constexpr bool is_winkable<std::array<T, Count>, A> =
    is_winkable<T, A> && (enable_wink_out<T> || !std::derived_from<A, std::pmr::memory_resource>);

/// A container that is never destroyed. The container and its elements stay in the memory of
/// `resource` until the resource is reset, rewound, released or destroyed.
///
///     mallard::pmr_resource<mallard::arena<>> scratch;
///     mallard::winked<std::pmr::vector<std::pmr::string>> words(scratch);
///     words->emplace_back("no destructor runs");
///     scratch.reset(); // frees the memory of the vector and its strings
///
/// If memory would leak, the program does not compile (see `is_winkable`). A `winked` is a pointer
/// to the container, and copies refer to the same container.
template <class T>
class winked {
public:
    /// Constructs the `T` from `args` and an allocator over `resource`.
    template <class A, class... Args>
        requires(block_allocator<A> || std::derived_from<A, std::pmr::memory_resource>)
    explicit winked(A& resource, Args&&... args)
    {
        static_assert(is_winkable<T, A>,
                      "winking out this type would leak: it, or an element of it, owns memory that "
                      "does not come from the resource; give it an allocator over the resource, or "
                      "specialise mallard::enable_wink_out");
        auto from = allocator_over<T>(resource);
        auto const give_back = [&](T* unmade) { from.deallocate(unmade, 1); };
        std::unique_ptr<T, decltype(give_back)> block(from.allocate(1), give_back);
        object_ = std::uninitialized_construct_using_allocator(block.get(), from,
                                                               std::forward<Args>(args)...);
        static_cast<void>(block.release());
    }

    /// Returns the container.
    T* get() const noexcept { return object_; }
    T& operator*() const noexcept { return *object_; } ///< the container
    T* operator->() const noexcept { return object_; } ///< the container

private:
    // Returns an allocator over the resource. If the resource is both an allocator and a
    // memory_resource, uses it as a memory_resource.
    template <class U, class A>
    static auto allocator_over(A& resource) noexcept
    {
        if constexpr (std::derived_from<A, std::pmr::memory_resource>)
            return std::pmr::polymorphic_allocator<U>(&resource);
        else
            return allocator<U, A>(resource);
    }

    T* object_;
};

} // namespace mallard

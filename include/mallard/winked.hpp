// Wink-out: giving back the memory of a whole structure without running the
// destructors in it.
#pragma once

#include <mallard/allocator.hpp>

#include <array>
#include <memory_resource>

namespace mallard {

/// Says of a type of your own that it may be winked out: whatever its destructor
/// would give back comes from the allocator it was constructed with.
template <class T>
inline constexpr bool enable_wink_out = false;

template <class Allocator, class A>
inline constexpr bool draws_from = false;
template <class T, class A>
inline constexpr bool draws_from<allocator<T, A>, A> = true;
template <class T, std::derived_from<std::pmr::memory_resource> A>
inline constexpr bool draws_from<std::pmr::polymorphic_allocator<T>, A> = true;

/// Whether what a container compares and hashes with has nothing to give back.
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

/// True when forgetting a `T` that was constructed with `A` leaks nothing: its
/// destructor does nothing, or it is a container over `A` of such elements.
/// `std::string` in an arena is not: its characters are on the heap.
template <class T, class A>
inline constexpr bool is_winkable = std::is_trivially_destructible_v<T> || enable_wink_out<T>;

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

/// An array hands no allocator on: under `std::pmr` its elements would take the
/// default resource, while those of a type parameter cannot do without theirs.
template <class T, std::size_t Count, class A>
    requires(!std::is_trivially_destructible_v<T>)
inline constexpr bool is_winkable<std::array<T, Count>, A> =
    is_winkable<T, A> && (enable_wink_out<T> || !std::derived_from<A, std::pmr::memory_resource>);

/// A container that is never destroyed: it and all it holds live in `resource`
/// until that is reset, rewound, released or destroyed.
///
///     mallard::pmr_resource<mallard::arena<>> scratch;
///     mallard::winked<std::pmr::vector<std::pmr::string>> words(scratch);
///     words->emplace_back("no destructor runs");
///     scratch.reset(); // and it is gone
///
/// Does not compile where memory would be lost (`is_winkable`). One pointer,
/// not an owner: copies mean the same container.
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

    T* get() const noexcept { return object_; }
    T& operator*() const noexcept { return *object_; }
    T* operator->() const noexcept { return object_; }

private:
    // A resource that is both kinds is used as the abstract base it is for.
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

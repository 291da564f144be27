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

/// A standard allocator that draws from `A`, an arena, pool or multipool. One
/// pointer; calls are direct and fold with the layout of `T`.
///
///     mallard::arena<> a;
///     std::vector<int, mallard::allocator<int, mallard::arena<>>> v(a);
///
/// Equal when they draw from the same `A`. Does not travel with a container on
/// copy assignment, move assignment or swap; a copied container draws from the
/// same `A`. Elements that take an allocator of this family get this one, as
/// under `std::pmr`. `A` outlives whatever was allocated, and its thread rule
/// is the container's. `allocate` throws `std::bad_alloc`, also for a count
/// that no address space holds.
template <class T, block_allocator A>
class allocator {
public:
    using value_type = T;
    // As std::allocator has them, for code that does not ask std::allocator_traits.
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
        requires(is_pair<U> || std::uses_allocator_v<U, allocator>)
    void construct(U* at, Args&&... args)
    {
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

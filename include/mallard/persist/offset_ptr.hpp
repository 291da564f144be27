// A pointer that stays valid when its memory is mapped at another address.
#pragma once

#include <mallard/detail/base/cxx20.hpp>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <type_traits>

namespace mallard {

/// A pointer that stores the distance from itself to the `T`. The distance does not depend on the
/// address at which the memory is mapped. The pointer and the `T` must lie in the same file or
/// shared memory.
///
///     struct node {
///         int key;
///         mallard::offset_ptr<node> next;
///     };
///
/// In all other ways an `offset_ptr` behaves like a pointer. It is null by default, copyable,
/// comparable, a random access iterator, and convertible from and to a pointer (`get`). Containers
/// that support fancy pointers support `offset_ptr`. An `offset_ptr` has 8 bytes, and a dereference
/// costs one addition.
///
/// The copy constructor computes a new distance, so never copy an `offset_ptr` by its bytes, as
/// `memcpy` does. An `offset_ptr` cannot point outside of its mapping, and is not atomic. To pass a
/// block to another process, pass the number of the block in a `segment_pool`.
///
/// The idea, and the representation of null by 1, come from Boost.Interprocess.
template <class T>
class offset_ptr {
    template <class U>
    static constexpr bool fits = std::is_convertible_v<U*, T*>;

public:
    using element_type = T;
    using value_type = std::remove_cv_t<T>;
    using difference_type = std::ptrdiff_t;
    using pointer = offset_ptr;
    using reference = std::add_lvalue_reference_t<T>;
    using iterator_category = std::random_access_iterator_tag;
    template <class U>
    using rebind = offset_ptr<U>;

    offset_ptr(std::nullptr_t = nullptr) noexcept {} ///< a null pointer
    offset_ptr(T* p) noexcept : distance_(to(p)) {}  ///< points to what `p` points to
    offset_ptr(const offset_ptr& other) noexcept : offset_ptr(other.get()) {}
    template <class U>
        requires fits<U>
    offset_ptr(const offset_ptr<U>& other) noexcept : offset_ptr(other.get())
    {
    }
    /// Converts to a derived class, or from `void`, as `static_cast` does with pointers.
    template <class U>
        requires(!fits<U>)
    explicit offset_ptr(const offset_ptr<U>& other) noexcept
        : offset_ptr(static_cast<T*>(other.get()))
    {
    }
    offset_ptr& operator=(const offset_ptr& other) noexcept
    {
        distance_ = to(other.get());
        return *this;
    }
    ~offset_ptr() = default;

    /// Returns a pointer to `object`, for `std::pointer_traits`.
    template <class U = T>
        requires(!std::is_void_v<U>)
    static offset_ptr pointer_to(U& object) noexcept
    {
        return &object;
    }

    /// Returns the address, as an ordinary pointer.
    T* get() const noexcept
    {
        return distance_ == nowhere ? nullptr : reinterpret_cast<T*>(here() + distance_);
    }
    /// Returns whether the pointer is not null.
    explicit operator bool() const noexcept { return distance_ != nowhere; }
    /// Returns the object. The pointer must not be null.
    reference operator*() const noexcept { return *get(); }
    T* operator->() const noexcept { return get(); } ///< the object; the pointer must not be null
    /// Returns element `n` of an array.
    reference operator[](difference_type n) const noexcept { return get()[n]; }

    /// Adds `n`, as for a `T*`. The other operators also work as for a `T*`.
    offset_ptr& operator+=(difference_type n) noexcept { return *this = get() + n; }
    offset_ptr& operator-=(difference_type n) noexcept { return *this = get() - n; }
    offset_ptr& operator++() noexcept { return *this += 1; }
    offset_ptr& operator--() noexcept { return *this -= 1; }
    offset_ptr operator++(int) noexcept
    {
        offset_ptr const before = *this;
        ++*this;
        return before;
    }
    offset_ptr operator--(int) noexcept
    {
        offset_ptr const before = *this;
        --*this;
        return before;
    }
    friend offset_ptr operator+(const offset_ptr& p, difference_type n) noexcept
    {
        return p.get() + n;
    }
    friend offset_ptr operator+(difference_type n, const offset_ptr& p) noexcept { return p + n; }
    friend offset_ptr operator-(const offset_ptr& p, difference_type n) noexcept
    {
        return p.get() - n;
    }
    friend difference_type operator-(const offset_ptr& a, const offset_ptr& b) noexcept
    {
        return a.get() - b.get();
    }

    friend bool operator==(const offset_ptr& a, const offset_ptr& b) noexcept
    {
        return a.get() == b.get();
    }
    friend std::strong_ordering operator<=>(const offset_ptr& a, const offset_ptr& b) noexcept
    {
        return std::compare_three_way()(a.get(), b.get());
    }
    friend bool operator==(const offset_ptr& p, std::nullptr_t) noexcept { return !p; }

private:
    // Represents a null pointer. It is not 0, because 0 is the distance of a pointer that points to
    // itself.
    static constexpr std::uintptr_t nowhere = 1;

    // Distances are computed with integers, because C++ has no pointer arithmetic between two
    // objects.
    std::uintptr_t here() const noexcept { return reinterpret_cast<std::uintptr_t>(this); }
    std::uintptr_t to(const volatile void* p) const noexcept
    {
        return p == nullptr ? nowhere : reinterpret_cast<std::uintptr_t>(p) - here();
    }

    std::uintptr_t distance_ = nowhere;
};

} // namespace mallard

// A pointer for memory that may be somewhere else tomorrow.
#pragma once

#include <mallard/detail/base/cxx20.hpp>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <type_traits>

namespace mallard {

/// Points to a `T` by its distance from this pointer itself. Both lie in the same
/// file or shared memory, and wherever that is mapped the distance is the same.
///
///     struct node {
///         int key;
///         mallard::offset_ptr<node> next;
///     };
///
/// Otherwise an ordinary pointer: null by default, copied, compared, moved along an
/// array, made from a pointer and turned into one; a container that takes fancy
/// pointers takes it too. 8 bytes, and one addition to follow.
///
/// A copy is a new distance, so it is copied as an object and never by its bytes:
/// not with `memcpy`. It reaches what is mapped together with it and nothing else. It is
/// not atomic: between processes pass the numbers of a `segment_pool`.
///
/// The idea, and 1 for null, are those of Boost.Interprocess.
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

    offset_ptr(std::nullptr_t = nullptr) noexcept {}
    offset_ptr(T* p) noexcept : distance_(to(p)) {}
    offset_ptr(const offset_ptr& other) noexcept : offset_ptr(other.get()) {}
    template <class U>
        requires fits<U>
    offset_ptr(const offset_ptr<U>& other) noexcept : offset_ptr(other.get())
    {
    }
    /// Down to a derived class or up from `void`, as `static_cast` does with pointers.
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

    template <class U = T>
        requires(!std::is_void_v<U>)
    static offset_ptr pointer_to(U& object) noexcept
    {
        return &object;
    }

    T* get() const noexcept
    {
        return distance_ == nowhere ? nullptr : reinterpret_cast<T*>(here() + distance_);
    }
    explicit operator bool() const noexcept { return distance_ != nowhere; }
    reference operator*() const noexcept { return *get(); }
    T* operator->() const noexcept { return get(); }
    reference operator[](difference_type n) const noexcept { return get()[n]; }

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
    // Not 0: a list whose only node points to itself does so from its first byte.
    static constexpr std::uintptr_t nowhere = 1;

    // On numbers: no arithmetic on pointers leads from one object to another.
    std::uintptr_t here() const noexcept { return reinterpret_cast<std::uintptr_t>(this); }
    std::uintptr_t to(const volatile void* p) const noexcept
    {
        return p == nullptr ? nowhere : reinterpret_cast<std::uintptr_t>(p) - here();
    }

    std::uintptr_t distance_ = nowhere;
};

} // namespace mallard

// A pointer that stays right when what it is in, and points into, moves together.
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace mallard {

/// A pointer stored as the distance from itself, for memory that each process maps at an
/// address of its own, or that a file brings back at another.
///
///     struct node { int value; mallard::offset_ptr<node> next; };
///
/// It and what it points to lie in the same segment or file; which is the caller's to know,
/// as nothing can check it. Copied, it is computed anew, so never copy one by its bytes. It
/// is not atomic: between processes pass the numbers of a `segment_pool`.
///
/// The idea, and 1 for null, are those of Boost.Interprocess: a distance of 0 is of use, an
/// object that points to itself, but nothing points to its own second byte.
template <class T>
class offset_ptr {
    static constexpr std::ptrdiff_t null = 1;

public:
    using element_type = T;
    using difference_type = std::ptrdiff_t;
    template <class U>
    using rebind = offset_ptr<U>;

    constexpr offset_ptr() noexcept = default;
    constexpr offset_ptr(std::nullptr_t) noexcept {}
    offset_ptr(T* p) noexcept : distance_(distance_to(p)) {}
    offset_ptr(const offset_ptr& other) noexcept : offset_ptr(other.get()) {}
    template <class U>
        requires std::convertible_to<U*, T*>
    offset_ptr(const offset_ptr<U>& other) noexcept : offset_ptr(other.get())
    {
    }
    offset_ptr& operator=(const offset_ptr& other) noexcept
    {
        distance_ = distance_to(other.get());
        return *this;
    }
    ~offset_ptr() = default;

    template <class U>
        requires std::convertible_to<U*, T*>
    static offset_ptr pointer_to(U& object) noexcept
    {
        return &object;
    }

    // By numbers: to the compiler, pointers into different objects have no distance.
    T* get() const noexcept
    {
        if (distance_ == null)
            return nullptr;
        return reinterpret_cast<T*>(here() + static_cast<std::uintptr_t>(distance_));
    }

    explicit operator bool() const noexcept { return distance_ != null; }
    std::add_lvalue_reference_t<T> operator*() const noexcept { return *get(); }
    T* operator->() const noexcept { return get(); }
    std::add_lvalue_reference_t<T> operator[](difference_type i) const noexcept { return get()[i]; }

    offset_ptr& operator+=(difference_type count) noexcept { return *this = get() + count; }
    offset_ptr& operator-=(difference_type count) noexcept { return *this = get() - count; }
    offset_ptr& operator++() noexcept { return *this += 1; }
    offset_ptr& operator--() noexcept { return *this -= 1; }
    offset_ptr operator++(int) noexcept
    {
        offset_ptr const before = *this;
        *this += 1;
        return before;
    }
    offset_ptr operator--(int) noexcept
    {
        offset_ptr const before = *this;
        *this -= 1;
        return before;
    }

    friend offset_ptr operator+(const offset_ptr& p, difference_type count) noexcept
    {
        return p.get() + count;
    }
    friend offset_ptr operator+(difference_type count, const offset_ptr& p) noexcept
    {
        return p.get() + count;
    }
    friend offset_ptr operator-(const offset_ptr& p, difference_type count) noexcept
    {
        return p.get() - count;
    }
    friend difference_type operator-(const offset_ptr& p, const offset_ptr& q) noexcept
    {
        return p.get() - q.get();
    }

    friend bool operator==(const offset_ptr& p, const offset_ptr& q) noexcept
    {
        return p.get() == q.get();
    }
    friend std::strong_ordering operator<=>(const offset_ptr& p, const offset_ptr& q) noexcept
    {
        return std::compare_three_way()(p.get(), q.get());
    }

private:
    std::uintptr_t here() const noexcept { return reinterpret_cast<std::uintptr_t>(this); }

    difference_type distance_to(T* p) const noexcept
    {
        return p == nullptr
                   ? null
                   : static_cast<difference_type>(reinterpret_cast<std::uintptr_t>(p) - here());
    }

    difference_type distance_ = null;
};

} // namespace mallard

// std::atomic_ref, even with a standard library that lacks it.
#pragma once

#include <mallard/detail/base/cxx20.hpp>

#include <atomic>
#include <version>

namespace mallard {

#ifdef __cpp_lib_atomic_ref
using std::atomic_ref;
#else
/// Implements the part of std::atomic_ref that Mallard uses, for integers and pointers. libc++ has
/// std::atomic_ref since version 19.
template <class T>
class atomic_ref {
public:
    explicit atomic_ref(T& object) noexcept : object_(&object) {}

    T load(std::memory_order o) const noexcept { return __atomic_load_n(object_, number_of(o)); }
    void store(T value, std::memory_order o) const noexcept
    {
        __atomic_store_n(object_, value, number_of(o));
    }
    T exchange(T value, std::memory_order o) const noexcept
    {
        return __atomic_exchange_n(object_, value, number_of(o));
    }
    bool compare_exchange_weak(T& expected, T value, std::memory_order success,
                               std::memory_order failure) const noexcept
    {
        return __atomic_compare_exchange_n(object_, &expected, value, true, number_of(success),
                                           number_of(failure));
    }
    T fetch_add(T some, std::memory_order o) const noexcept
    {
        return __atomic_fetch_add(object_, some, number_of(o));
    }
    T fetch_sub(T some, std::memory_order o) const noexcept
    {
        return __atomic_fetch_sub(object_, some, number_of(o));
    }
    T fetch_and(T some, std::memory_order o) const noexcept
    {
        return __atomic_fetch_and(object_, some, number_of(o));
    }
    T fetch_or(T some, std::memory_order o) const noexcept
    {
        return __atomic_fetch_or(object_, some, number_of(o));
    }

private:
    static constexpr int number_of(std::memory_order o) noexcept { return static_cast<int>(o); }

    T* object_;
};
#endif

} // namespace mallard

// What every allocator here needs of the language: sizes, alignments, the edge
// from a hot path to a cold one.
#pragma once

#include <mallard/detail/base/fatal.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>

/// Marks the path taken rarely: never inlined, kept out of the way.
#define MALLARD_COLD [[gnu::cold, gnu::noinline]]

namespace mallard {

inline constexpr std::size_t page_bytes = 4096;
inline constexpr std::size_t cache_line_bytes = 64;

/// No object is larger; a request above is refused before any arithmetic on it
/// can overflow.
inline constexpr std::size_t bytes_max =
    static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max());

/// True for 1, 2, 4, ...; without a popcount, which plain x86-64 lacks.
constexpr bool is_power_of_two(std::size_t value) noexcept
{
    return (value ^ (value - 1)) > value - 1;
}

/// The next multiple of `align`, a power of two. Wraps when there is none.
constexpr std::size_t align_up(std::size_t bytes, std::size_t align) noexcept
{
    return (bytes + (align - 1)) & ~(align - 1);
}

inline std::byte* align_up(std::byte* p, std::size_t align) noexcept
{
    // By addition, so that the pointer keeps its provenance.
    return p + (-reinterpret_cast<std::uintptr_t>(p) & (align - 1));
}

constexpr std::size_t saturating_add(std::size_t a, std::size_t b) noexcept
{
    return a > std::numeric_limits<std::size_t>::max() - b ? std::numeric_limits<std::size_t>::max()
                                                           : a + b;
}

constexpr std::size_t saturating_mul(std::size_t a, std::size_t b) noexcept
{
    return b != 0 && a > std::numeric_limits<std::size_t>::max() / b
               ? std::numeric_limits<std::size_t>::max()
               : a * b;
}

/// What is asked of an allocator, and said again when the block is given back.
///
/// `align` is a power of two: the constructor stops the process at anything
/// else, so no allocator has to look. With a constant it costs nothing, else
/// a few instructions and a branch never taken. `bytes` may be anything: 0 is a block of its own,
/// and an absurd size is refused as out of memory.
class layout {
public:
    std::size_t bytes;
    std::size_t align;

    constexpr layout(std::size_t bytes_asked,
                     std::size_t align_asked = alignof(std::max_align_t)) noexcept
        : bytes(bytes_asked), align(align_asked)
    {
        if (!is_power_of_two(align_asked)) [[unlikely]]
            fatal_alignment(align_asked);
    }

    friend constexpr bool operator==(layout, layout) = default;
};

/// The layout of `count` objects. More than fit into the address space become a
/// request that every allocator refuses.
template <class T>
constexpr layout layout_of(std::size_t count = 1) noexcept
{
    return {saturating_mul(count, sizeof(T)), alignof(T)};
}

/// Ends `allocate` when nothing is left. Without exceptions the process stops.
[[noreturn]] MALLARD_COLD inline void throw_bad_alloc()
{
#ifdef __cpp_exceptions
    throw std::bad_alloc();
#else
    fatal_out_of_memory();
#endif
}

/// Move assignment made of the destructor and the move constructor, which must not throw.
template <class T>
T& replace_by_move(T& to, T&& from) noexcept
{
    if (&to != &from) {
        to.~T();
        ::new (static_cast<void*>(&to)) T(static_cast<T&&>(from));
    }
    return to;
}

/// What `f` returns, or a default value if it throws.
template <class F>
auto value_or_nothing(F f) noexcept -> decltype(f())
{
#ifdef __cpp_exceptions
    try {
        return f();
    } catch (...) {
        return {};
    }
#else
    return f();
#endif
}

/// Calls `f`, and says whether it threw `std::bad_alloc`. Other exceptions pass.
template <class F>
bool ends_in_bad_alloc(F f)
{
#ifdef __cpp_exceptions
    try {
        f();
    } catch (const std::bad_alloc&) {
        return true;
    }
#else
    f();
#endif
    return false;
}

} // namespace mallard

// Sizes, alignments and layouts, and the macro for cold functions. Every allocator uses these.
#pragma once

#include <mallard/detail/base/fatal.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>

/// Marks a slow path, which is never inlined, and is placed away from hot code.
#define MALLARD_COLD [[gnu::cold, gnu::noinline]]

namespace mallard {

inline constexpr std::size_t page_bytes = 4096;     ///< the smallest page size of any system
inline constexpr std::size_t cache_line_bytes = 64; ///< the usual size of a cache line

/// The alignment of objects that different threads write, so that two such objects never share a
/// cache line. Some processors for AArch64, such as Apple's, have lines of 128 bytes.
#if defined(__aarch64__)
inline constexpr std::size_t false_sharing_bytes = 128;
#else
inline constexpr std::size_t false_sharing_bytes = cache_line_bytes;
#endif

/// The largest size of an object. Larger requests fail before any arithmetic on them can overflow.
inline constexpr std::size_t bytes_max =
    static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max());

/// Returns whether `value` is 1, 2, 4, or another power of two. Does not use popcount, which plain
/// x86-64 lacks.
constexpr bool is_power_of_two(std::size_t value) noexcept
{
    return (value ^ (value - 1)) > value - 1;
}

/// Rounds `bytes` up to a multiple of `align`, a power of two. Returns 0 if the result does not
/// fit.
constexpr std::size_t align_up(std::size_t bytes, std::size_t align) noexcept
{
    return (bytes + (align - 1)) & ~(align - 1);
}

/// Returns the first address from `p` on that is a multiple of `align`.
inline std::byte* align_up(std::byte* p, std::size_t align) noexcept
{
    // Adds to the pointer, so that the pointer keeps its provenance.
    return p + (-reinterpret_cast<std::uintptr_t>(p) & (align - 1));
}

/// Returns the sum, or the largest `std::size_t` if the sum does not fit.
constexpr std::size_t saturating_add(std::size_t a, std::size_t b) noexcept
{
    return a > std::numeric_limits<std::size_t>::max() - b ? std::numeric_limits<std::size_t>::max()
                                                           : a + b;
}

/// Returns the product, or the largest `std::size_t` if the product does not fit.
constexpr std::size_t saturating_mul(std::size_t a, std::size_t b) noexcept
{
    return b != 0 && a > std::numeric_limits<std::size_t>::max() / b
               ? std::numeric_limits<std::size_t>::max()
               : a * b;
}

/// The size and alignment of a block, as passed to an allocator when the block is allocated, and
/// again when the block is freed.
///
///     void* const block = memory.allocate({100, 16});
///     memory.deallocate(block, {100, 16});
///
/// `align` must be a power of two. The constructor stops the process if it is not, so allocators
/// need not check. If `align` is a constant, the check costs nothing. `bytes` may be any number. A
/// block of 0 bytes has a unique address, and a request above `bytes_max` fails as if memory were
/// exhausted.
class layout {
public:
    std::size_t bytes; ///< the size
    std::size_t align; ///< the alignment, a power of two

    /// Makes a layout. Stops the process if `align_asked` is not a power of two.
    constexpr layout(std::size_t bytes_asked,
                     std::size_t align_asked = alignof(std::max_align_t)) noexcept
        : bytes(bytes_asked), align(align_asked)
    {
        if (!is_power_of_two(align_asked)) [[unlikely]]
            fatal_alignment(align_asked);
    }

    friend constexpr bool operator==(layout, layout) = default;
};

/// Returns the layout of an array of `count` objects. If the array exceeds the address space, every
/// allocator fails the request.
///
///     memory.allocate(mallard::layout_of<int>(100));
template <class T>
constexpr layout layout_of(std::size_t count = 1) noexcept
{
    return {saturating_mul(count, sizeof(T)), alignof(T)};
}

/// Throws `std::bad_alloc`. Without exceptions, stops the process.
[[noreturn]] MALLARD_COLD inline void throw_bad_alloc()
{
#ifdef __cpp_exceptions
    throw std::bad_alloc();
#else
    fatal_out_of_memory();
#endif
}

/// Implements move assignment. Destroys the old value, and then calls the move constructor, which
/// must not throw.
template <class T>
T& replace_by_move(T& to, T&& from) noexcept
{
    if (&to != &from) {
        to.~T();
        ::new (static_cast<void*>(&to)) T(static_cast<T&&>(from));
    }
    return to;
}

/// Returns the result of `f()`, or a default value if `f` throws.
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

/// Calls `f`. Returns true if `f` threw `std::bad_alloc`; other exceptions pass through.
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

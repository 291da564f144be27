// Defines for which C library the code is compiled, and macros for the differences between C
// libraries.
#pragma once

#include <cstdlib>

namespace mallard::os {

#if defined(__GLIBC__)
inline constexpr bool is_glibc = true;
#else
inline constexpr bool is_glibc = false;
#endif

} // namespace mallard::os

/// MALLARD_IN_GLIBC(declarations) expands to the declarations if the C library is glibc.
/// MALLARD_LIBC_NOEXCEPT is noexcept if the C library is glibc, because only glibc declares malloc
/// and related functions as noexcept.
#if defined(__GLIBC__)
#define MALLARD_IN_GLIBC(...) __VA_ARGS__
#define MALLARD_LIBC_NOEXCEPT noexcept
#else
#define MALLARD_IN_GLIBC(...)
#define MALLARD_LIBC_NOEXCEPT
#endif

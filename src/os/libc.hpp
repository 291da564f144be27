// Which C library the code is compiled for, and what differs between C libraries.
#pragma once

#include <cstdlib>

namespace mallard::os {

#if defined(__GLIBC__)
inline constexpr bool is_glibc = true;
#else
inline constexpr bool is_glibc = false;
#endif

} // namespace mallard::os

/// MALLARD_IN_GLIBC(declarations): these declarations, if the C library is glibc.
/// MALLARD_LIBC_NOEXCEPT: glibc declares the functions of malloc's family as noexcept, other C
/// libraries do not.
#if defined(__GLIBC__)
#define MALLARD_IN_GLIBC(...) __VA_ARGS__
#define MALLARD_LIBC_NOEXCEPT noexcept
#else
#define MALLARD_IN_GLIBC(...)
#define MALLARD_LIBC_NOEXCEPT
#endif

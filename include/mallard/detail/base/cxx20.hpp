// Stops the compilation with a message if the language version is below C++20. Every other header
// includes this one, directly or indirectly, so the message comes before any other error. Also
// defines constants for differences between C++20 compilers.
#pragma once

#if !defined(__cplusplus) || __cplusplus < 202002L
#error "mallard: these headers need C++20, and this file is compiled as an older C++, or as C"
#error "  nothing of Mallard was read"
#error                                                                                             \
    "  help: pass -std=c++20, or in CMake link mallard::mallard; in C include mallard/c/mallard.h"
// The header below does not exist, on purpose, because every compiler stops at a missing header and
// prints no further errors.
#include <mallard/nothing_else_is_read_before_this_is_C++20>
#endif

#include <cstddef>

namespace mallard::detail {

/// Whether the compiler and the standard library compile `Allocator()`, the default argument in the
/// constructors of containers, when they test whether a container can be an element. Clang does so
/// with libstdc++ 14 and later.
#if defined(__clang__) && defined(_GLIBCXX_RELEASE) && _GLIBCXX_RELEASE >= 14
inline constexpr bool compiles_default_allocators = true;
#else
inline constexpr bool compiles_default_allocators = false;
#endif

} // namespace mallard::detail

// Stops a compilation below C++20 with a message. Every other header includes this one, directly or
// indirectly, so the message comes before any other error.
#pragma once

#if !defined(__cplusplus) || __cplusplus < 202002L
#error "mallard: these headers need C++20, and this file is compiled as an older C++, or as C"
#error "  nothing of Mallard was read"
#error                                                                                             \
    "  help: pass -std=c++20, or in CMake link mallard::mallard; in C include mallard/c/mallard.h"
// The header below does not exist, on purpose: every compiler stops at a missing header and prints
// no further errors.
#include <mallard/nothing_else_is_read_before_this_is_C++20>
#endif

// Refuses to be compiled as anything older than C++20. Every other header includes this one, most
// of them by way of another, so the words below come before any error that follows from them.
#pragma once

#if !defined(__cplusplus) || __cplusplus < 202002L
#error "mallard: these headers need C++20, and this file is compiled as an older C++, or as C"
#error "  nothing of Mallard was read"
#error                                                                                             \
    "  help: pass -std=c++20, or in CMake link mallard::mallard; in C include mallard/c/mallard.h"
// A missing header is the one error after which every compiler stops.
#include <mallard/nothing_else_is_read_before_this_is_C++20>
#endif

// Who serves the family of malloc: the engine. In libmallard-checked.so it is
// ../checked/served_by.hpp; which of them malloc.cpp and new.cpp see, CMakeLists.txt says.
#pragma once

#include "../../heap/requests.hpp"

inline constexpr bool malloc_is_checked = false;

namespace mallard {
extern const bool options_are_read; // in options.cpp
namespace {
/// A linker takes from an archive only what somebody refers to: so who serves a program refers to
/// what reads the environment.
[[gnu::used]] constinit const bool* const reads_options = &options_are_read;
} // namespace
} // namespace mallard

namespace malloc_family = mallard::engine;
namespace new_family = mallard::engine;

// Who serves the family of malloc: the engine. In libmallard-checked.so it is
// ../checked/served_by.hpp; which of them malloc.cpp and new.cpp see, CMakeLists.txt says.
#pragma once

#include "../../heap/requests.hpp"

inline constexpr bool malloc_is_checked = false;

namespace malloc_family = mallard::engine;
namespace new_family = mallard::engine;

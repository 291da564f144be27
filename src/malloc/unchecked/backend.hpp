// The backend of malloc (the functions that malloc.cpp, new.cpp and prefixed.cpp call), which is
// the engine itself. libmallard-checked.so uses ../checked/backend.hpp instead. CMakeLists.txt
// chooses between the directories.
#pragma once

#include "../../heap/requests.hpp"

inline constexpr bool malloc_is_checked = false;

namespace malloc_family = mallard::engine;
namespace new_family = mallard::engine;

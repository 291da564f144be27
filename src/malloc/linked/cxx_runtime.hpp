// Access to the C++ runtime for libmallard-malloc.a. Only a program that calls operator new pulls
// new.cpp out of the archive, and such a program has a runtime. The functions of the runtime are
// called by name, so that the linker pulls them out of a static runtime.
#pragma once

#include <new>

namespace mallard::cxx_runtime {

/// Null: no handler is set.
inline std::new_handler new_handler() noexcept
{
    return std::get_new_handler();
}

[[noreturn]] inline void throw_bad_alloc()
{
    throw std::bad_alloc();
}

/// What the throwing form gives, or null if it throws.
template <class Form, class Insist, class... Arguments>
void* catching(Insist insist, const char*, const Arguments&...) noexcept
{
    try {
        return insist(true);
    } catch (...) {
        return nullptr;
    }
}

} // namespace mallard::cxx_runtime

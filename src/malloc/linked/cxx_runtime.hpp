// The C++ runtime of a program that libmallard-malloc.a is linked into. Only a program that calls
// operator new takes new.cpp out of the archive, and that program has a runtime: it is called
// by name, so that the linker takes what is needed of a static one.
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

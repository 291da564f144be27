// Access to the C++ runtime for libmallard-malloc.a, by ordinary calls. A linker takes new.o from
// the archive only for a program that calls operator new, and such a program has a C++ runtime.
// Unlike weak symbols, ordinary calls make the linker take the functions from a static runtime,
// too.
#pragma once

#include <new>

namespace mallard::cxx_runtime {

/// The current new_handler; null if none is set.
inline std::new_handler new_handler() noexcept
{
    return std::get_new_handler();
}

[[noreturn]] inline void throw_bad_alloc()
{
    throw std::bad_alloc();
}

/// Calls the throwing form of operator new, and returns null if it throws.
template <class Form, class Retry, class... Arguments>
void* catching(Retry retry, const char*, const Arguments&...) noexcept
{
    try {
        return retry(true);
    } catch (...) {
        return nullptr;
    }
}

} // namespace mallard::cxx_runtime

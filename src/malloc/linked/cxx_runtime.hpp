// Calls functions of the C++ runtime from libmallard-malloc.a, by ordinary calls. A linker adds
// new.o from the archive only to a program that calls operator new, and such a program has a C++
// runtime. Unlike weak symbols, ordinary calls also make the linker add the functions from a static
// runtime.
#pragma once

#include <new>

namespace mallard::cxx_runtime {

/// Returns the current new_handler, or null if no handler is set.
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

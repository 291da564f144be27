// The C++ runtime of a program that libmallard.so serves, if the program has one: the library needs
// none. A runtime may be linked into the program, or come later than this library, with a
// plugin. In libmallard-malloc.a it is ../linked/cxx_runtime.hpp; CMakeLists.txt says which.
#pragma once

#include "../../os/system.hpp"

#include <cstdlib>
#include <new>

#include <dlfcn.h>

// Weak, so that nothing is needed. The linker exports the ones that a program has inside itself
// (-static-libstdc++), because this library asks for them.
extern "C" {
[[gnu::weak]] void mallard_throw_bad_alloc() __asm__("_ZSt17__throw_bad_allocv");
[[gnu::weak]] std::new_handler mallard_get_new_handler() noexcept __asm__("_ZSt15get_new_handlerv");
}

namespace mallard::cxx_runtime {

/// Null: there is no such function. `loading`: RTLD_NOLOAD, or 0 to load a runtime.
template <class F>
F symbol(const char* name, int loading = RTLD_NOLOAD) noexcept
{
    void* found = ::dlsym(RTLD_DEFAULT, name);
    // A runtime that a plugin brought along is not among the default ones.
    if (found == nullptr)
        if (void* const runtime = ::dlopen("libstdc++.so.6", RTLD_LAZY | loading))
            found = ::dlsym(runtime, name);
    return reinterpret_cast<F>(found);
}

/// Null: no handler is set.
inline std::new_handler new_handler() noexcept
{
    if (mallard_get_new_handler != nullptr)
        return mallard_get_new_handler();
    auto const get = symbol<std::new_handler (*)()>("_ZSt15get_new_handlerv");
    return get == nullptr ? nullptr : get();
}

/// A program with a runtime inside that has no std::bad_alloc catches one of another runtime.
[[noreturn]] inline void throw_bad_alloc()
{
    if (mallard_throw_bad_alloc != nullptr)
        mallard_throw_bad_alloc();
    if (auto const thrower = symbol<void (*)()>("_ZSt17__throw_bad_allocv", 0))
        thrower();
    static constexpr char text[] = "mallard: out of memory in operator new, without a C++ runtime\n"
                                   "  std::bad_alloc cannot be thrown\n"
                                   "  help: link the program with libstdc++, or call "
                                   "operator new(bytes, std::nothrow)\n";
    os::write_error(text, sizeof text - 1);
    std::abort();
}

/// What the throwing form gives, or null if it throws. To catch takes a runtime: the runtime's
/// own nothrow form, `name`, calls our throwing form and catches. A runtime inside the program
/// has none, as ours is taken in its place: what a handler throws passes through then.
template <class Form, class Insist, class... Arguments>
void* catching(Insist insist, const char* name, const Arguments&... arguments)
{
    if (auto const of_runtime = reinterpret_cast<Form>(::dlsym(RTLD_NEXT, name)))
        return of_runtime(arguments...);
    return insist(false);
}

} // namespace mallard::cxx_runtime

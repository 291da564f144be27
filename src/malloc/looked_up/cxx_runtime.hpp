// Access to the C++ runtime for libmallard.so. The library needs no runtime, and a program may have
// none. A runtime may be linked into the program, or be loaded after this library, with a
// plugin. libmallard-malloc.a uses ../linked/cxx_runtime.hpp instead; CMakeLists.txt chooses.
#pragma once

#include "../../os/system.hpp"

#include <cstdlib>
#include <new>

#include <dlfcn.h>

// Weak, so that no runtime is needed. If a program has these functions inside itself
// (-static-libstdc++), the linker exports them because this library refers to them.
extern "C" {
[[gnu::weak]] void mallard_throw_bad_alloc() __asm__("_ZSt17__throw_bad_allocv");
[[gnu::weak]] std::new_handler mallard_get_new_handler() noexcept __asm__("_ZSt15get_new_handlerv");
}

namespace mallard::cxx_runtime {

/// Looks a function up; null: there is none. `loading`: RTLD_NOLOAD, or 0 to load a runtime.
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

/// Throws std::bad_alloc. A program whose own runtime lacks the function can catch the exception
/// of another runtime, which is loaded here.
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

/// Returns what the throwing form of new returns, or null if that form throws. Only a runtime can
/// catch: its own nothrow form, `name`, calls our throwing form and catches. A runtime inside the
/// program has no such form, because the linker takes ours instead; then an exception of a handler
/// passes through.
template <class Form, class Insist, class... Arguments>
void* catching(Insist insist, const char* name, const Arguments&... arguments)
{
    if (auto const of_runtime = reinterpret_cast<Form>(::dlsym(RTLD_NEXT, name)))
        return of_runtime(arguments...);
    return insist(false);
}

} // namespace mallard::cxx_runtime

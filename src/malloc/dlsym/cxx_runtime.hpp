// Calls functions of the C++ runtime from libmallard.so, by weak symbols and dlsym. The library
// needs no C++ runtime, and a program may have no runtime, or may contain a runtime itself, or a
// plugin may load a runtime later. libmallard-malloc.a uses ../linked/cxx_runtime.hpp instead.
// CMakeLists.txt chooses between the directories.
#pragma once

#include "../../os/system.hpp"

#include <cstdlib>
#include <new>

#include <dlfcn.h>

// These functions are weak, so they are null in a program without a runtime. If the runtime is
// linked into the program (-static-libstdc++), the linker exports the functions, because this
// library refers to them.
extern "C" {
[[gnu::weak]] void mallard_throw_bad_alloc() __asm__("_ZSt17__throw_bad_allocv");
[[gnu::weak]] std::new_handler mallard_get_new_handler() noexcept __asm__("_ZSt15get_new_handlerv");
}

namespace mallard::cxx_runtime {

/// Looks up a function of the runtime. Returns null if there is no such function. `loading` is
/// RTLD_NOLOAD, or 0 to load libstdc++ if no runtime is loaded.
template <class F>
F symbol(const char* name, int loading = RTLD_NOLOAD) noexcept
{
    void* found = ::dlsym(RTLD_DEFAULT, name);
    // Needed because RTLD_DEFAULT does not find a runtime that a plugin has loaded.
    if (found == nullptr)
        if (void* const runtime = ::dlopen("libstdc++.so.6", RTLD_LAZY | loading))
            found = ::dlsym(runtime, name);
    return reinterpret_cast<F>(found);
}

/// Returns the current new_handler, or null if no handler is set.
inline std::new_handler new_handler() noexcept
{
    if (mallard_get_new_handler != nullptr)
        return mallard_get_new_handler();
    auto const get = symbol<std::new_handler (*)()>("_ZSt15get_new_handlerv");
    return get == nullptr ? nullptr : get();
}

/// Throws std::bad_alloc. If no loaded runtime has a function for that, loads libstdc++, because
/// the program's own runtime can catch the exception of libstdc++.
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

/// Calls the throwing form of operator new, and returns null if that form throws. This library has
/// no runtime, so it cannot catch exceptions. Therefore it calls the runtime's nothrow form, which
/// has the symbol `name`. The runtime's nothrow form calls this library's throwing form in a try
/// block. If a runtime is linked into the program, the runtime's nothrow form is missing, because
/// the linker uses the nothrow form of this library. Then an exception of a new_handler propagates.
template <class Form, class Retry, class... Arguments>
void* catching(Retry retry, const char* name, const Arguments&... arguments)
{
    if (auto const of_runtime = reinterpret_cast<Form>(::dlsym(RTLD_NEXT, name)))
        return of_runtime(arguments...);
    return retry(false);
}

} // namespace mallard::cxx_runtime

#include "relocation.hpp"

// Defines an indirect function in the library. The loader runs the resolver of this function when
// it relocates the library. Nothing calls the function itself.
//
// Only shared libraries contain this file. In a static program, resolvers run before the C library
// has set the thread pointer. In other programs, the linker decides whether this resolver runs
// before those of the program.

extern "C" {

using function = void();

[[gnu::used]] static function* mallard_resolve() noexcept
{
    mallard::os::on_relocation();
    return nullptr;
}

// Not static: clang 19 exports a static indirect function.
[[gnu::ifunc("mallard_resolve"), gnu::visibility("hidden")]] function mallard_indirect;

} // extern "C"

/// A linker keeps the indirect function only if something refers to it.
[[gnu::used]] static function* const volatile mallard_reference = mallard_indirect;

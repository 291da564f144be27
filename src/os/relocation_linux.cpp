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

// Not static, because clang 19 exports an indirect function that is static.
[[gnu::ifunc("mallard_resolve"), gnu::visibility("hidden")]] function mallard_indirect;

} // extern "C"

/// A reference to the indirect function. Without a reference, a linker would remove the function.
[[gnu::used]] static function* const volatile mallard_reference = mallard_indirect;

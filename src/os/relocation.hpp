// A function that the loader of glibc calls while it relocates a library that replaces malloc.
#pragma once

namespace mallard::os {

/// Prepares the thread-local variables of the first thread for calls by the resolvers of indirect
/// functions (ifunc). The library defines this function, and relocation_linux.cpp calls it.
///
/// The loader relocates libraries before the program, and runs the program's resolvers while it
/// relocates the program. All thread-local variables are still 0 then: the loader copies their
/// initial values after all relocations. What this function writes lasts until that copy.
///
/// The function must not call another library, since the addresses of functions may be missing.
void on_relocation() noexcept;

} // namespace mallard::os

// Declares a function that glibc's loader calls while it relocates a library that replaces malloc.
#pragma once

namespace mallard::os {

/// Prepares the thread-local variables of the first thread for calls by the resolvers of indirect
/// functions (ifunc). The library defines this function, and relocation_linux.cpp calls it.
///
/// The loader relocates libraries before the program, and runs the program's resolvers while it
/// relocates the program. At that time, all thread-local variables are still 0, because the loader
/// copies their initial values after all relocations. Values that this function writes last until
/// that copy.
///
/// The function must not call another library, since the addresses of functions may be missing.
void on_relocation() noexcept;

} // namespace mallard::os

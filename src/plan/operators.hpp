// The operators new and delete that follow those of this library.
#pragma once

namespace mallard::plan {

/// Looks the operators up, unless they are known. Called when the program starts, and when the
/// constructor of a C++ runtime allocates. A look-up locks the dynamic linker, so another thread
/// that allocates should not need one: a thread may wait for it inside of dlopen.
void find_operators() noexcept;

} // namespace mallard::plan

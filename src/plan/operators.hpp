// Finds the operators new and delete that this library replaces.
#pragma once

namespace mallard::plan {

/// Looks up the operators, unless they are known. Called when the program starts, and when the
/// constructor of a C++ runtime allocates. The look-up needs a lock of the dynamic linker. A later
/// allocation should not need that lock, because a thread inside of dlopen may hold the lock and
/// wait for the allocating thread.
void find_operators() noexcept;

} // namespace mallard::plan

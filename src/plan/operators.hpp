// Finds the operators new and delete that this library replaces.
#pragma once

namespace mallard::plan {

/// Looks up the operators, unless they are known. Called when the program starts, and when the
/// constructor of a C++ runtime allocates. The look-up needs a lock of the dynamic linker. A thread
/// that allocates later should not need that lock, because its owner, a thread inside of dlopen,
/// may wait for that thread.
void find_operators() noexcept;

} // namespace mallard::plan

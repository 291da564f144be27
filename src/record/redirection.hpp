// Redirects entries of all modules to the functions of this library, and back. The redirected
// entries contain the address of malloc or a related function, of an operator new or delete, of
// dlopen or of dlclose.
//
// An entry is a word in which the loader stores the address of a function, for calls or for
// pointers (JUMP_SLOT, GLOB_DAT and 64-bit relocations). An entry is redirected only if it contains
// the address of the function that this library calls next, or if it is not bound yet (lazy
// binding). So a module that allocates from another malloc continues to do so.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mallard::record {

/// Finds the functions of this library, and the functions that these call next. Returns false if
/// there is no memory, or if the library was preloaded, so that calls already reach it.
bool find_functions() noexcept;

/// Returns the first definition of a name in the loaded modules except this library. A call from
/// the program reaches this definition.
void* first_definition(const char* name) noexcept;

/// Redirects the entries of all modules. Unlocks the lock of this file first, because in the child
/// of a fork, a thread of the parent may have held it. So no other thread of this process may
/// redirect entries at the same time.
void begin_redirection() noexcept;

/// Redirects the entries of modules that were loaded since the last call. If another thread is
/// doing that, waits for that thread if `may_wait` is true, and otherwise does nothing.
void redirect(bool may_wait) noexcept;

/// Restores the original values of all redirected entries.
void restore() noexcept;

/// Writes `before` to the entry at `at` if the entry contains `now`.
void restore_entry(std::uintptr_t at, std::uintptr_t before, std::uintptr_t now) noexcept;

} // namespace mallard::record

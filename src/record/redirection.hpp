// Redirects the entries of all modules that have the address of a function of malloc's family, an
// operator new or delete, dlopen or dlclose: to the functions of this library, and back.
//
// An entry is a word in which the loader stores the address of a function, for calls or for
// pointers (JUMP_SLOT, GLOB_DAT and 64-bit relocations). It is redirected only if it has the
// address of the function that this library calls next, or is not bound yet (lazy binding). So a
// module that allocates from another malloc keeps it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mallard::record {

/// Finds the functions of this library, and those that it calls next. False: the library was
/// preloaded, so calls reach it already, or there is no memory.
bool find_functions() noexcept;

/// The first definition of a name in the modules that were loaded at the start, or later. It is
/// what a call from the program reaches.
void* first_definition(const char* name) noexcept;

/// Redirects the entries of all modules. No other thread of this process may redirect entries yet:
/// in the child of a fork, another thread of the parent may have had the lock.
void begin_redirection() noexcept;

/// Redirects the entries of modules that were loaded since then. If another thread is doing that,
/// waits for it, or leaves the rest to the next call.
void redirect(bool may_wait) noexcept;

/// Makes all entries as they were before `begin_redirection`.
void restore() noexcept;

/// Writes `before` to an entry that has `now`.
void restore_entry(std::uintptr_t at, std::uintptr_t before, std::uintptr_t now) noexcept;

} // namespace mallard::record

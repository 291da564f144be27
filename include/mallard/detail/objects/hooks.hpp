// What an object_pool calls beside constructors and destructors.
#pragma once

#include <mallard/detail/base/cxx20.hpp>

#include <concepts>

namespace mallard {

/// Nothing. A type of your own has either or both of
///
///     void acquired(T& object);          // just made; may throw, then it is destroyed
///     void released(T& object) noexcept; // about to be destroyed
///
/// They are called where the constructor and the destructor are: by any thread that
/// makes or destroys, and under no lock.
struct no_hooks {};

// clang-format off
template <class H, class T>
concept hears_of_new = requires(H& hooks, T& object) { hooks.acquired(object); };

template <class H, class T>
concept hears_of_dead = requires(H& hooks, T& object) { hooks.released(object); };

template <class H, class T>
concept refuses_no_new = !hears_of_new<H, T> || requires(H& hooks, T& object) {
    { hooks.acquired(object) } noexcept;
};

/// A slip in a name or an argument would be a hook that nobody calls.
template <class H, class T>
concept hooks_for = std::same_as<H, no_hooks> || hears_of_new<H, T> || hears_of_dead<H, T>;
// clang-format on

} // namespace mallard

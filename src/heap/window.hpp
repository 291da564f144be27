// How windows come to be and grow. Under the lock of central.
#pragma once

#include "slab_map.hpp"

namespace mallard::engine {

/// Commits at least `at_least` more granules, and adds their number to `committed`. Blocked:
/// another mapping is in the way, so the window has less room than was thought.
os::growth move_frontier(window& w, std::size_t at_least, std::size_t& committed) noexcept;

/// Does the same in a new window. Refused: there is no memory, or no place for a window.
os::growth add_window(std::size_t at_least, std::size_t& committed) noexcept;

/// Whether large pages are asked for, of memory that is used from now on.
extern constinit std::atomic<bool> huge_pages;

} // namespace mallard::engine

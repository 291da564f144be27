// How windows come to be and grow. Under the lock of central.
#pragma once

#include "slab_map.hpp"

namespace mallard::engine {

/// Makes at least so many more granules memory, and adds to `committed` how many. Blocked:
/// something else is in the way, so the window has less room than was thought.
os::growth move_frontier(window& w, std::size_t at_least, std::size_t& committed) noexcept;

/// The same in another window, which becomes one. Refused: for want of memory or of a place.
os::growth add_window(std::size_t at_least, std::size_t& committed) noexcept;

/// Whether large pages are asked for, of memory that is used from now on.
extern constinit std::atomic<bool> huge_pages;

} // namespace mallard::engine

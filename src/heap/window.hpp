// How windows come to be and grow. Under the lock of central.
#pragma once

#include "slab_map.hpp"

namespace mallard::engine {

/// As large as the system permits; null: it permits none with so many granules.
window* add_window(std::size_t at_least) noexcept;

/// Makes at least so many more granules memory. False: refused, or the window is full.
bool move_frontier(window& w, std::size_t at_least) noexcept;

/// Whether large pages are asked for, of memory that is used from now on.
extern constinit std::atomic<bool> huge_pages;

} // namespace mallard::engine

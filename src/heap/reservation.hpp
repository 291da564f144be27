// How reservations come to be and grow. Under the lock of the slice heap.
#pragma once

#include "slab_map.hpp"

namespace mallard::engine {

/// Commits at least `at_least` more slices, and adds their number to `committed`. Blocked:
/// another mapping is in the way, so the reservation has less room than was thought.
os::growth raise_commit_limit(reservation& w, std::size_t at_least,
                              std::size_t& committed) noexcept;

/// Does the same in a new reservation. Refused: there is no memory, or no place for a reservation.
os::growth add_reservation(std::size_t at_least, std::size_t& committed) noexcept;

/// Whether large pages are asked for, of memory that is used from now on.
extern constinit std::atomic<bool> huge_pages;

} // namespace mallard::engine

// Fills the heap with blocks and gaps before a replay begins.
#pragma once

#include "check.hpp"
#include "options.hpp"

namespace mallard::replay {

/// What `make_litter` has left in the heap.
struct litter_left {
    std::uint64_t made = 0;  ///< blocks that were allocated
    std::uint64_t left = 0;  ///< blocks that were not freed
    std::uint64_t bytes = 0; ///< bytes of the blocks that were not freed
};

/// Makes gaps in the heap, because a fresh heap makes every malloc look better than in a program
/// that has run for long. Allocates as many blocks as the recorded program had at its peak, with
/// sizes of the recording, and frees all but a share of them, chosen at random. The blocks are the
/// same in every run. The idea is that of litterer (https://github.com/nicovank/litterer).
litter_left make_litter(stream const& of, check_result const& known,
                        options const& chosen) noexcept;

} // namespace mallard::replay

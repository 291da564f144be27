// Fragments the heap before a replay, by filling it with blocks and gaps.
#pragma once

#include "check.hpp"
#include "options.hpp"

namespace mallard::replay {

/// The blocks that `make_litter` has left in the heap.
struct litter_left {
    std::uint64_t made = 0;  ///< number of blocks that were allocated
    std::uint64_t left = 0;  ///< number of blocks that were not freed
    std::uint64_t bytes = 0; ///< sum of the sizes of the blocks that were not freed
};

/// Makes gaps in the heap, because with an unused heap, every malloc looks better than in a program
/// that has run for a long time. Allocates as many blocks as the recorded program had at its peak,
/// with sizes from the recording. Then frees randomly chosen blocks until a share of the blocks is
/// left. The random choice is the same in every run. The idea is from litterer
/// (https://github.com/nicovank/litterer).
litter_left make_litter(stream const& of, check_result const& known,
                        options const& chosen) noexcept;

} // namespace mallard::replay

// The contenders of the arena suite. The constructor of a contender has two parameters: a buffer of
// the caller, which may be empty, and the number of bytes that the case will allocate. Only the
// hand-written lower bound uses that number.
#pragma once

#include <bench/contenders/binding.hpp>
#include <bench/contenders/boost.hpp>
#include <bench/contenders/foonathan.hpp>
#include <bench/contenders/limits.hpp>
#include <bench/contenders/mallard.hpp>
#include <bench/entrants.hpp>

namespace mallard::bench {

using arena_contenders = contender_list<std_monotonic, boost_monotonic, foonathan_stack, bump,
                                        arena_contender<1>, arena_contender<8>, arena_pmr>;

// Each of these functions returns the experiments of one source file of the suite.
std::vector<experiment> arena_blocks(effort);
std::vector<experiment> arena_life(effort);
std::vector<experiment> arena_uses(effort);

} // namespace mallard::bench

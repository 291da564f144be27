// What a worker is told to do, as numbers on its command line: the same words on
// both sides of the pipe.
#pragma once

#include <bench/harness.hpp>

#include <cstdint>

namespace mallard::bench {

/// A job's name, and what it needs of these.
struct task {
    std::string_view job = {};
    std::size_t bytes = 0; ///< of a block, or of the smallest
    std::size_t most = 0;  ///< bytes of the largest, where they differ
    std::size_t count = 0; ///< of blocks
    std::size_t threads = 1;
    std::size_t variant = 0; ///< what else there is to choose
    std::size_t times = 0;   ///< how often, or for how many ms; 0: as long as a round takes
};

// What is asked of a worker, a byte each, and what it answers.
namespace request {
inline constexpr char round = 'r';  ///< do a round: its figures
inline constexpr char memory = 'm'; ///< peak and present KiB, without the tables
inline constexpr char finish = 'f'; ///< free everything: nothing
inline constexpr char rest = 's';   ///< sleep a second: nothing
} // namespace request

} // namespace mallard::bench

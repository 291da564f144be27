// The task of a worker, as numbers on its command line. Both sides of the pipe use this header.
#pragma once

#include <bench/harness.hpp>

#include <cstdint>

namespace mallard::bench {

/// The name of a job, and its parameters. Each job reads only some of the parameters.
struct task {
    std::string_view job = {};
    std::size_t bytes = 0; ///< size of a block, or of the smallest block
    std::size_t most = 0;  ///< size of the largest block, if sizes differ
    std::size_t count = 0; ///< number of blocks
    std::size_t threads = 1;
    std::size_t variant = 0; ///< a choice whose meaning depends on the job
    std::size_t times = 0;   ///< repetitions, or ms; 0 means the time of a round
};

// The requests to a worker. Each request is one byte. The comment describes the answer of the
// worker.
namespace request {
inline constexpr char round = 'r';  ///< does a round; answers its figures
inline constexpr char memory = 'm'; ///< answers peak and current KiB, without the tables
inline constexpr char finish = 'f'; ///< frees everything; no answer
inline constexpr char rest = 's';   ///< sleeps a second; no answer
} // namespace request

} // namespace mallard::bench

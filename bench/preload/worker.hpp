// Starts and controls a worker, a small program that does one job with a preloaded malloc.
#pragma once

#include <bench/preload/contenders.hpp>
#include <bench/worker/task.hpp>

namespace mallard::bench {

/// A case of a suite: what is measured, and the worker's task.
struct load {
    std::string asks;
    std::vector<figure> figures;
    task what;
    std::size_t passes = 1; ///< rounds before memory is measured
    bool stays = false;     ///< memory is measured while threads exist
    bool fresh = false;     ///< starts a new worker for each round
    bool in_brief = true;
    double weight = 1;
};

/// Returns the command that starts a worker. Each round of that worker returns `figures` numbers.
std::vector<std::string> worker_command(task const&, std::size_t figures, effort);

/// Throws `cannot_run` if the library cannot be loaded.
void insist_on(preload const&);

/// Measures the time of a case under every contender. The memory is measured in a second worker
/// process.
experiment timed(load const&, effort);

/// Measures only memory. A worker does one round, frees all blocks and sleeps for a second. The
/// figures are the peak, the memory after the frees, and the memory after the sleep.
experiment weighed(load const&, effort);

} // namespace mallard::bench

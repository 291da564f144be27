// The suites' side of a worker: a small program that does one job with a preloaded contender.
#pragma once

#include <bench/preload/contenders.hpp>
#include <bench/worker/task.hpp>

namespace mallard::bench {

/// A row in the table of a suite: the question and the worker's task.
struct load {
    std::string asks;
    std::vector<figure> figures;
    task what;
    std::size_t passes = 1; ///< rounds before memory is measured
    bool stays = false;     ///< measured while threads exist, after all frees
    bool fresh = false;     ///< a new worker for each round: nothing is warm
    bool in_brief = true;
    double weight = 1;
};

/// The command that starts a worker; each of its rounds returns `figures` numbers.
std::vector<std::string> worker_command(task const&, std::size_t figures, effort);

/// Throws `cannot_run` if the library cannot be loaded.
void insist_on(preload const&);

/// Times a load under every contender. Another worker measures memory.
experiment timed(load const&, effort);

/// Measures only memory: a worker does one round, frees all blocks and sleeps a second. The figures
/// are the peak, the memory after the frees, and the memory after the second of sleep.
experiment weighed(load const&, effort);

} // namespace mallard::bench

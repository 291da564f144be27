// The suites' side of a worker: a small program that does one job, with a
// contender loaded before it.
#pragma once

#include <bench/preload/contenders.hpp>
#include <bench/worker/task.hpp>

namespace mallard::bench {

/// A row of the table of a suite: what is asked, and who does it how.
struct load {
    std::string asks;
    std::vector<figure> figures;
    task what;
    std::size_t passes = 1; ///< rounds before memory is weighed
    bool stays = false;     ///< weighed while its threads live, its blocks being freed
    bool fresh = false;     ///< a new worker for each round: nothing is warm
    bool in_brief = true;
    double weight = 1;
};

/// What starts a worker, each round of which answers with so many figures.
std::vector<std::string> worker_command(task const&, std::size_t figures, effort);

/// Throws `cannot_run` if it cannot be loaded.
void insist_on(preload const&);

/// Times it under every contender; memory comes from a worker of its own.
experiment timed(load const&, effort);

/// Only memory: a worker does one round, frees all and sleeps a second. Its figures
/// are the peak, what is held then, and what is held after the second.
experiment weighed(load const&, effort);

} // namespace mallard::bench

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
    bool fresh = false; ///< a new worker for each round: nothing is warm
    bool in_brief = true;
    double weight = 1;
};

/// Times it under every contender; memory comes from a worker of its own.
experiment timed(load const&, effort);

/// Only memory: a worker does one round, frees all and sleeps a second. Its figures
/// are the peak, what is held then, and what is held after the second.
experiment weighed(load const&, effort);

} // namespace mallard::bench

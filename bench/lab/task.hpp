// The command line and the output of a `mallard-bench-lab` process. Both the process and its parent
// use this header.
#pragma once

#include <bench/lab/cast.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <stdexcept>

namespace mallard::bench::lab {

/// The command line `mallard-bench-lab BENCHMARK LIBRARY STRATEGY NUMBER...`. It requests one
/// measurement under one strategy.
struct task {
    part who;
    std::array<std::size_t, 8> numbers{}; ///< their meaning depends on the benchmark
};

/// The measured figures, in the order in which the suite names them.
using figures = std::span<double>;

/// Thrown if the strategy cannot run this case. The text becomes the result's "why".
struct not_played : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// The benchmarks of J. Lakos (ACCU 2017). Each throws `std::bad_alloc` if memory is exhausted.
void growth(task const&, figures);      ///< Benchmarks I and V
void locality(task const&, figures);    ///< Benchmark II
void utilization(task const&, figures); ///< Benchmark III
void contention(task const&, figures);  ///< Benchmark IV

} // namespace mallard::bench::lab

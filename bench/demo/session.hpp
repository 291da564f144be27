// All cells of all tables, interleaved, each in a child process.
#pragma once

#include <bench/demo/cell.hpp>
#include <bench/demo/strategies.hpp>

#include <array>
#include <string>
#include <vector>

namespace mallard::demo {

/// What one workload gave.
struct series {
    workload_words words;
    std::uint64_t rounds = 1; ///< lives of the structure in a cell
    answer says{};            ///< of every strategy
    profile counts{};
    std::array<std::vector<measurement>, strategy_count> runs{}; ///< by strategy, then by run

    std::size_t runs_done() const noexcept { return runs.back().size(); } ///< by all strategies
};

struct plan {
    std::size_t runs = 25;
    double seconds_max = 0; ///< no run begins after it; 0: all runs, however long
};

struct session {
    std::vector<series> all;
    bool interrupted = false;
    bool out_of_time = false;
};

/// Measures until the plan is done or, while an `interrupts` lives, a signal comes;
/// what was finished by then is in the result. Throws `failure` when a cell dies, or when two
/// strategies do not agree.
session measure_all(int text_descriptor, const plan&);

/// Throws `failure` unless `now` is `expected`, which `S` and `T` said.
void expect_same(const workload_words&, const answer& expected, std::string_view expected_of,
                 const answer& now, std::string_view now_of);

/// Runs the cell that `measure_all` asked a child for, and prints its line.
int run_cell(const std::vector<std::string>& request);

} // namespace mallard::demo

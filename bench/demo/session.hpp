// Measures all workloads under all strategies. Each measurement is in a child process, and the
// strategies take turns.
#pragma once

#include <bench/demo/cell.hpp>
#include <bench/demo/strategies.hpp>

#include <array>
#include <string>
#include <vector>

namespace mallard::demo {

/// The results of one workload.
struct series {
    workload_words words;
    std::uint64_t rounds = 1; ///< how often a process builds the structure
    answer says{};            ///< the answer of every strategy
    profile counts{};
    std::array<std::vector<measurement>, strategy_count> runs{}; ///< by strategy, then by run

    std::size_t runs_done() const noexcept
    {
        return runs.back().size();
    } ///< runs that all strategies finished
};

struct plan {
    std::size_t runs = 25;
    double seconds_max = 0; ///< the last moment to start a run; 0: no limit
};

struct session {
    std::vector<series> all;
    bool interrupted = false;
    bool out_of_time = false;
};

/// Measures until the plan is done, or until a signal arrives while an `interrupts` object exists.
/// Returns all finished runs. Throws `failure` if a child process dies, or if two strategies give
/// different answers.
session measure_all(int text_descriptor, const plan&);

/// Throws `failure` unless `now` equals `expected`. `S` and `T` name the two strategies.
void expect_same(const workload_words&, const answer& expected, std::string_view expected_of,
                 const answer& now, std::string_view now_of);

/// Does in a child process what `measure_all` requested, and prints the result on one line.
int run_cell(const std::vector<std::string>& request);

} // namespace mallard::demo

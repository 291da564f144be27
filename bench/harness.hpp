// Defines suites and the experiments in them, and runs them.
//
// An experiment measures one quantity, or a few, of several contenders (allocators). All contenders
// are prepared in this process. Then each contender does a batch of work in each of several rounds.
// The contender that is first in one round is last in the next, so that noise of the machine
// affects all contenders alike. The result is the median over the rounds.
//
// The first round does not count, unless each round runs in a new process.
//
// Memory is measured separately. Each contender runs once more, alone, in a process that does
// nothing else.
#pragma once

#include <bench/support/row.hpp>

#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace mallard::bench {

/// The amount of work in a run. It is a full run, a short run, or a smoke run, which only checks
/// that every case works.
struct effort {
    enum class size { full, brief, smoke } kind = size::full;
    bool alone = false;   ///< this process measures the memory of one contender
    std::size_t less = 0; ///< divides the work of lakos1 to lakos5 by 2^less

    bool is_smoke() const noexcept { return kind == size::smoke; }
    bool is_brief() const noexcept { return kind == size::brief; }

    /// Returns the minimum ns of a batch. A batch must take much longer than a reading of the
    /// clock.
    double batch_ns() const noexcept { return is_smoke() ? 0 : 1e6; }

    /// Returns the number of blocks or rounds, which is `wanted`, or a small number in a smoke run.
    std::size_t count(std::size_t wanted) const noexcept
    {
        return is_smoke() && wanted > 128 ? 128 : wanted;
    }
};

/// Thrown by a contender that cannot run a case, when it is prepared for the case. The text becomes
/// the result's "why".
struct cannot_run : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A function that does one batch and writes the experiment's figures. The function owns the
/// contender: when the function is destroyed, every block is freed and the allocator is destroyed.
using round_function = std::function<void(std::span<double> figures)>;

/// The resident memory of an allocator under test at the peak, and what remains after every block
/// was freed and the allocator destroyed. The memory that the process held before the allocator was
/// prepared is subtracted, and so are the harness's tables.
struct child_result {
    double peak_kib = 0;
    double after_kib = 0;
    std::vector<double> figures = {}; ///< the figures of one round
    std::string why = {};             ///< if not empty, the reason why the contender could not run
};

/// Waits for a process and returns its result.
using pending_result = std::function<child_result()>;

struct entrant {
    std::function<std::string()> name;
    std::function<round_function()> prepare;
    int threads = 0; ///< if not 0, replaces the figure's threads
    /// Starts the process that measures memory. If this is empty, the harness calls `start_child`
    /// instead.
    std::function<pending_result()> start_alone = nullptr;
    /// The reason why figures are NaN. If empty, the figures are cycles, and the reason is that the
    /// length of a cycle is unknown on this machine.
    std::string why_unknown = {};
};

/// One measured quantity of a round. It becomes one result row for each contender.
struct figure {
    std::string case_name;
    std::string metric = "ns_per_op";
    std::string variant = "";
    int threads = 1;
};

struct experiment {
    std::string asks;
    std::vector<figure> figures;
    std::vector<entrant> entrants;
    std::size_t rounds = 0;     ///< exact number of rounds; 0 means as time allows
    bool fresh_process = false; ///< starts each round in a new process
    std::size_t at_once = 1;    ///< processes that run in parallel
    bool with_memory = true;    ///< measures memory in a separate process
    bool once = false;          ///< a single long round, which is not dropped
    bool in_brief = true;       ///< part of a short run
    double weight = 1;          ///< share of the remaining time, relative to others
};

struct suite {
    std::string_view name;
    std::string_view asks;
    std::vector<experiment> (*experiments)(effort);
    double minutes = 6; ///< approximate duration of a full run
};

/// Which suites, cases and contenders are to be run.
struct selection {
    std::string case_pattern;
    std::string variant_pattern;
    std::string contender_pattern;
    std::size_t rounds = 0; ///< 0 means as each experiment defines
    /// Returns whether a result exists already, from an interrupted run. If this function is empty,
    /// no result exists.
    std::function<bool(std::string_view suite, figure const&, std::string const& contender)>
        is_kept = nullptr;
};

/// Receives the results of one experiment, in the order of its entrants.
using rows_function = std::function<void(experiment const&, std::vector<row> const&)>;

void run(suite const&, effort, selection const&, rows_function const& report);
void list(suite const&, selection const&);

/// Called in a child process. Does the `task` that the parent requested, and prints the result.
int run_child(std::span<const suite> suites, effort, std::string const& task);

} // namespace mallard::bench

// The programs whose allocations the suite `trace` records.
#pragma once

#include <bench/programs/programs.hpp>

namespace mallard::bench {

/// A program that is a single process, because a recorder does not follow child processes by
/// default.
struct workload {
    std::string name;
    std::string asks;
    /// Writes the input and returns the command. Throws `cannot_run` if the program is missing.
    std::function<words(temporary_folder const&, double share)> command;
    /// For a server: sends requests and stops the server. Returns the wall time of the requests and
    /// an output. Null if the program ends by itself; then its output is what it prints.
    run_result (*ask)(temporary_folder const&, double share) = nullptr;
    /// For a server: a shell command that sends the same requests, succeeds once the server answers
    /// them, and prints an output. The command does not stop the server.
    std::string (*load)(temporary_folder const&, double share) = nullptr;
    int threads = 1;
    bool in_brief = true;
    bool is_python = false;
    /// Whether the program also has cases in which less is recorded.
    bool has_variants = false;
};

std::vector<workload> workloads();

/// Returns the fraction of a full run's work that a run does.
double share_of(effort);

/// Returns a shell command that runs a program. No word may contain a quote.
std::string shell_command(words const&);

} // namespace mallard::bench

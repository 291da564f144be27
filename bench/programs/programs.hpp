// The programs that are run, and what they are given to do.
#pragma once

#include <bench/harness.hpp>
#include <bench/programs/run.hpp>

#include <functional>

namespace mallard::bench {

/// Runs it once under a library, in a folder where its input may be. What it prints
/// must be the same whoever provides malloc.
using program_function =
    std::function<run_result(temporary_folder const&, std::string const& library)>;

struct program {
    std::string name;
    std::string asks;
    /// Writes the input and says how to run it; throws `cannot_run`. `share`: of the
    /// work of a full run.
    program_function (*prepare)(temporary_folder const&, double share);
    bool in_brief = true;
};

std::vector<program> interpreters();
std::vector<program> tools();

/// One command, whose standard output is its result.
program_function command_line(std::vector<std::string> command);

} // namespace mallard::bench

// The programs of the suite, and the work that each program does.
#pragma once

#include <bench/harness.hpp>
#include <bench/programs/run.hpp>

#include <functional>

namespace mallard::bench {

/// Runs the program once with a preloaded library. The folder has the input of the program. The
/// output must be the same with every malloc.
using program_function =
    std::function<run_result(temporary_folder const&, std::string const& library)>;

struct program {
    std::string name;
    std::string asks;
    /// Writes the input and returns a function that runs the program. Throws `cannot_run` if the
    /// program is missing. `share` is the fraction of a full run's work.
    program_function (*prepare)(temporary_folder const&, double share);
    bool in_brief = true;
};

std::vector<program> interpreters();
std::vector<program> tools();

/// Makes a program from one command. Its standard output is the result.
program_function command_line(std::vector<std::string> command);

} // namespace mallard::bench

// The programs of the suite, and the work that each program does.
#pragma once

#include <bench/harness.hpp>
#include <bench/programs/run.hpp>

#include <functional>

namespace mallard::bench {

/// Runs the program once with a library, in a folder that has its input. Its output must be the
/// same with every malloc.
using program_function =
    std::function<run_result(temporary_folder const&, std::string const& library)>;

struct program {
    std::string name;
    std::string asks;
    /// Writes the input and returns a function that runs the program; throws `cannot_run`. `share`
    /// is the part of a full run's work.
    program_function (*prepare)(temporary_folder const&, double share);
    bool in_brief = true;
};

std::vector<program> interpreters();
std::vector<program> tools();

/// A program that is one command; its standard output is the result.
program_function command_line(std::vector<std::string> command);

} // namespace mallard::bench

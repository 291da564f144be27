// The programs of the suite, and the work that each program does.
#pragma once

#include <bench/harness.hpp>
#include <bench/programs/run.hpp>

#include <functional>

namespace mallard::bench {

/// Runs the program once with a preloaded library. The directory has the input of the program. The
/// output must be the same with every malloc.
using program_function =
    std::function<run_result(temporary_folder const&, std::string const& library)>;

/// A command and its arguments. The first words may be NAME=VALUE, which sets a variable in the
/// environment of the command.
using words = std::vector<std::string>;

/// A program has either `command` or `prepare`. Both write the input, and throw `cannot_run` if the
/// program is missing. `share` is the fraction of a full run's work.
struct program {
    std::string name;
    std::string asks;
    /// Returns a command whose standard output is the result. Null if the program has `prepare`.
    words (*command)(temporary_folder const&, double share) = nullptr;
    /// Returns a function that runs the program. Null if the program has `command`.
    program_function (*prepare)(temporary_folder const&, double share) = nullptr;
    bool in_brief = true;
};

std::vector<program> interpreters();
std::vector<program> tools();

/// A source file in C++ that includes <regex>.
extern const char* const source_with_regex;

/// Makes the git repository `origin` in the directory.
void make_repository(temporary_folder const&, double share);

/// Returns the command that starts a redis-server. The server listens in the directory.
words redis_server(temporary_folder const&);

/// Returns the command that sends requests to the redis-server of the directory.
words redis_requests(temporary_folder const&, double share);

/// Returns the command that queries a number that the redis-server of the directory has counted.
words redis_question(temporary_folder const&);

/// Sends requests to the redis-server of the directory, and stops it. Returns the wall time of the
/// requests, and as output a number that the server has counted.
run_result ask_redis_server(temporary_folder const&, double share);

} // namespace mallard::bench

// The programs for which the predictions of `mallard replay` are compared with measurements.
#pragma once

#include <bench/trace/workloads.hpp>

namespace mallard::bench {

/// Returns the programs of the suite `trace` that do enough work, and more programs of several
/// threads and servers. Programs with `in_brief` run also with --short.
std::vector<workload> calibrated_programs();

/// Returns an HTTP server in Python that does not use Python's own allocator.
workload http_server();

/// Writes the input of programs into directories below `arguments[0]`, and prints their commands:
/// first a line of JSON with the machine and the commit, then a line for each program.
/// `arguments[1]` is the share of a full run's work, `arguments[2]` a regular expression that
/// selects programs. Without arguments, prints only the names. Returns the exit status.
int print_commands(std::span<char* const> arguments);

} // namespace mallard::bench

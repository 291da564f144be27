// The programs with which `mallard replay` is compared with reality.
#pragma once

#include <bench/trace/workloads.hpp>

namespace mallard::bench {

/// Returns the programs of the suite `trace` that do enough work, and more programs of several
/// threads and servers. Programs with `in_brief` run also with --short.
std::vector<workload> calibrated_programs();

/// A server of HTTP in Python without Python's own allocator.
workload http_server();

/// Writes the input of programs into folders below `arguments[0]`, and prints their commands: first
/// a line of JSON with the machine and the commit, then a line for each program. `arguments[1]` is
/// the share of a full run's work, `arguments[2]` a regular expression that selects programs.
/// Without arguments prints the names alone. Returns the exit status.
int print_commands(std::span<char* const> arguments);

} // namespace mallard::bench

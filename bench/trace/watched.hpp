// Runs a program under a recorder, and measures both.
#pragma once

#include <bench/preload/process.hpp>
#include <bench/programs/programs.hpp>

namespace mallard::bench {

/// A command that starts a program.
struct recording_command {
    words before;  ///< NAME=VALUE words, and the recorder with its options; may be empty
    words program; ///< the command line of the program, at the end of the command
};

struct watched_result {
    std::string output; ///< the output of all processes
    double seconds = 0; ///< wall time of the program
    double cpu_seconds = 0;
    double peak_kib = 0;
    double all_seconds = 0; ///< wall time of the whole command
    double all_cpu_seconds = 0;
    double other_peak_kib = 0; ///< peak of the largest process that is not the program
};

/// A running command. mallard-bench-watch measures it.
class watched_command {
public:
    explicit watched_command(recording_command const&);

    /// Waits until all processes have exited. Throws `cannot_run` if the status is not 0.
    watched_result wait();

private:
    std::string name_;
    process process_;
};

} // namespace mallard::bench

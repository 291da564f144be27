// Commands that read a finished recording, in Mallard and in other recorders.
#pragma once

#include <bench/trace/recorders.hpp>
#include <bench/trace/workloads.hpp>

namespace mallard::bench {

/// A command that reads the recording of a recorder.
struct reader {
    std::string name;
    std::shared_ptr<recorder const> with;
    /// Returns the command. `folder` has the files that the recorder wrote. Throws `cannot_run` if
    /// the command is missing.
    words (*command)(std::string const& folder);
};

/// A question that readers answer from their recordings of the same program.
struct reading {
    std::string name;
    std::string asks;
    std::vector<reader> readers;
};

/// Returns all questions. A new case needs a line here.
std::vector<reading> readings();

/// Returns the experiments: each question about each of some programs.
std::vector<experiment> read_recordings(effort);

} // namespace mallard::bench

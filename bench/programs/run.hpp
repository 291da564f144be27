// Runs a whole program with a contender, and measures its time and memory.
#pragma once

#include <bench/preload/contenders.hpp>
#include <bench/preload/process.hpp>

#include <filesystem>
#include <memory>

namespace mallard::bench {

struct run_result {
    std::string output;
    double wall_seconds = 0;
    double cpu_seconds = 0; ///< includes all child processes
    double peak_kib = 0;    ///< peak of the largest process
};

/// A running program. `command` may begin with NAME=VALUE, which sets a variable in its
/// environment.
class running_program {
public:
    running_program(std::vector<std::string> const& command, std::string const& library);

    /// Waits until the program exits. Throws `cannot_run` if the status is not 0.
    run_result wait();

private:
    std::string name_;
    process process_;
};

/// Returns the path of a program of the distribution. Throws `cannot_run` if it is not installed.
std::string program_path(std::string const& name, std::string const& package);

/// A directory for the input of a program. A temporary directory is removed when its last user is
/// destroyed.
class temporary_folder {
public:
    temporary_folder();
    /// Makes a directory that is not removed. `path` is absolute.
    explicit temporary_folder(std::filesystem::path path);
    temporary_folder(const temporary_folder&) = delete;
    temporary_folder& operator=(const temporary_folder&) = delete;
    ~temporary_folder();

    /// Returns the path of a file in the directory.
    std::string operator/(std::string const& name) const { return (path_ / name).string(); }

    /// Writes a file and returns its path.
    std::string write(std::string const& name, std::string const& text) const;

private:
    std::filesystem::path path_;
    bool is_kept_ = false;
};

} // namespace mallard::bench

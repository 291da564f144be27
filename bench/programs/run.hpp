// A whole program under a contender, and what it took.
#pragma once

#include <bench/preload/contenders.hpp>
#include <bench/preload/process.hpp>

#include <filesystem>
#include <memory>

namespace mallard::bench {

struct run_result {
    std::string output;
    double wall_seconds = 0;
    double cpu_seconds = 0; ///< its own and that of all it started
    double peak_kib = 0;    ///< of the largest process
};

/// A program that runs. `command` may begin with NAME=VALUE for its environment.
class running_program {
public:
    running_program(std::vector<std::string> const& command, std::string const& library);

    /// Its end. Throws `cannot_run` where it did not end with status 0.
    run_result wait();

private:
    std::string name_;
    process process_;
};

/// Where a program of the distribution is. Throws `cannot_run` if it is not there.
std::string program_path(std::string const& name, std::string const& package);

/// A folder that goes when the last user of it goes.
class temporary_folder {
public:
    temporary_folder();
    temporary_folder(const temporary_folder&) = delete;
    temporary_folder& operator=(const temporary_folder&) = delete;
    ~temporary_folder();

    /// The path of a file in it.
    std::string operator/(std::string const& name) const { return (path_ / name).string(); }

    /// Writes a file, and says where it is.
    std::string write(std::string const& name, std::string const& text) const;

private:
    std::filesystem::path path_;
};

} // namespace mallard::bench

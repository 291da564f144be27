// Libraries that replace the C library's malloc in a program. The program is not recompiled.
#pragma once

#include <string>
#include <vector>

namespace mallard::bench {

/// A library for LD_PRELOAD.
struct preload {
    std::string name;
    std::string library; ///< the value of LD_PRELOAD; empty for glibc's malloc
    std::string why;     ///< if not empty, why the library cannot be loaded
};

/// Returns all mallocs of spec/allocators.csv that are measured: glibc, the packages of Debian, the
/// crates that peers/ builds, and Mallard if it is built. Each library was tried once, to check
/// that its malloc is used when the library is preloaded.
std::vector<preload> const& preloads();

/// Returns the directory of this program.
std::string program_folder();

} // namespace mallard::bench

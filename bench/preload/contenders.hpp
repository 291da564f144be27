// Who stands in for the C library's malloc in a program that is not recompiled.
#pragma once

#include <string>
#include <vector>

namespace mallard::bench {

/// A library that is loaded before all others.
struct preload {
    std::string name;
    std::string library; ///< what LD_PRELOAD is set to; empty: nothing, glibc's own
    std::string why;     ///< not empty: it cannot be loaded, and this is the reason
};

/// glibc; what Debian has; what peers/ builds from crates; and Mallard, once it is
/// built. Whether each is in force where it is loaded was tried.
std::vector<preload> const& preloads();

/// Where this program and those built with it are.
std::string program_folder();

} // namespace mallard::bench

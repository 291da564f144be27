// Declares the functions that make the experiments of the malloc suite, one for each source file.
// Also makes the names of cases.
#pragma once

#include <bench/preload/worker.hpp>

#include <string>

namespace mallard::bench {

/// Writes a size in a case name: "64B", "4KiB", "1MiB".
inline std::string size_name(std::size_t bytes)
{
    if (bytes >= 1024 * 1024)
        return std::to_string(bytes >> 20) + "MiB";
    return bytes >= 1024 ? std::to_string(bytes >> 10) + "KiB" : std::to_string(bytes) + "B";
}

std::vector<load> malloc_pairs();
std::vector<load> malloc_bulk();
std::vector<load> malloc_mixes();
std::vector<load> malloc_hakmem();
std::vector<load> malloc_threads();
std::vector<experiment> malloc_instructions(effort);

} // namespace mallard::bench

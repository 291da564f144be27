// Reads how much memory of this process is resident.
#pragma once

#include "require.hpp"

#include <cstdio>

#include <unistd.h>

namespace mallard::testing {

/// Returns the resident memory in bytes.
inline std::size_t resident_bytes()
{
    unsigned long total = 0;
    unsigned long resident = 0;
    char text[64] = {};
    std::FILE* const file = std::fopen("/proc/self/statm", "r");
    require(file != nullptr && std::fgets(text, sizeof text, file) != nullptr &&
                std::sscanf(text, "%lu %lu", &total, &resident) == 2,
            "/proc/self/statm can be read");
    std::fclose(file);
    return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

} // namespace mallard::testing

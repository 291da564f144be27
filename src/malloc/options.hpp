// Reads options from the environment when the library is loaded, before the C library has read it.
#pragma once

#include <cstring>
#include <span>

namespace mallard {

/// A variable of the environment.
struct option {
    const char* name;
    /// Does what the value says; false if this option has no such value.
    bool (*take)(const char* value) noexcept;
    /// The text after NAME=VALUE in the line that reports a wrong value.
    const char* otherwise;
};

/// Applies each option that is set and not empty, and reports a wrong value in one line on
/// descriptor 2. In a set-uid program nothing is read.
void read_options(std::span<const option> options, char** environment) noexcept;

/// Whether the value is 0 or 1; sets `on` accordingly.
inline bool is_switch(const char* value, bool& on) noexcept
{
    on = std::strcmp(value, "1") == 0;
    return on || std::strcmp(value, "0") == 0;
}

} // namespace mallard

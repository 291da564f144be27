// How the environment is read: when the library is loaded, before the C library knows it.
#pragma once

#include <cstring>
#include <span>

namespace mallard {

/// A variable of the environment.
struct option {
    const char* name;
    /// Does what the value says; false if this option has no such value.
    bool (*take)(const char* value) noexcept;
    /// What follows NAME=VALUE in the line that says so.
    const char* otherwise;
};

/// Takes each option that is set and not empty. One that cannot be taken is a line on descriptor 2.
/// In a program that has rights which its user has not, nothing is read.
void read_options(std::span<const option> options, char** environment) noexcept;

/// Whether the value of a switch is one, and which: 0 or 1.
inline bool is_switch(const char* value, bool& on) noexcept
{
    on = std::strcmp(value, "1") == 0;
    return on || std::strcmp(value, "0") == 0;
}

} // namespace mallard

// Reads options from the environment when the library is loaded. At that time, the C library's
// `environ` is possibly not set yet, so the loader's array is passed as an argument.
#pragma once

#include <cstring>
#include <span>

namespace mallard {

/// An option, which is one environment variable.
struct option {
    const char* name;
    /// Applies a value. Returns false if the value is not valid.
    bool (*take)(const char* value) noexcept;
    /// The text that follows NAME=VALUE in the line that reports an invalid value.
    const char* otherwise;
    /// Whether the checked malloc accepts the value. If so, the path of the checked malloc follows
    /// the text.
    bool is_for_checked = false;
};

/// Applies each option that is set and not empty. Reports each invalid value in one line on
/// standard error. Does nothing in a set-uid program.
void read_options(std::span<const option> options, char** environment) noexcept;

/// Returns whether the value is 0 or 1. Sets `on` to the value.
inline bool is_switch(const char* value, bool& on) noexcept
{
    on = std::strcmp(value, "1") == 0;
    return on || std::strcmp(value, "0") == 0;
}

extern const bool options_are_read;

namespace {
/// Makes the linker add options.o from the archive whenever it adds an object that includes this
/// header. The engine does not include this header, since tests link the engine without options.o.
[[gnu::used]] constinit const bool* const reads_options = &options_are_read;
} // namespace

} // namespace mallard

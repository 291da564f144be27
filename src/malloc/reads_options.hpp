// A linker takes from an archive only what somebody refers to: so who serves a program refers to
// what reads the environment. Not the engine, which stands alone in tests.
#pragma once

namespace mallard {

extern const bool options_are_read; // in options.cpp

namespace {
[[gnu::used]] constinit const bool* const reads_options = &options_are_read;
} // namespace

} // namespace mallard

// A linker takes an object from an archive only if another object refers to it. So the malloc
// functions refer to options.cpp here. The engine does not, because tests link it alone.
#pragma once

namespace mallard {

extern const bool options_are_read; // in options.cpp

namespace {
[[gnu::used]] constinit const bool* const reads_options = &options_are_read;
} // namespace

} // namespace mallard

// Reports a failed check in programs without a test framework.
#pragma once

#include <cstdio>

#include <unistd.h>

namespace mallard::testing {

inline void check(bool holds, const char* promise)
{
    if (holds)
        return;
    std::fflush(stdout);
    std::fprintf(stderr, "broken: %s\n", promise);
    ::_exit(1);
}

} // namespace mallard::testing

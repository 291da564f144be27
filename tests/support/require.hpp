// `require`, for tests, random programs and fuzz targets: a requirement that does not hold stops
// the process.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <source_location>
#include <string>

namespace mallard::testing {

/// Printed when a requirement fails: says how to repeat the failure, for example a seed.
inline std::string doing = "";

/// Stops the process if the condition is false. A GoogleTest expectation would not do: sources must
/// not throw, a broken allocator must not continue, and fuzz targets have no GoogleTest.
inline void require(bool holds, const char* promise,
                    std::source_location at = std::source_location::current())
{
    if (holds)
        return;
    std::fprintf(stderr, "%s:%u: broken: %s\n%s%s", at.file_name(),
                 static_cast<unsigned>(at.line()), promise, doing.c_str(),
                 doing.empty() ? "" : "\n");
    std::abort();
}

} // namespace mallard::testing

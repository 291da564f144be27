// Defines `require`, which tests, random programs and fuzz targets use. If a requirement does not
// hold, the process stops.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <source_location>
#include <string>

namespace mallard::testing {

/// Printed when a requirement fails. Describes how to repeat the failure, for example by a seed.
inline std::string doing = "";

/// Stops the process if the condition is false. A GoogleTest expectation is not enough, because
/// sources must not throw, a broken allocator must not continue, and fuzz targets have no
/// GoogleTest.
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

// What tests, random programs and fuzz targets stop with.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <source_location>
#include <string>

namespace mallard::testing {

/// Said when a requirement fails: what makes it fail again, such as a seed.
inline std::string doing = "";

/// Not a GoogleTest expectation: sources promise not to throw, a broken
/// allocator is not worth another step, and a fuzz target has no GoogleTest.
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

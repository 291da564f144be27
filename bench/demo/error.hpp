// An error that ends or prevents a measurement, with a message of three lines.
#pragma once

#include <stdexcept>
#include <string>

namespace mallard::demo {

/// An error with its message: what happened, the state, and what to type next.
///
///     throw failure("found no text", "nothing was measured", "apt-get install perl-modules-5.36");
class failure : public std::runtime_error {
public:
    failure(const std::string& happened, const std::string& state, const std::string& help)
        : std::runtime_error("mallard-bench-demo: " + happened + "\n  " + state +
                             "\n  help: " + help)
    {
    }
};

} // namespace mallard::demo

// An error that ends a measurement or prevents it, with a message of three lines.
#pragma once

#include <stdexcept>
#include <string>

namespace mallard::demo {

/// An error with its message: what happened, the state, and what to type next.
///
///     throw failure("notes.txt: no such file", "nothing was measured",
///                   "name a text file, or nothing: `./x demo` finds text by itself");
class failure : public std::runtime_error {
public:
    failure(const std::string& happened, const std::string& state, const std::string& help)
        : std::runtime_error("mallard-demo: " + happened + "\n  " + state + "\n  help: " + help)
    {
    }
};

} // namespace mallard::demo

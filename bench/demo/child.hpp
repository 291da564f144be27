// Starts a child process that runs one workload under one strategy, and waits for its end. An
// interrupt at any moment leaves no child process behind.
#pragma once

#include <span>
#include <string>

namespace mallard::demo {

/// While an object of this class exists, Ctrl-C and SIGTERM set a flag instead of ending the
/// process.
class interrupts {
public:
    interrupts();
    ~interrupts();
    interrupts(const interrupts&) = delete;
    interrupts& operator=(const interrupts&) = delete;

    static bool seen() noexcept;
};

struct outcome {
    int status = 0;           ///< as from waitpid
    bool is_late = false;     ///< killed because it took too long
    bool interrupted = false; ///< killed because the user interrupted the demo
    std::string out, err;

    bool is_good() const noexcept { return status == 0 && !interrupted && !is_late; }
    std::string why() const; ///< "ended with status 1", "died of signal 11 (...)"
};

/// Runs this program with other arguments, and waits for its end.
outcome run_self(std::span<const std::string> arguments, double seconds_max);

} // namespace mallard::demo

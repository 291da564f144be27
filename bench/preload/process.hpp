// A process that runs with a library in LD_PRELOAD. Two pipes connect it with this process.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mallard::bench {

class process {
public:
    enum class complaints { shown, ignored }; ///< the output to standard error

    /// Starts a command. `command[0]` is looked up in PATH. Preloads nothing if `library` is empty.
    process(std::vector<std::string> const& command, std::string const& library,
            complaints = complaints::shown, int patience_ms = 120'000);
    process(const process&) = delete;
    process& operator=(const process&) = delete;
    ~process(); ///< kills the process, unless `wait` was called

    void write(std::string_view text) const;

    /// Fills `bytes` from the output. Returns false if the process ended, or was killed because it
    /// printed nothing for too long.
    bool read(std::span<std::byte> bytes);

    /// Reads the output to its end.
    std::string read_all();

    void finish_input();

    /// Closes the input and waits for the process. Returns its status, as waitpid does.
    int wait();

private:
    bool is_silent() const; // whether the process printed nothing for too long

    int patience_ms_;
    pid_t id_ = -1;
    int input_ = -1;
    int output_ = -1;
};

/// Describes a status: "status 1" or "signal 11".
std::string described(int status);

} // namespace mallard::bench

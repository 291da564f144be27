// A process with a library loaded before all others, at the other end of two pipes.
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
    enum class complaints { shown, ignored }; ///< what it writes to standard error

    /// `command[0]` is looked up in PATH. With `library` empty nothing is preloaded.
    process(std::vector<std::string> const& command, std::string const& library,
            complaints = complaints::shown, int patience_ms = 120'000);
    process(const process&) = delete;
    process& operator=(const process&) = delete;
    ~process(); ///< kills it, unless it was waited for

    void write(std::string_view text) const;

    /// All of `bytes`; false: it ended, or said nothing for too long and was killed.
    bool read(std::span<std::byte> bytes);

    /// What it prints, to its end.
    std::string read_all();

    void finish_input();

    /// No more input. Its status, as waitpid gives it.
    int wait();

private:
    bool is_silent() const; // for so long that it is killed

    int patience_ms_;
    pid_t id_ = -1;
    int input_ = -1;
    int output_ = -1;
};

/// "status 1" or "signal 11".
std::string described(int status);

} // namespace mallard::bench

// Identifies a process in shared memory, and finds out whether that process is still alive.
#pragma once

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

namespace mallard::os {

/// Fields of /proc/PID/stat. The state is '?' if the file cannot be read.
struct process {
    char state = '?';
    int threads = 0;
    unsigned long long start = 0; // in hundredths of a second

    explicit process(pid_t pid) noexcept
    {
        char text[1024];
        std::snprintf(text, sizeof text, "/proc/%d/stat", static_cast<int>(pid));
        int const file = ::open(text, O_RDONLY | O_CLOEXEC);
        ssize_t const length = file < 0 ? 0 : ::read(file, text, sizeof text - 1);
        if (file >= 0)
            ::close(file);
        text[length < 0 ? 0 : length] = '\0';
        // Read fields 3, 20 and 22. Search for them after the last parenthesis, because the
        // program's name may contain spaces and parentheses.
        if (const char* const name_end = std::strrchr(text, ')'))
            std::sscanf(name_end,
                        ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                        "%d %*s %llu",
                        &state, &threads, &start);
    }

    /// Returns whether the process has terminated. A killed process is a zombie until its parent
    /// waits for it. A process whose main thread has exited before the other threads is a zombie
    /// too, but still has more than one thread.
    bool has_ended() const noexcept { return state == 'X' || (state == 'Z' && threads < 2); }
};

inline constexpr int start_bits = 26;

/// Returns 48 bits that identify a process, and are never 0 or 1. The bits combine the process ID
/// with the start time. Neither suffices alone, because the system soon reuses a process ID, and
/// the start time repeats after a week.
inline std::uint64_t mark_of_process(pid_t pid, const process& p) noexcept
{
    return static_cast<std::uint64_t>(pid) << start_bits |
           (p.start & ((std::uint64_t{1} << start_bits) - 1));
}

inline std::uint64_t mark_of_this_process() noexcept
{
    return mark_of_process(::getpid(), process(::getpid()));
}

inline bool is_alive(std::uint64_t mark) noexcept
{
    auto const pid = static_cast<pid_t>(mark >> start_bits);
    if (::kill(pid, 0) != 0 && errno == ESRCH)
        return false;
    process const now(pid);
    if (now.state == '?')
        return true; // the process exists, but /proc hides it from this user
    return !now.has_ended() && mark_of_process(pid, now) == mark;
}

} // namespace mallard::os

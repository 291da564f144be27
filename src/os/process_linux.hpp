// Which process is at work on something, and whether it still can be.
#pragma once

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

namespace mallard::os {

/// What /proc/PID/stat says; a state of '?' when it says nothing.
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
        // Fields 3, 20 and 22; they are counted from the name, which may have anything in it.
        if (const char* const name_end = std::strrchr(text, ')'))
            std::sscanf(name_end,
                        ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                        "%d %*s %llu",
                        &state, &threads, &start);
    }

    /// Killed, it is a zombie until somebody asks how it ended; but so is a first thread
    /// that ended before the others.
    bool has_ended() const noexcept { return state == 'X' || (state == 'Z' && threads < 2); }
};

inline constexpr int start_bits = 26;

/// A process in 48 bits: its id, which comes back soon, and its start, which does so in a
/// week. Never 0 or 1.
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
        return true; // it is there, and hidden from us
    return !now.has_ended() && mark_of_process(pid, now) == mark;
}

} // namespace mallard::os

// Children of a fork, which must end.
#pragma once

#include "require.hpp"

#include <chrono>
#include <csignal>
#include <string>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

namespace mallard::testing {

/// Forks, calls `f()` in the child, and says how that ended: "fine", or how not.
template <class F>
std::string in_a_child(F f)
{
    pid_t const child = ::fork();
    if (child == 0) {
        f();
        ::_exit(0);
    }
    if (child < 0)
        return "no fork";
    using clock = std::chrono::steady_clock;
    int status = 0;
    for (auto const end = clock::now() + std::chrono::seconds(10);;) {
        if (::waitpid(child, &status, WNOHANG) == child)
            break;
        if (clock::now() > end) {
            ::kill(child, SIGKILL);
            ::waitpid(child, &status, 0);
            return "hangs";
        }
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return "fine";
    return WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                               : "exit " + std::to_string(WEXITSTATUS(status));
}

} // namespace mallard::testing

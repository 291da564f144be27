// Child processes of a test, made by fork.
#pragma once

#include "require.hpp"
#include "tsan.hpp"

#include <chrono>
#include <csignal>
#include <string>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

namespace mallard::testing {

/// How often a child that hangs is started before the test fails. fork() copies the locks inside of
/// ThreadSanitizer (those of its `DenseSlabAlloc`, in gcc 12) in their current state. So about one
/// child in 3,000 waits for a thread that only the parent has.
inline int const starts_of_a_child = has_tsan() ? 3 : 1;

/// A child process that calls `f()` and exits. The destructor kills the child if the child is still
/// running.
class running_child {
public:
    template <class F>
    explicit running_child(F f) : pid_(::fork())
    {
        if (pid_ != 0)
            return;
        f();
        ::_exit(0);
    }
    running_child(const running_child&) = delete;
    running_child& operator=(const running_child&) = delete;
    ~running_child()
    {
        stop();
        static_cast<void>(end());
    }

    void stop() const
    {
        if (pid_ > 0)
            ::kill(pid_, SIGKILL);
    }

    /// Waits until the child exits. Returns "fine", or a description of the failure.
    std::string end()
    {
        if (pid_ < 0)
            return "no fork";
        using clock = std::chrono::steady_clock;
        int status = 0;
        for (auto const last = clock::now() + patience; pid_ != 0;) {
            if (::waitpid(pid_, &status, WNOHANG) == pid_)
                break;
            if (clock::now() > last) {
                stop();
                ::waitpid(pid_, &status, 0);
                pid_ = 0;
                return "hangs";
            }
            std::this_thread::sleep_for(std::chrono::microseconds(200));
        }
        pid_ = 0;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            return "fine";
        return WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                                   : "exit " + std::to_string(WEXITSTATUS(status));
    }

private:
    static inline std::chrono::seconds const patience{60 / starts_of_a_child};

    pid_t pid_; // 0 if the child has ended
};

/// Runs `f()` in a child and waits for its exit. Returns "fine", or a description of the failure.
template <class F>
std::string in_a_child(F f)
{
    std::string end = "hangs";
    for (int start = 0; start < starts_of_a_child && end == "hangs"; ++start)
        end = running_child(f).end();
    return end;
}

} // namespace mallard::testing

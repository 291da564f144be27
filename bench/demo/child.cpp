#include <bench/demo/child.hpp>

#include <bench/demo/error.hpp>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace mallard::demo {

namespace {

volatile std::sig_atomic_t interrupted = 0;
constexpr std::array noted_signals = {SIGINT, SIGTERM, SIGHUP};

sigset_t noted() noexcept
{
    sigset_t set;
    sigemptyset(&set);
    for (int const signal : noted_signals)
        sigaddset(&set, signal);
    return set;
}

struct pipe_pair {
    int read, write;

    pipe_pair()
    {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0)
            throw failure(std::string("cannot open a pipe: ") + std::strerror(errno),
                          "the measurement stopped",
                          "`ulimit -n` shows how many files may be open");
        read = ends[0];
        write = ends[1];
    }
};

/// Reads the bytes that are available. At the end of the input, closes the descriptor and sets it
/// to -1.
void drain(pollfd& from, std::string& into)
{
    char block[4096];
    auto const n = ::read(from.fd, block, sizeof block);
    if (n > 0) {
        into.append(block, static_cast<std::size_t>(n));
    } else if (n == 0 || errno != EINTR) {
        ::close(from.fd);
        from.fd = -1; // poll ignores a descriptor of -1
    }
}

[[noreturn]] void become(std::span<const std::string> arguments, int out, int err)
{
    ::prctl(PR_SET_PDEATHSIG, SIGKILL); // kills this process if the parent ends
    auto const unblocked = noted();
    ::sigprocmask(SIG_UNBLOCK, &unblocked, nullptr);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(err, STDERR_FILENO);
    std::vector<char*> argv;
    for (const auto& argument : arguments)
        argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    ::execv("/proc/self/exe", argv.data());
    ::_exit(127);
}

} // namespace

// Blocks the signals except inside ppoll. A signal that arrives between two calls of ppoll
// interrupts the next call, so no signal is lost.
interrupts::interrupts()
{
    auto const set = noted();
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    struct sigaction note{};
    note.sa_handler = [](int signal) { interrupted = signal; };
    for (int const signal : noted_signals)
        ::sigaction(signal, &note, nullptr);
}

interrupts::~interrupts()
{
    for (int const signal : noted_signals)
        std::signal(signal, SIG_DFL);
    auto const set = noted();
    ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

bool interrupts::seen() noexcept
{
    sigset_t pending;
    ::sigpending(&pending);
    for (int const signal : noted_signals)
        if (sigismember(&pending, signal) == 1)
            return true;
    return interrupted != 0;
}

std::string outcome::why() const
{
    if (is_late)
        return "was not done in time";
    if (WIFSIGNALED(status))
        return "died of signal " + std::to_string(WTERMSIG(status)) + " (" +
               ::strsignal(WTERMSIG(status)) + ")";
    return "ended with status " + std::to_string(WEXITSTATUS(status));
}

outcome run_self(std::span<const std::string> arguments, double seconds_max)
{
    pipe_pair const out, err;
    pid_t const child = ::fork();
    if (child == 0)
        become(arguments, out.write, err.write);
    ::close(out.write);
    ::close(err.write);
    if (child < 0)
        throw failure(std::string("cannot start a process: ") + std::strerror(errno),
                      "the measurement stopped", "`ulimit -u` shows how many processes may run");

    outcome result;
    std::array<pollfd, 2> from = {pollfd{out.read, POLLIN, 0}, pollfd{err.read, POLLIN, 0}};
    sigset_t none;
    sigemptyset(&none);
    auto const deadline =
        std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds_max);
    while (from[0].fd >= 0 || from[1].fd >= 0) {
        timespec const tick = {.tv_sec = 0, .tv_nsec = 200'000'000};
        int const ready = ::ppoll(from.data(), from.size(), &tick, &none);
        result.interrupted = interrupted != 0;
        result.is_late = std::chrono::steady_clock::now() > deadline;
        if (result.interrupted || result.is_late)
            ::kill(child, SIGKILL); // also closes the child's pipes
        if (ready > 0)
            for (int i = 0; i < 2; ++i)
                if (from[static_cast<std::size_t>(i)].revents != 0)
                    drain(from[static_cast<std::size_t>(i)], i == 0 ? result.out : result.err);
    }
    while (::waitpid(child, &result.status, 0) < 0 && errno == EINTR) {}
    return result;
}

} // namespace mallard::demo

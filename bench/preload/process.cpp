#include <bench/preload/process.hpp>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <utility>

namespace mallard::bench {
namespace {

std::vector<char*> pointers_to(std::vector<std::string> const& words)
{
    std::vector<char*> all;
    for (std::string const& word : words)
        all.push_back(const_cast<char*>(word.c_str()));
    all.push_back(nullptr);
    return all;
}

std::vector<std::string> environment_with(std::string const& library)
{
    std::vector<std::string> all;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        if (!std::string_view(*entry).starts_with("LD_PRELOAD="))
            all.emplace_back(*entry);
    }
    if (!library.empty())
        all.push_back("LD_PRELOAD=" + library);
    return all;
}

// Makes a pair of sockets instead of a pipe, because a write to a closed socket can be made to
// raise no signal.
std::array<int, 2> make_pipe()
{
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
        throw std::runtime_error("cannot make a pipe for a measured process");
    return ends;
}

} // namespace

process::process(std::vector<std::string> const& command, std::string const& library,
                 complaints its_errors, int patience_ms)
    : patience_ms_(patience_ms)
{
    auto const [its_input, input] = make_pipe();
    auto const [output, its_output] = make_pipe();
    std::vector<std::string> const environment = environment_with(library);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, its_input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, its_output, STDOUT_FILENO);
    if (its_errors == complaints::ignored)
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    int const error = posix_spawnp(&id_, command[0].c_str(), &actions, nullptr,
                                   pointers_to(command).data(), pointers_to(environment).data());
    posix_spawn_file_actions_destroy(&actions);
    close(its_input);
    close(its_output);
    input_ = input;
    output_ = output;
    if (error != 0)
        id_ = -1;
}

process::~process()
{
    if (id_ > 0)
        kill(id_, SIGKILL);
    wait();
    close(output_);
}

void process::write(std::string_view text) const
{
    // Ignores errors. An error means that the process has ended, and the next read reports that.
    send(input_, text.data(), text.size(), MSG_NOSIGNAL);
}

bool process::is_silent() const
{
    pollfd awaited{output_, POLLIN, 0};
    if (poll(&awaited, 1, patience_ms_) > 0)
        return false;
    if (id_ > 0)
        kill(id_, SIGKILL);
    return true;
}

bool process::read(std::span<std::byte> bytes)
{
    while (!bytes.empty()) {
        if (is_silent())
            return false;
        ssize_t const got = ::read(output_, bytes.data(), bytes.size());
        if (got <= 0)
            return false;
        bytes = bytes.subspan(static_cast<std::size_t>(got));
    }
    return true;
}

std::string process::read_all()
{
    std::string text;
    char part[4096];
    for (ssize_t got = 0; !is_silent() && (got = ::read(output_, part, sizeof part)) > 0;)
        text.append(part, static_cast<std::size_t>(got));
    return text;
}

void process::finish_input()
{
    if (input_ >= 0)
        close(std::exchange(input_, -1));
}

int process::wait()
{
    finish_input();
    int status = 127 << 8; // as in a shell: there is no such program
    if (id_ > 0)
        waitpid(std::exchange(id_, -1), &status, 0);
    return status;
}

std::string described(int status)
{
    return WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                               : "status " + std::to_string(WEXITSTATUS(status));
}

} // namespace mallard::bench

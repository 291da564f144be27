// mallard-bench-launch LIBRARY [NAME=VALUE...] COMMAND [ARGUMENT...] runs a command with a library
// loaded before all others. After the output of the command it prints a line with the time and
// memory of the command:
//
//     \n@ STATUS WALL_NS CPU_NS PEAK_KIB
//
// The launcher is linked statically and starts the command by vfork. The launcher must be small,
// because a child's peak begins at the memory of its parent.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

long long wall_ns()
{
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1'000'000'000ll + t.tv_nsec;
}

long long ns_of(timeval t)
{
    return t.tv_sec * 1'000'000'000ll + t.tv_usec * 1000ll;
}

// Replaces this process by the command, and discards the standard error of the command.
[[noreturn]] void become(char** command)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL); // a server must not outlive the benchmark
    int const nowhere = open("/dev/null", O_RDWR);
    dup2(nowhere, STDIN_FILENO);
    dup2(nowhere, STDERR_FILENO);
    execvp(command[0], command);
    _exit(127);
}

} // namespace

int main(int argc, char** argv)
{
    if (argc < 3)
        return 2;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    // Sets LD_PRELOAD. It affects only the command, because the launcher is linked statically.
    if (argv[1][0] != '\0')
        setenv("LD_PRELOAD", argv[1], 1);
    char** command = argv + 2;
    while (*command != nullptr && std::strchr(*command, '=') != nullptr)
        putenv(*command++);
    long long const from = wall_ns();
    pid_t const child = vfork();
    if (child == 0)
        become(command);
    int status = 0;
    rusage used{};
    wait4(child, &status, 0, &used);
    char text[128];
    int const length =
        std::snprintf(text, sizeof text, "\n@ %d %lld %lld %ld\n", status, wall_ns() - from,
                      ns_of(used.ru_utime) + ns_of(used.ru_stime), used.ru_maxrss);
    return write(STDOUT_FILENO, text, static_cast<std::size_t>(length)) == length ? 0 : 1;
}

// mallard-bench-watch COUNT [NAME=VALUE...] COMMAND [ARGUMENT...] runs a command that starts
// another program, as a recorder does, and measures that program separately from all other
// processes. The program is the first process whose command line is the last COUNT words. After the
// output of the command it prints a line:
//
//     \n@ STATUS WALL_NS CPU_NS PEAK_KIB ALL_WALL_NS ALL_CPU_NS OTHER_PEAK_KIB
//
// STATUS is the status of the command. WALL_NS to PEAK_KIB belong to the program, and are 0 if it
// was not started. The next two figures are of the command and all processes that it started. The
// last one is the peak of the largest process that is not the program.
//
// The watcher traces all these processes, because the kernel reports the CPU time of a process only
// to its parent and to its tracer. Processes stop for the tracer when they start, fork, execute a
// program, exit, or receive a signal; system calls run as usual. The peak of a process is read
// before the process exits, and belongs to the last program that the process executed.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

constexpr long traced = PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
                        PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT;

long long wall_ns()
{
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1'000'000'000ll + t.tv_nsec;
}

long long cpu_ns(rusage const& used)
{
    auto const ns = [](timeval t) { return t.tv_sec * 1'000'000'000ll + t.tv_usec * 1000ll; };
    return ns(used.ru_utime) + ns(used.ru_stime);
}

std::string contents_of(pid_t process, const char* file)
{
    char name[64];
    std::snprintf(name, sizeof name, "/proc/%d/%s", process, file);
    std::string text;
    int const opened = open(name, O_RDONLY | O_CLOEXEC);
    char part[4096];
    for (ssize_t got = 0; (got = read(opened, part, sizeof part)) > 0;)
        text.append(part, static_cast<std::size_t>(got));
    close(opened);
    return text;
}

long peak_kib(pid_t process)
{
    std::string const status = contents_of(process, "status");
    std::size_t const at = status.find("VmHWM:");
    return at == std::string::npos ? 0 : std::atol(status.c_str() + at + 6);
}

// Replaces this process by the command, after the watcher has closed the pipe. The standard error
// of the command is discarded.
[[noreturn]] void become(char** command, int const* pipe)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(pipe[1]);
    char ignored = 0;
    while (read(pipe[0], &ignored, 1) > 0) {}
    while (*command != nullptr && std::strchr(*command, '=') != nullptr)
        putenv(*command++);
    int const nowhere = open("/dev/null", O_RDWR);
    dup2(nowhere, STDIN_FILENO);
    dup2(nowhere, STDERR_FILENO);
    execvp(command[0], command);
    _exit(127);
}

/// Starts the command, stopped until it is traced.
pid_t start(char** command)
{
    int pipe[2];
    if (pipe2(pipe, O_CLOEXEC) != 0)
        return -1;
    pid_t const child = fork();
    if (child == 0)
        become(command, pipe);
    close(pipe[0]);
    if (child > 0 && ptrace(PTRACE_SEIZE, child, nullptr, traced) != 0) {
        kill(child, SIGKILL);
        return -1;
    }
    close(pipe[1]);
    return child;
}

struct watched {
    std::string command_line; ///< the command line of the program, as in /proc
    pid_t program = 0;
    long long start_ns = 0;
    long long wall = 0;
    long long cpu = 0;
    long peak = 0;
    long other_peak = 0;

    void executed(pid_t process)
    {
        if (program == 0 && contents_of(process, "cmdline") == command_line) {
            program = process;
            start_ns = wall_ns();
        }
    }

    void ends(pid_t process)
    {
        long& of = process == program ? peak : other_peak;
        of = std::max(of, peak_kib(process));
    }

    void ended(pid_t process, rusage const& used)
    {
        if (process != program)
            return;
        wall = wall_ns() - start_ns;
        cpu = cpu_ns(used);
    }

    void stopped(pid_t process, int status)
    {
        int const event = status >> 16;
        int const signal = WSTOPSIG(status);
        if (event == PTRACE_EVENT_EXEC)
            executed(process);
        if (event == PTRACE_EVENT_EXIT)
            ends(process);
        // Keeps the process stopped if a signal such as SIGSTOP stopped it.
        bool const stays = event == PTRACE_EVENT_STOP && signal != SIGTRAP;
        ptrace(stays ? PTRACE_LISTEN : PTRACE_CONT, process, nullptr,
               event == 0 ? static_cast<long>(signal) : 0);
    }
};

} // namespace

int main(int argc, char** argv)
{
    if (argc < 3)
        return 2;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    watched all;
    for (int i = argc - std::min(argc, std::atoi(argv[1])); i < argc; ++i)
        all.command_line.append(argv[i]).push_back('\0');
    long long const from = wall_ns();
    pid_t const child = start(argv + 2);
    if (child < 0)
        return 3;
    int result = -1;
    int status = 0;
    rusage used{};
    for (pid_t process = 0; (process = wait4(-1, &status, __WALL, &used)) > 0;) {
        if (WIFSTOPPED(status)) {
            all.stopped(process, status);
            continue;
        }
        all.ended(process, used);
        if (process == child)
            result = status;
    }
    getrusage(RUSAGE_CHILDREN, &used);
    char text[256];
    int const length =
        std::snprintf(text, sizeof text, "\n@ %d %lld %lld %ld %lld %lld %ld\n", result, all.wall,
                      all.cpu, all.peak, wall_ns() - from, cpu_ns(used), all.other_peak);
    return write(STDOUT_FILENO, text, static_cast<std::size_t>(length)) == length ? 0 : 1;
}

// Runs a phase of a benchmark in a separate process.
#pragma once

#include <bench/lab/task.hpp>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <new>
#include <string>

namespace mallard::bench::lab {

/// Runs `work()` in a child process and returns the result of `work()`. The child exits without
/// running destructors.
template <class Work>
double in_a_child(Work work)
{
    constexpr int out_of_memory = 3;
    void* const shared =
        mmap(nullptr, sizeof(double), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        throw std::bad_alloc();
    auto* const told = static_cast<double*>(shared);
    pid_t const child = fork();
    if (child == 0) {
        try {
            *told = work();
        } catch (std::bad_alloc const&) {
            _exit(out_of_memory);
        }
        _exit(0);
    }
    int status = 0;
    bool const ended = child > 0 && waitpid(child, &status, 0) == child;
    double const result = *told;
    munmap(shared, sizeof(double));
    if (!ended || (WIFEXITED(status) && WEXITSTATUS(status) == out_of_memory))
        throw std::bad_alloc();
    if (status != 0)
        throw not_played("FAIL: a process of it ended with status " + std::to_string(status));
    return result;
}

} // namespace mallard::bench::lab

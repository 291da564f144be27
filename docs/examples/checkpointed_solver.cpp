// A long computation that is killed, and continues from its last checkpoint.
#include <mallard/persist/file_arena.hpp>
#include <mallard/persist/offset_ptr.hpp>

#include <cassert>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <utility>

#include <sys/wait.h>
#include <unistd.h>

constexpr std::size_t side = 64;
constexpr int sweeps_in_all = 300;
constexpr int sweeps_between_checkpoints = 20;

/// The heat in a plate whose upper edge is hot, by Jacobi's method.
struct plate {
    int sweeps = 0;
    mallard::offset_ptr<double> heat; // so that the file can be mapped at any address
    mallard::offset_ptr<double> next;

    explicit plate(mallard::file_arena& file)
        : heat(file.make_array<double>(side * side).data()),
          next(file.make_array<double>(side * side).data())
    {
        for (std::size_t x = 0; x < side; ++x)
            heat[static_cast<std::ptrdiff_t>(x)] = next[static_cast<std::ptrdiff_t>(x)] = 100;
    }

    void sweep()
    {
        std::span const from(heat.get(), side * side), to(next.get(), side * side);
        for (std::size_t y = 1; y + 1 < side; ++y)
            for (std::size_t x = 1; x + 1 < side; ++x) {
                std::size_t const at = y * side + x;
                to[at] = (from[at - side] + from[at - 1] + from[at + 1] + from[at + side]) / 4;
            }
        std::swap(heat, next);
        ++sweeps;
    }
};

constexpr mallard::file_options anywhere{.relocate = true};

/// Continues the computation in the file until it is done. Kills its own process after `killed_at`
/// sweeps.
bool solve(const std::string& path, int killed_at)
{
    mallard::file_arena file;
    if (!file.open(path.c_str(), anywhere)) {
        std::puts(file.last_failure());
        return false;
    }
    auto* const p = file.root_or_make<plate>(file);
    while (p != nullptr && p->sweeps < sweeps_in_all) {
        p->sweep();
        if (p->sweeps == killed_at)
            ::kill(::getpid(), SIGKILL); // in the middle of the work
        if (p->sweeps % sweeps_between_checkpoints == 0 && !file.commit())
            return false;
    }
    return p != nullptr && file.commit();
}

/// Solves in a child process and returns the child's wait status. The status is 0 if the
/// computation is done.
int solve_in_a_process(const std::string& path, int killed_at)
{
    pid_t const child = ::fork();
    if (child == 0)
        ::_exit(solve(path, killed_at) ? 0 : 1);
    int status = 1;
    ::waitpid(child, &status, 0);
    return status;
}

int main()
{
    std::string const path =
        std::filesystem::temp_directory_path() / ("plate-" + std::to_string(::getpid()));
    std::string const other = path + "-uninterrupted";

    [[maybe_unused]] int const first = solve_in_a_process(path, 57);
    [[maybe_unused]] int const second = solve_in_a_process(path, 250);
    [[maybe_unused]] int const third = solve_in_a_process(path, 0);
    assert(WIFSIGNALED(first) && WIFSIGNALED(second) && third == 0);

    mallard::file_arena interrupted, uninterrupted;
    [[maybe_unused]] bool const solved = solve(other, 0) &&
                                         uninterrupted.open(other.c_str(), anywhere) &&
                                         interrupted.open(path.c_str(), anywhere);
    assert(solved);
    auto const* const a = interrupted.root<plate>();
    auto const* const b = uninterrupted.root<plate>();
    assert(a->sweeps == sweeps_in_all && b->sweeps == sweeps_in_all);
    for (std::ptrdiff_t at = 0; at < static_cast<std::ptrdiff_t>(side * side); ++at)
        assert(a->heat[at] == b->heat[at]);
    std::filesystem::remove(path);
    std::filesystem::remove(other);
}

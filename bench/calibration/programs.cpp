#include <bench/calibration/programs.hpp>

#include <bench/entrants.hpp>

#include <algorithm>

namespace mallard::bench {
namespace {

// Compresses all objects of a git repository again, in one process. The program prints the name of
// the pack.
words git_pack(temporary_folder const& folder, double share)
{
    make_repository(folder, share * 0.5);
    return {program_path("git", "git"),
            "-C",
            folder / "origin",
            "pack-objects",
            "--all",
            "-q",
            "--threads=1",
            "--no-reuse-object",
            "--window=20",
            folder / "pack"};
}

/// Returns a program of bench/ whose arguments are a number of threads and a number of steps.
workload of_threads(std::string const& name, std::string const& asks, std::size_t threads,
                    double steps)
{
    std::string const number = std::to_string(threads);
    auto command = [name, number, steps](temporary_folder const&, double share) {
        auto const count = static_cast<std::size_t>(std::max(8.0, share * steps));
        return words{program_folder() + "/mallard-bench-" + name, number, std::to_string(count)};
    };
    return {.name = name + "/T" + number,
            .asks = asks + "; threads: " + number,
            .command = command,
            .threads = static_cast<int>(threads),
            .in_brief = threads == 2};
}

} // namespace

std::vector<workload> calibrated_programs()
{
    std::vector<workload> all = workloads();
    std::erase_if(all, [](workload const& w) { return w.name == "threads/T1"; });
    for (workload& w : all)
        w.in_brief = w.name == "python3-malloc" || w.name == "perl" || w.name == "redis";
    all.push_back({.name = "git-pack",
                   .asks = "git pack-objects with deltas, of a repository made for it",
                   .command = git_pack,
                   .in_brief = false});
    all.push_back(http_server());
    std::string const larson = "Blocks of 8-1000 bytes, replaced in arrays that threads inherit";
    for (std::size_t const threads : {2, 4})
        all.push_back(of_threads("larson", larson, threads, 4e6));
    std::string const messages = "Messages that one thread makes and another one frees";
    for (std::size_t const threads : {2, 8})
        all.push_back(of_threads("producers", messages, threads, 2e6));
    return all;
}

} // namespace mallard::bench

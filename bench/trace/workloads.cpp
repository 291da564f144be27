#include <bench/trace/workloads.hpp>

#include <bench/entrants.hpp>

#include <algorithm>
#include <sstream>

namespace mallard::bench {
namespace {

// Returns a git command that allocates in its own process, and not in child processes.
words git_log(temporary_folder const& folder, double share)
{
    make_repository(folder, share);
    return {program_path("git", "git"), "-C", folder / "origin", "log", "--stat", "main"};
}

words cmake_help(temporary_folder const&, double share)
{
    return {program_path("cmake", "cmake"), share < 0.1 ? "--version" : "--help-full"};
}

// Asks g++ for the command line of cc1plus, the child process in which g++ allocates.
words compiler_proper(temporary_folder const& folder, double share)
{
    std::string const source = folder.write(
        "work.cpp", share < 0.1 ? "int f(int x) { return x + 1; }\n" : source_with_regex);
    std::string const told =
        running_program({"/bin/sh", "-c",
                         program_path("g++", "g++") + " -### -O1 -std=c++17 -S -o /dev/null " +
                             source + " 2>&1 | grep -m 1 cc1plus"},
                        "")
            .wait()
            .output;
    // Some of the words have quotes around them. No word contains a space.
    std::string plain = told;
    std::erase(plain, '"');
    std::istringstream all(plain);
    words command;
    for (std::string word; all >> word;)
        command.push_back(word);
    if (command.empty())
        throw cannot_run("g++ -### does not say how it starts cc1plus");
    return command;
}

words redis(temporary_folder const& folder, double)
{
    return redis_server(folder);
}

std::string redis_load(temporary_folder const& folder, double share)
{
    return "test -S " + folder / "redis" + " && " + shell_command(redis_requests(folder, share)) +
           " >/dev/null && " + shell_command(redis_question(folder));
}

workload mix(std::size_t threads)
{
    std::string const number = std::to_string(threads);
    return {.name = "threads/T" + number,
            .asks = "Threads: " + number + ". Blocks of 16-512 bytes, half of them passed on",
            .command =
                [number](temporary_folder const&, double share) {
                    double const steps = std::max(8.0, share * 4'000'000);
                    return words{program_folder() + "/mallard-bench-mix", number,
                                 std::to_string(static_cast<std::size_t>(steps))};
                },
            .threads = static_cast<int>(threads),
            .in_brief = threads <= 2};
}

} // namespace

double share_of(effort how)
{
    return how.is_smoke() ? 0.005 : how.is_brief() ? 0.15 : 1;
}

std::string shell_command(words const& command)
{
    std::string text;
    for (std::string const& word : command)
        text += (text.empty() ? "'" : " '") + word + "'";
    return text;
}

std::vector<workload> workloads()
{
    std::vector<workload> all;
    std::vector<program> others = interpreters();
    append(others, tools());
    for (program const& p : others) {
        if (p.command != nullptr && p.name != "g++") // g++ allocates in a child process
            all.push_back({.name = p.name,
                           .asks = p.asks,
                           .command = p.command,
                           .in_brief = p.name != "python3" && p.name != "lua",
                           .is_python = p.name.starts_with("python3"),
                           .has_variants = p.name == "python3-malloc"});
    }
    all.push_back({.name = "redis",
                   .asks = "redis-server under redis-benchmark; seconds are the client's",
                   .command = redis,
                   .ask = ask_redis_server,
                   .load = redis_load,
                   .in_brief = false});
    all.push_back({.name = "git",
                   .asks = "git log --stat of a repository made for it",
                   .command = git_log,
                   .in_brief = false});
    all.push_back({.name = "cmake",
                   .asks = "cmake --help-full",
                   .command = cmake_help,
                   .in_brief = false,
                   .has_variants = true});
    all.push_back({.name = "cc1plus",
                   .asks = "g++'s cc1plus -O1 with a file that includes <regex>",
                   .command = compiler_proper,
                   .in_brief = false,
                   .has_variants = true});
    for (std::size_t const threads : {1, 2, 4, 8})
        all.push_back(mix(threads));
    return all;
}

} // namespace mallard::bench

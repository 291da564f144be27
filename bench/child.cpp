#include <bench/child.hpp>

#include <bench/support/memory_use.hpp>
#include <bench/table.hpp>

#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <sstream>

namespace mallard::bench {
namespace {

const char* flag_of(effort how)
{
    switch (how.kind) {
    case effort::size::brief:
        return "--short";
    case effort::size::smoke:
        return "--smoke";
    case effort::size::full:
        break;
    }
    return nullptr; // also ends the argument list
}

double beyond(std::size_t kib, std::size_t baseline_kib, std::size_t tables_bytes)
{
    double const kept = static_cast<double>(kib) - static_cast<double>(baseline_kib) -
                        static_cast<double>(tables_bytes) / 1024;
    return std::max(0.0, kept);
}

child_result measure(experiment const& what, entrant const& who)
{
    child_result result{.figures = std::vector<double>(what.figures.size())};
    restart_peak_resident();
    std::size_t const baseline_kib = resident_kib();
    try {
        round_function round = who.prepare();
        round(result.figures);
        result.peak_kib = beyond(peak_resident_kib(), baseline_kib, table_bytes::peak);
        round = nullptr;
        result.after_kib = beyond(resident_kib(), baseline_kib, table_bytes::now);
    } catch (cannot_run const& reason) {
        result.why = reason.what();
    }
    return result;
}

} // namespace

running_child start_child(child_task task, effort how)
{
    std::string const text = std::string(task.suite) + ":" + std::to_string(task.experiment) + ":" +
                             std::to_string(task.entrant);
    const char* const arguments[] = {"mallard-bench", "--child", text.c_str(), flag_of(how),
                                     nullptr};
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        throw std::runtime_error("cannot make a pipe for a measuring process");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    pid_t process = 0;
    int const error = posix_spawn(&process, "/proc/self/exe", &actions, nullptr,
                                  const_cast<char**>(arguments), environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (error != 0)
        throw std::runtime_error("cannot start a measuring process");
    return {process, ends[0]};
}

child_result running_child::wait()
{
    std::string text;
    char part[4096];
    for (ssize_t got = 0; (got = read(output_, part, sizeof part)) > 0;)
        text.append(part, static_cast<std::size_t>(got));
    close(output_);
    int status = 0;
    waitpid(process_, &status, 0);
    auto const json = nlohmann::json::parse(text, nullptr, false);
    if (status != 0 || json.is_discarded())
        return {.figures = {},
                .why = "its separate process exited with status " + std::to_string(status)};
    return {.peak_kib = json["peak_kib"],
            .after_kib = json["after_kib"],
            .figures = json["figures"],
            .why = json["why"]};
}

int run_child(std::span<const suite> suites, effort how, std::string const& task)
{
    std::istringstream parts(task);
    std::string name;
    std::size_t number = 0;
    std::size_t index = 0;
    char colon = 0;
    std::getline(parts, name, ':');
    parts >> number >> colon >> index;
    auto const found = std::ranges::find(suites, name, &suite::name);
    if (found == suites.end())
        return 2;
    how.alone = true;
    std::vector<experiment> const all = found->experiments(how);
    child_result const result = measure(all.at(number), all.at(number).entrants.at(index));
    std::cout << nlohmann::json{{"peak_kib", result.peak_kib},
                                {"after_kib", result.after_kib},
                                {"figures", result.figures},
                                {"why", result.why}};
    return 0;
}

} // namespace mallard::bench

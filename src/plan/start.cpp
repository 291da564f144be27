// Reads the plan when the library is loaded, and writes the report when the program exits.
#include "../os/errno_kept_linux.hpp"
#include "../preload/next.hpp"
#include "chunk.hpp"
#include "decision.hpp"
#include "operators.hpp"
#include "report.hpp"
#include "thread.hpp"

#include <array>
#include <cstring>

#include <limits.h>
#include <pthread.h>
#include <sys/auxv.h>

namespace mallard::plan {
namespace {

constinit options the_options;
constinit plan the_plan;
constinit bool is_on = false;

/// A rule may use twice the memory that it had at its peak in the recording, plus this number of
/// bytes.
constexpr std::size_t held_beyond = std::size_t{1} << 20;

const char* value_of(char** environment, const char* name) noexcept
{
    std::size_t const bytes = std::strlen(name);
    for (char** v = environment; v != nullptr && *v != nullptr; ++v)
        if (std::strncmp(*v, name, bytes) == 0 && (*v)[bytes] == '=' && (*v)[bytes + 1] != '\0')
            return *v + bytes + 1;
    return nullptr;
}

bool is_one(const char* value) noexcept
{
    return value != nullptr && std::strcmp(value, "1") == 0;
}

using path_buffer = std::array<char, PATH_MAX>;
constinit path_buffer plan_path{};
constinit path_buffer report_path{};

/// Copies a path from the environment. The path is still needed when the program exits, and
/// programs such as redis-server overwrite the environment with their title.
const char* copy_of(const char* path, path_buffer& into) noexcept
{
    std::size_t const bytes = path == nullptr ? 0 : std::strlen(path) + 1;
    if (bytes == 0 || bytes > into.size())
        return path; // the system cannot open such a long path
    std::memcpy(into.data(), path, bytes);
    return into.data();
}

form_of_stats form_of(const char* stats) noexcept
{
    if (stats == nullptr || std::strcmp(stats, "0") == 0)
        return form_of_stats::none;
    return std::strcmp(stats, "json") == 0 ? form_of_stats::json : form_of_stats::text;
}

options read_options(char** environment) noexcept
{
    return {
        .plan = copy_of(value_of(environment, "MALLARD_PLAN"), plan_path),
        .report = copy_of(value_of(environment, "MALLARD_PLAN_REPORT"), report_path),
        .stats = form_of(value_of(environment, "MALLARD_STATS")),
        .is_control = is_one(value_of(environment, "MALLARD_PLAN_CONTROL")),
        .times_ends = is_one(value_of(environment, "MALLARD_PLAN_TIMES")),
        .is_strict = is_one(value_of(environment, "MALLARD_PLAN_STRICT")),
    };
}

/// Returns whether the options request a report, which contains how many blocks each rule has
/// served.
bool is_counted() noexcept
{
    return the_options.stats != form_of_stats::none || the_options.report != nullptr;
}

void begin_rules() noexcept
{
    if (the_options.times_ends)
        begin_ticks();
    for (std::size_t i = 0; i < the_plan.rules.size(); ++i) {
        mallard_plan_rule const& r = the_plan.rules[i];
        rules[i].block_bytes = r.block_bytes;
        rules[i].allocator = the_options.is_control ? 0 : r.allocator;
        rules[i].is_quick = !is_counted() && !the_options.times_ends && !the_options.is_control;
        rules[i].is_timed = the_options.times_ends && !the_options.is_control;
        if (r.peak_bytes != 0 && r.peak_bytes < SIZE_MAX / 4)
            rules[i].held_max.store(2 * r.peak_bytes + held_beyond, std::memory_order_relaxed);
    }
}

void before_fork() noexcept
{
    lock_decisions();
    lock_threads();
    lock_chunks();
}

template <bool is_child>
void after_fork() noexcept
{
    unlock_chunks(is_child);
    unlock_threads(is_child);
    unlock_decisions(is_child);
}

void tell_build(std::span<const char> module) noexcept
{
    os::errno_kept const kept;
    tell_other_build(the_options, module);
}

constexpr const char* no_memory =
    "cannot be used, because the system could not allocate memory; help: ulimit -v";

/// Starts the plan and sets `is_on`. If the plan cannot be used, returns the reason, otherwise
/// null.
const char* start_plan() noexcept
{
    if (const char* const wrong = open_plan(the_options.plan, the_plan))
        return wrong;
    begin_rules();
    answer_options const for_what{.are_counted = is_counted(),
                                  .is_control = the_options.is_control};
    switch (begin_decisions(the_plan, for_what, tell_build)) {
    case start_of_plan::of_another_program:
        return nullptr; // no error, as a program of the plan may have executed this program
    case start_of_plan::without_memory:
        return no_memory;
    case start_of_plan::begun:
        break;
    }
    if (!begin_threads(the_plan.rules.size()))
        return "cannot be used, because the program has no key for thread-specific data left";
    if (!place_chunks() || ::pthread_atfork(before_fork, after_fork<false>, after_fork<true>) != 0)
        return no_memory;
    // libc's malloc initialises itself in its first call, and locks its locks around a fork only
    // after that. Make that call here. Otherwise, if a rule serves all blocks of the main thread,
    // another thread could initialise malloc during a fork, and the child would have incomplete
    // state.
    preload::next.free(preload::next.malloc(1));
    begin_answers(find_operators);
    is_on = true;
    return nullptr;
}

[[gnu::constructor]] void start(int, char**, char** environment) noexcept
{
    os::errno_kept const kept;
    static_cast<void>(preload::find_next());
    // A program that runs with the rights of another user must ignore the environment.
    if (::getauxval(AT_SECURE) != 0)
        return;
    the_options = read_options(environment);
    if (the_options.plan == nullptr)
        return;
    if (const char* const wrong = start_plan())
        return tell_plan_is_off(the_options, wrong);
    the_options.is_strict = false; // another build of a plugin does not end the program
}

[[gnu::destructor]] void report() noexcept
{
    os::errno_kept const kept;
    if (is_on)
        write_report(the_options, the_plan);
}

} // namespace
} // namespace mallard::plan

// Counts instructions instead of time. The count is the same in every run, whatever the load of the
// machine.
#include <bench/malloc/parts.hpp>
#include <bench/preload/process.hpp>

#include <cstdlib>

namespace mallard::bench {
namespace {

enum : std::size_t { nothing, malloc, free }; // the function that is called

constexpr std::size_t calls = 1000;

// callgrind ends with "==123== Collected : 47000".
double collected_in(std::string const& log)
{
    constexpr std::string_view word = "Collected : ";
    std::size_t const at = log.rfind(word);
    if (at == std::string::npos)
        throw cannot_run("valgrind is missing, or counted nothing; help: apt-get install valgrind");
    return std::strtod(log.c_str() + at + word.size(), nullptr);
}

/// Returns the number of instructions of one call, including the loop around it.
double instructions_of(std::size_t what, std::size_t bytes, preload const& with, effort how)
{
    std::vector<std::string> command{"valgrind", "--tool=callgrind", "--log-fd=1",
                                     "--callgrind-out-file=/dev/null",
                                     "--toggle-collect=measured_call"};
    task const t{.job = "count", .bytes = bytes, .count = calls, .variant = what};
    for (std::string const& word : worker_command(t, 0, how))
        command.push_back(word);
    process counter(command, with.library, process::complaints::ignored);
    counter.write({&request::round, 1});
    counter.finish_input();
    std::string const log = counter.read_all();
    if (int const status = counter.wait(); status != 0)
        throw cannot_run("under valgrind it ends with " + described(status));
    return collected_in(log) / calls;
}

experiment instructions(std::size_t bytes, effort how)
{
    std::string const name = "instructions/" + size_name(bytes);
    experiment e{.asks = "Instructions of a malloc and of a free of " + size_name(bytes) +
                         ", first to last, where the block is at hand, counted by valgrind",
                 .figures = {{name + "/malloc", "instructions"}, {name + "/free", "instructions"}},
                 .entrants = {},
                 .with_memory = false,
                 .once = true};
    for (preload const& with : preloads()) {
        e.entrants.push_back(
            {.name = [&with] { return with.name; },
             .prepare = [&with, bytes, how]() -> round_function {
                 insist_on(with);
                 // Limits a smoke run to one contender, because each count takes seconds.
                 if (how.is_smoke() && !with.library.empty() && !with.name.starts_with("mallard"))
                     throw cannot_run("not in a smoke run");
                 return [&with, bytes, how](std::span<double> out) {
                     double const around = instructions_of(nothing, bytes, with, how) - 1;
                     out[0] = instructions_of(malloc, bytes, with, how) - around;
                     out[1] = instructions_of(free, bytes, with, how) - around;
                 };
             }});
    }
    return e;
}

} // namespace

std::vector<experiment> malloc_instructions(effort how)
{
    return {instructions(64, how)};
}

} // namespace mallard::bench

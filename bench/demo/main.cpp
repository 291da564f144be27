// mallard-bench-demo does one measurement of the suite demo: one workload under one strategy, in a
// separate process, so that nothing has warmed the caches or used the memory before.
//
//     mallard-bench-demo text FILE                        writes the text of this machine
//     mallard-bench-demo WORKLOAD STRATEGY ROUNDS FILE    measures, and prints a line of JSON
#include <bench/demo/cell.hpp>
#include <bench/demo/error.hpp>
#include <bench/demo/strategies.hpp>

#include <charconv>
#include <cstdio>
#include <exception>
#include <string_view>

namespace {

using namespace mallard::demo;

constexpr int status_of_bad_use = 2;
constexpr std::uint64_t rounds_max = 1'000'000;

/// Returns a number from `least` to `most`. Throws `failure` if `text` is not such a number.
std::uint64_t number_of(std::string_view what, std::string_view text, std::uint64_t least,
                        std::uint64_t most)
{
    std::uint64_t number = 0;
    auto const end = text.data() + text.size();
    auto const [stop, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc() || stop != end || number < least || number > most)
        throw failure(std::string(what) + " is " + std::to_string(least) + " to " +
                          std::to_string(most) + ", and not '" + std::string(text) + "'",
                      "nothing was measured", "mallard-bench-demo word-index 1 1 FILE");
    return number;
}

void measure(std::span<char*> words)
{
    std::string_view const name = words[0];
    auto const all = workloads();
    auto const found = std::ranges::find(
        all, name, [](const workload_entry& workload) { return workload.words.name; });
    if (found == all.end())
        throw failure("there is no workload '" + std::string(name) + "'", "nothing was measured",
                      "mallard-bench-demo word-index 1 1 FILE");
    auto const strategy = number_of("a strategy", words[1], 0, strategy_count);
    auto const rounds = number_of("the number of rounds", words[2], 1, rounds_max);
    auto const text = open_saved(words[3]);
    auto const line = to_line(found->measure(static_cast<int>(strategy), rounds, text));
    std::puts(line.c_str());
}

} // namespace

int main(int count, char** arguments)
{
    std::span<char*> const words(arguments + 1, static_cast<std::size_t>(count) - 1);
    try {
        if (words.size() == 2 && std::string_view(words[0]) == "text")
            save(collect_default(), words[1]);
        else if (words.size() == 4)
            measure(words);
        else
            throw failure("the arguments are WORKLOAD STRATEGY ROUNDS FILE", "nothing was measured",
                          "mallard-bench-demo text FILE, and then mallard-bench-demo word-index 1 "
                          "1 FILE");
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return status_of_bad_use;
    }
    return 0;
}

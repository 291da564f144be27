// Starts `mallard-bench-lab` for the suites lakos1 to lakos5. Each case runs in a separate process
// for each strategy, with the malloc from which the strategy gets its memory.
#pragma once

#include <bench/harness.hpp>
#include <bench/lab/cast.hpp>
#include <bench/preload/contenders.hpp>

#include <string>
#include <vector>

namespace mallard::bench {

/// A contender of the suites lakos1 to lakos5: a strategy (AS1 to AS14) of J. Lakos (ACCU 2017), in
/// one library, over one malloc.
struct player {
    std::string name; ///< "mallard/AS7", "glibc-2.36/AS1"
    lab::part who;
    preload const* heap = nullptr;
};

/// Returns all contenders: AS1 and AS2 on glibc, then AS1 on other mallocs (including Mallard's),
/// then the strategies of all libraries over glibc.
std::vector<player> const& all_players();

/// Returns the contenders without wink-out: AS1, AS2 and the odd strategies.
std::vector<player> without_wink_out();

/// Makes a contender over glibc. With the library "mallard/reset", its name is "mallard/AS3+reset".
player one_player(lab::part who);

/// Makes an experiment that starts one process of `benchmark` for each contender, with `numbers` on
/// the command line. The process prints the figures of the experiment in their order.
experiment in_the_lab(std::string const& asks, std::vector<figure> figures,
                      std::vector<player> const& players, std::string const& benchmark,
                      std::vector<std::size_t> const& numbers);

/// Writes 2^n.
std::string power_of_two(std::size_t exponent);

} // namespace mallard::bench

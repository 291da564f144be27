// The suites' side of the laboratory: each cell of Lakos's benchmarks is a process of
// its own for each strategy, with the malloc that the strategy is to draw from.
#pragma once

#include <bench/harness.hpp>
#include <bench/lab/cast.hpp>
#include <bench/preload/contenders.hpp>

#include <string>
#include <vector>

namespace mallard::bench {

/// A strategy of the talk, in the hands of one library, over one malloc.
struct player {
    std::string name; ///< "mallard/AS7", "glibc-2.36/AS1"
    lab::part who;
    preload const* heap = nullptr;
};

/// AS1 and AS2 on glibc; AS1 on other mallocs, Mallard's among them; then all that has
/// an allocator of its own, over glibc.
std::vector<player> const& all_players();

/// Those that no benchmark winks out: AS1, AS2 and the odd strategies.
std::vector<player> without_wink_out();

/// Plays over glibc. In a library of "mallard/reset", it is "mallard/AS3+reset".
player one_player(lab::part who);

/// One process of `benchmark` for each player, told `numbers`; its figures are those of
/// the experiment, in that order.
experiment in_the_lab(std::string const& asks, std::vector<figure> figures,
                      std::vector<player> const& players, std::string const& benchmark,
                      std::vector<std::size_t> const& numbers);

/// 2^n, and n written so.
std::string power_of_two(std::size_t exponent);

} // namespace mallard::bench

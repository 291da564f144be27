// Writes the advice in words.
#include <bench/demo/advice.hpp>
#include <bench/demo/print.hpp>

#include <algorithm>
#include <array>
#include <cmath>

#include <unistd.h>

namespace mallard::demo {

namespace {

// A pair of numbers of strategies that differ in one property.
using pair = std::pair<std::size_t, std::size_t>;
constexpr std::array<pair, 7> typed_and_abstract = {
    {{1, 2}, {3, 5}, {4, 6}, {7, 9}, {8, 10}, {11, 13}, {12, 14}}};
constexpr std::array<pair, 6> destroyed_and_winked = {
    {{3, 4}, {5, 6}, {7, 8}, {9, 10}, {11, 12}, {13, 14}}};

std::string take_text(const advice& a)
{
    auto const& choice = a.choice();
    if (a.chosen > 0)
        return std::string(choice.strategy->name) + ", " + std::string(choice.strategy->words) +
               print(": %.2fx faster than AS1, with %.2fx its memory", 1 / choice.to_heap.ratio,
                     choice.memory_ratio);
    if (!a.has_enough_runs())
        return print("AS1: fewer than %zu runs are too few to tell a gain from noise", runs_min);
    auto const slower = std::ranges::count_if(
        a.standings, [](const standing& w) { return w.to_heap.says == verdict::slower; });
    std::vector<double> visible;
    for (const auto& who : a.standings)
        visible.push_back(100 * who.to_heap.visible);
    return (slower == 0 ? std::string("AS1: no difference, stay with it")
                        : print("AS1: no gain detected, and %td slower; stay with it", slower)) +
           print(" (less than %.0f %% would not show in this noise)",
                 bench::summarise(visible).median);
}

std::string because_text(const advice& a, const profile& counts)
{
    auto const& d = a.measured;
    switch (a.choice().strategy->from) {
    case family::arena:
        return d.utilisation >= utilisation_high
                   ? print("U %.2f is high: most of what is allocated stays, so an arena loses "
                           "little by reusing nothing",
                           d.utilisation)
                   : print("U %.2f is low, so an arena keeps much that is dead; here its speed "
                           "outweighs that",
                           d.utilisation);
    case family::multipool:
    case family::multipool_over_arena:
        return print("U %.2f: %.0f %% of the bytes allocated could stand where others stood, and "
                     "pools put them there; V %.2g (%.1f bits): sizes are few, and so are pools",
                     d.utilisation, 100 * (1 - d.utilisation), d.variation, counts.class_entropy);
    case family::heap:
        break;
    }
    return print(
        "D %.3f: one allocation or free in %.0f ns of work, and only a part of that time is "
        "the allocator's",
        d.density, 1 / std::max(d.density, 1e-9));
}

/// If the fastest strategy is not recommended, says why.
void add_fastest(const advice& a, std::vector<std::pair<std::string, std::string>>& reasons)
{
    auto const fastest =
        std::ranges::min(a.standings, {}, [](const standing& w) { return w.to_heap.ratio; });
    auto const& choice = a.choice();
    if (a.chosen == 0 || fastest.strategy == choice.strategy ||
        fastest.to_heap.says != verdict::faster)
        return;
    auto const speed = print("%s is %.2fx faster than AS1", fastest.strategy->name.data(),
                             1 / fastest.to_heap.ratio);
    if (fastest.is_too_large && !choice.is_too_large)
        reasons.emplace_back(
            "refused",
            speed + print(", but with %.1fx its memory at U %.2f: more than %.1fx is taken "
                          "only where nothing else gains",
                          fastest.memory_ratio, a.measured.utilisation, memory_ratio_max));
    else
        reasons.emplace_back(
            "level", speed + "; " + std::string(choice.strategy->name) +
                         " is within 3 % of it, and " +
                         (fastest.memory_ratio > 1.1 * choice.memory_ratio ? "needs less memory"
                          : fastest.strategy->winks_out && !choice.strategy->winks_out
                              ? "runs destructors as usual"
                          : fastest.strategy->binding != choice.strategy->binding
                              ? "leaves types as they are"
                              : "asks for no more"));
}

/// Says what low utilisation (U) costs an arena. Says nothing if the figures show no cost.
void add_slowest_arena(const advice& a, std::vector<std::pair<std::string, std::string>>& reasons)
{
    auto const slowest =
        std::ranges::max(a.standings, {}, [](const standing& w) { return w.to_heap.ratio; });
    if (slowest.strategy->from == family::arena && slowest.to_heap.says == verdict::slower)
        reasons.emplace_back(
            "slower", print("%s takes %.2fx the time of AS1: at U %.2f, %.0f %% of what an arena "
                            "holds is dead, and is faulted in and stepped over all the same",
                            slowest.strategy->name.data(), slowest.to_heap.ratio,
                            a.measured.utilisation, 100 * (1 - a.measured.utilisation)));
}

/// Says how much slower or faster the second strategy of each pair is than the first.
std::string pairs_text(const advice& a, std::string_view what, std::span<const pair> pairs)
{
    std::vector<double> costs;
    std::string different;
    for (auto const& [first, second] : pairs) {
        if (second > a.standings.size())
            continue;
        auto const c = compare(a.standings[first - 1].runs, a.standings[second - 1].runs);
        costs.push_back(100 * (c.ratio - 1));
        if (c.says != verdict::no_difference)
            different +=
                print("%s AS%zu %+.0f %%", different.empty() ? ";" : ",", second, costs.back());
    }
    if (costs.empty())
        return "not enough was measured to tell";
    return std::string(what) +
           print(": %+.1f %% time in the median of %zu pairs", bench::summarise(costs).median,
                 costs.size()) +
           (different.empty() ? "; in none of them a difference detected" : different);
}

/// Says what the last table of J. Lakos's talk on local allocators recommends for this utilisation
/// (U).
///
/// The condition A of that table means that the structure is large and long-running. Here it is
/// true if the structure is larger than the cache and allocates at least twice its peak in total. A
/// "?" in the table means that one has to measure.
std::string talk_text(const advice& a, const profile& counts)
{
    auto const cache_bytes =
        static_cast<std::uint64_t>(std::max(::sysconf(_SC_LEVEL3_CACHE_SIZE), 0L));
    bool const is_large =
        counts.bytes_at_peak > cache_bytes && counts.bytes_total >= 2 * counts.bytes_at_peak;
    bool const is_high = a.measured.utilisation >= utilisation_high;
    return print("for %s U in a part that is %s its table says \"%s\"; measured here: ",
                 is_high ? "high" : "low",
                 is_large ? "large and long at work" : "not both large and long at work",
                 is_large ? (is_high ? "local monotonic" : "local multipool")
                          : (is_high ? "local monotonic?" : "global")) +
           std::string(a.choice().strategy->words);
}

} // namespace

std::vector<std::pair<std::string, std::string>> reasons_for(const advice& a, const profile& counts)
{
    std::vector<std::pair<std::string, std::string>> reasons;
    reasons.emplace_back("take", take_text(a));
    if (a.has_enough_runs())
        reasons.emplace_back("because", because_text(a, counts));
    if (a.chosen > 0 && a.choice().is_too_large)
        reasons.emplace_back(
            "price",
            print("%.1fx the memory of AS1, taken because nothing smaller gains: only where "
                  "there is room",
                  a.choice().memory_ratio));
    add_fastest(a, reasons);
    add_slowest_arena(a, reasons);
    reasons.emplace_back("std::pmr",
                         pairs_text(a, "instead of a type parameter", typed_and_abstract));
    reasons.emplace_back("wink-out", pairs_text(a, "instead of destructors", destroyed_and_winked));
    reasons.emplace_back("the talk", talk_text(a, counts));
    return reasons;
}

} // namespace mallard::demo

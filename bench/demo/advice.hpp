// Draws conclusions from the measurements of one workload: how each strategy compares, what the
// workload is like, and which strategy is recommended.
#pragma once

#include <bench/demo/session.hpp>
#include <bench/support/statistics.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mallard::demo {

enum class verdict { faster, no_difference, slower };

/// Compares two strategies by a sign test, so that no single bad run decides. Each run of `now` is
/// compared with the run of `before` that was made next to it.
///
/// The two differ if their medians are 3 % apart and enough runs agree. "Enough" is chosen as
/// follows: if all thirteen other strategies were equal to AS1 (the default heap), at most 5 of 100
/// tables would call one of them different. With fewer than `runs_min` runs no number is enough.
struct comparison {
    double ratio = 1;   ///< median of now / before
    double visible = 0; ///< the smallest relative difference that is not noise
    verdict says = verdict::no_difference;
};
comparison compare(std::span<const double> before, std::span<const double> now);

inline constexpr std::size_t runs_min = 9;
inline constexpr double memory_ratio_max = 1.5;  ///< the most memory of a recommended strategy
inline constexpr double memory_noise_kib = 1024; ///< differences below this are noise
inline constexpr double utilisation_high = 0.5;

struct standing {
    const strategy_entry* strategy = nullptr;
    std::vector<double> runs{}; ///< seconds of each run
    bench::summary seconds{};
    comparison to_heap{};       ///< compared with AS1
    double use_ratio = 1;       ///< ratio of the use phase alone
    bench::summary peak_kib{};  ///< peak of the whole process
    bench::summary after_kib{}; ///< memory after everything is destroyed
    double added_kib = 0;       ///< peak memory of the structure
    double memory_ratio = 1;    ///< ratio of `added_kib` to that of AS1
    bool is_too_large = false;  ///< `memory_ratio` is too large
};

/// The properties by which J. Lakos's talk on local allocators describes a workload, each from 0 to
/// 1. The printed report says which of them are estimates.
struct dimensions {
    double density = 0;     ///< D: allocations and frees for each ns of AS1's time
    double variation = 0;   ///< V: different sizes / allocations
    double locality = 0;    ///< L: share of use time that local layouts save
    double utilisation = 0; ///< U: peak bytes in use / all allocated bytes
    // The properties C and F (contention and fragmentation) are always 0 here: there is one thread,
    // and no other part of the program allocates.
};

struct advice {
    std::vector<standing> standings; ///< AS1 first; fewer if interrupted
    dimensions measured;
    std::size_t chosen = 0; ///< index in `standings`; 0: stay with AS1
    std::vector<std::pair<std::string, std::string>> reasons; ///< a word, and a sentence

    const standing& choice() const { return standings[chosen]; }
    bool has_enough_runs() const { return standings.front().runs.size() >= runs_min; }
};

/// Chooses a strategy from the measurements. Requires at least one run of AS1 (the default heap).
advice advise(const series&);

/// Chooses a strategy, in two steps.
///
/// First finds the fastest of the strategies that are faster than AS1 (the default heap) and do not
/// use too much memory. If all faster ones use too much memory, finds the fastest of them.
///
/// Then prefers a strategy within 3 % of that one if it needs less memory or less work of the
/// programmer. A wink-out is more work than destructors, and a type parameter affects more code
/// than an abstract base.
std::size_t choose(std::span<const standing>);

/// Explains the choice: the strategy, the reasons, and the price.
std::vector<std::pair<std::string, std::string>> reasons_for(const advice&, const profile&);

} // namespace mallard::demo

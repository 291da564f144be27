#include <bench/demo/advice.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <tuple>

namespace mallard::demo {

namespace {

constexpr double gain_min = 0.03; // smaller gains do not count
constexpr double level_max = 1 + gain_min;
// Allowed probability of an error in each of the thirteen comparisons.
constexpr double error_max = 0.05 / (strategy_count - 1);

bench::summary summary_of(const std::vector<measurement>& runs, auto value)
{
    std::vector<double> samples;
    for (const auto& m : runs)
        samples.push_back(static_cast<double>(std::invoke(value, m)));
    return bench::summarise(samples);
}

double median_of(std::vector<double> samples)
{
    return bench::summarise(samples).median;
}

standing standing_of(const strategy_entry& strategy, const std::vector<measurement>& runs,
                     const std::vector<measurement>& heap)
{
    auto const ratio_to_heap = [&](auto value) {
        return summary_of(runs, value).median / std::max(summary_of(heap, value).median, 1e-9);
    };
    standing result{.strategy = &strategy};
    for (const auto& m : runs)
        result.runs.push_back(m.seconds());
    result.seconds = summary_of(runs, &measurement::seconds);
    result.use_ratio = ratio_to_heap(&measurement::use);
    result.peak_kib = summary_of(runs, &measurement::peak_rss_kib);
    result.after_kib = summary_of(runs, &measurement::after_rss_kib);
    result.added_kib = summary_of(runs, &measurement::peak_kib_added).median;
    result.memory_ratio = ratio_to_heap(&measurement::peak_kib_added);
    double const heap_kib = summary_of(heap, &measurement::peak_kib_added).median;
    result.is_too_large = result.added_kib > memory_ratio_max * heap_kib + memory_noise_kib;
    return result;
}

dimensions dimensions_of(const profile& counts, const std::vector<standing>& standings)
{
    auto const share = [](auto part, auto whole) {
        return whole > 0 ? std::min(static_cast<double>(part) / static_cast<double>(whole), 1.0)
                         : 0;
    };
    std::vector<double> use_ratios;
    for (const auto& who : standings)
        if (who.strategy->from != family::heap)
            use_ratios.push_back(who.use_ratio);
    return {
        .density = share(counts.allocations + counts.frees, standings.front().seconds.median * 1e9),
        .variation = share(counts.sizes, counts.allocations),
        .locality = use_ratios.empty() ? 0 : std::max(1 - median_of(use_ratios), 0.0),
        .utilisation = share(counts.bytes_at_peak, counts.bytes_total),
    };
}

/// Returns how many of `count` runs have to favour the same strategy, so that the probability of
/// this by chance is below `error_max`. Returns count + 1 if even all runs are not enough.
std::size_t agreement_needed(std::size_t count)
{
    // The probability that exactly `heads` runs favour one strategy.
    double chance = std::pow(0.5, static_cast<double>(count));
    double at_least = 0;
    std::size_t heads = count + 1;
    while (at_least + chance < error_max) {
        at_least += chance;
        --heads;
        chance *= static_cast<double>(heads) / static_cast<double>(count - heads + 1);
    }
    return heads;
}

} // namespace

comparison compare(std::span<const double> before, std::span<const double> now)
{
    std::size_t const count = std::min(before.size(), now.size());
    if (count == 0)
        return {};
    std::vector<double> ratios;
    for (std::size_t i = 0; i < count; ++i)
        ratios.push_back(now[i] / std::max(before[i], 1e-12));
    comparison result = {.ratio = median_of(ratios)};

    std::size_t const needed = agreement_needed(count);
    if (needed > count)
        return result;
    std::ranges::sort(ratios);
    result.visible = std::max(gain_min, ratios[needed - 1] / result.ratio - 1);
    if (result.ratio <= 1 - gain_min && ratios[needed - 1] < 1)
        result.says = verdict::faster;
    if (result.ratio >= 1 + gain_min && ratios[count - needed] > 1)
        result.says = verdict::slower;
    return result;
}

std::size_t choose(std::span<const standing> all)
{
    std::vector<std::size_t> gaining;
    for (std::size_t i = 1; i < all.size(); ++i)
        if (all[i].to_heap.says == verdict::faster)
            gaining.push_back(i);
    auto const too_large = [&](std::size_t i) { return all[i].is_too_large; };
    if (!std::ranges::all_of(gaining, too_large))
        std::erase_if(gaining, too_large);
    if (gaining.empty())
        return 0;

    auto const ratio = [&](std::size_t i) { return all[i].to_heap.ratio; };
    auto const memory = [&](std::size_t i) { return all[i].added_kib; };
    auto const best = std::ranges::min(gaining, {}, ratio);
    std::erase_if(gaining, [&](std::size_t i) {
        return compare(all[best].runs, all[i].runs).ratio > level_max;
    });
    double const much = 1.1 * memory(std::ranges::min(gaining, {}, memory)) + memory_noise_kib;
    return std::ranges::min(gaining, {}, [&](std::size_t i) {
        auto const& strategy = *all[i].strategy;
        return std::tuple(memory(i) > much, strategy.winks_out,
                          strategy.binding == binding::type_parameter, ratio(i));
    });
}

advice advise(const series& s)
{
    advice a;
    for (std::size_t i = 0; i < strategy_count && !s.runs[i].empty(); ++i)
        a.standings.push_back(standing_of(strategies()[i], s.runs[i], s.runs.front()));
    for (auto& who : a.standings)
        who.to_heap = compare(a.standings.front().runs, who.runs);
    a.measured = dimensions_of(s.counts, a.standings);
    a.chosen = choose(a.standings);
    a.reasons = reasons_for(a, s.counts);
    return a;
}

} // namespace mallard::demo

// Measures the growth case of the project "fixed memory pool" (pbr) v0.5.0, and the percentiles in
// its README. The pool grows from 256 blocks of 64 bytes to a million, by doubling.
//
// Faithful (as published): the source has no memory at the start. Each allocation for the
// percentiles is timed with wall time, including the time of the reading.
//
// Corrected: the source already has the memory. The clock is the time-stamp counter, minus the time
// of a reading.
#include <bench/growing.hpp>
#include <bench/seeds/contenders.hpp>

namespace mallard::bench {
namespace {

template <sync Threads, reuse Order = pool_options{}.order>
class doubling_pool {
public:
    static std::string name() { return seed_pool<Threads, Order>::name(); }

    explicit doubling_pool(std::size_t) {}

    void* allocate() { return pool_.allocate(); }
    void deallocate(void* block) { pool_.deallocate(block); }

private:
    static constexpr std::size_t first_bytes = growth_first * growth_bytes;
    static constexpr pool_options options{
        .block = growth_bytes,
        .chunk = first_bytes,
        .grow = {.first = first_bytes, .max = growth_count * growth_bytes},
        .threads = Threads,
        .order = Order};

    pool<default_heap, options> pool_;
};

using contenders =
    seed_mallocs::with<boost_doubling_pool, foonathan_doubling_pool,
                       doubling_pool<sync::none, reuse::lifo>, doubling_pool<sync::none>,
                       doubling_pool<sync::mutex>, doubling_pool<sync::thread_cached>>;

struct by_wall_clock {
    static std::uint64_t now() noexcept { return static_cast<std::uint64_t>(wall_ns()); }
    static double of_a_reading() { return 0; }
    static double ns_of_one() { return 1; }
};

constexpr std::pair<const char*, double> percentiles[] = {
    {"p50_ns", 0.5}, {"p90_ns", 0.9}, {"p99_ns", 0.99}, {"p999_ns", 0.999}};

std::vector<figure> figures(const char* variant)
{
    std::string const name = "pbr-0.5.0/growth";
    std::vector<figure> all{{name, "ns_per_op", variant}};
    for (auto const& [metric, fraction] : percentiles)
        all.push_back({name, metric, variant});
    return all;
}

template <class Clock, class C>
void grow(fresh_state<C>& s, std::span<double> out)
{
    out[0] = ns_of([&] { s.fill(true); }) / static_cast<double>(s.slots.size());
    s.drop();
    table<double> ns = latencies<Clock>(s);
    for (std::size_t i = 0; i < std::size(percentiles); ++i)
        out[1 + i] = select_percentile(ns, percentiles[i].second);
}

template <class Clock>
experiment growth_of(effort how, const char* variant, const char* asks, bool warm)
{
    return {.asks = std::string("pbr v0.5.0, growth: a pool of 256 blocks of 64 bytes doubles to "
                                "1,000,000, each written to; ") +
                    asks + ". ns a block on average, and percentiles of the ns of each",
            .figures = figures(variant),
            .entrants = entrants_of(
                contenders{}, {},
                [how, warm]<class C>() -> round_function {
                    std::size_t const bytes = warm ? growth_count * (growth_bytes + 16) * 5 / 4 : 0;
                    return [s = std::make_shared<fresh_state<C>>(how, growth_count, bytes)](
                               std::span<double> out) { grow<Clock>(*s, out); };
                }),
            .rounds = report_repeats,
            .in_brief = !warm,
            .weight = 4};
}

} // namespace

std::vector<experiment> seeds_pbr_growth(effort how)
{
    return {growth_of<by_wall_clock>(how, "faithful",
                                     "page faults included where its source asks for pages; each "
                                     "timed by the wall's clock, readings included",
                                     false),
            growth_of<by_ticks>(how, "corrected",
                                "its source has the memory at hand; each timed by the counter, "
                                "less what a reading takes",
                                true)};
}

} // namespace mallard::bench

// Tests when two strategies count as different, and which strategy is recommended.
#include <bench/demo/advice.hpp>
#include <bench/demo/test/expect.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace {

using namespace mallard::demo;

constexpr std::size_t runs = 15;

/// Replaces the runs of a strategy. The new runs take about `seconds` each, with relative
/// differences of up to `noise`, and have a peak of `mib` MiB.
void set(series& s, int strategy, double seconds, std::uint64_t mib, double noise = 0.005,
         unsigned seed = 0)
{
    std::mt19937 random(seed * 14 + static_cast<unsigned>(strategy));
    auto& mine = s.runs[static_cast<std::size_t>(strategy - 1)];
    mine.clear();
    for (std::size_t i = 0; i < runs; ++i) {
        measurement m;
        m.build = seconds * std::uniform_real_distribution(1 - noise, 1 + noise)(random);
        m.use = m.build / 10;
        m.start_rss_kib = 10 << 10;
        m.peak_rss_kib = (10 + mib) << 10;
        m.after_rss_kib = m.start_rss_kib;
        mine.push_back(m);
    }
}

/// A series in which all strategies take a second and 20 MiB.
series level(double noise = 0.005, unsigned seed = 0)
{
    series s{.words = workloads()[0].words};
    s.counts = {.allocations = 1'000,
                .frees = 1'000,
                .bytes_total = 100'000,
                .bytes_at_peak = 80'000,
                .sizes = 10};
    for (int strategy = 1; strategy <= 14; ++strategy)
        set(s, strategy, 1, 20, noise, seed);
    return s;
}

std::string chosen(const series& s)
{
    return std::string(advise(s).choice().strategy->name);
}

std::string reason(const series& s, std::string_view word)
{
    for (const auto& [label, sentence] : advise(s).reasons)
        if (label == word)
            return sentence;
    return {};
}

/// Returns `count` run times near `seconds`.
std::vector<double> around(double seconds, std::size_t count = runs)
{
    std::vector<double> all(count, seconds);
    for (std::size_t i = 0; i < count; ++i)
        all[i] *= 1 + 0.01 * static_cast<double>(i % 3);
    return all;
}

TEST(demo_compare, sees_a_gain_that_the_runs_agree_on)
{
    EXPECT_EQ(compare(around(1.0), around(0.8)).says, verdict::faster);
    EXPECT_EQ(compare(around(0.8), around(1.0)).says, verdict::slower);
    EXPECT_NEAR(compare(around(1.0), around(0.8)).ratio, 0.8, 1e-9);
}

TEST(demo_compare, treats_fewer_than_nine_runs_as_noise)
{
    EXPECT_EQ(compare(around(1, 8), around(0.5, 8)).says, verdict::no_difference);
    EXPECT_EQ(compare(around(1, 9), around(0.5, 9)).says, verdict::faster);
    EXPECT_EQ(compare({}, {}).says, verdict::no_difference);
}

TEST(demo_compare, is_not_changed_by_one_bad_run)
{
    auto now = around(0.8);
    now[4] = 9;
    EXPECT_EQ(compare(around(1), now).says, verdict::faster);
}

TEST(demo_compare, ignores_differences_that_are_too_small_to_matter)
{
    EXPECT_EQ(compare(around(1), around(0.98)).says, verdict::no_difference);
}

TEST(demo_advice, stays_with_the_heap_when_nothing_differs)
{
    EXPECT_EQ(chosen(level()), "AS1");
    EXPECT_TRUE(reason(level(), "take").starts_with("AS1: no difference, stay with it"));
}

TEST(demo_advice, names_a_winner_among_equals_in_at_most_five_of_a_hundred_tables)
{
    int mistaken = 0;
    for (unsigned table = 0; table < 400; ++table)
        mistaken += chosen(level(0.2, table)) != "AS1";
    EXPECT_LE(mistaken, 20);
}

TEST(demo_advice, says_when_runs_are_too_few)
{
    series s = level();
    for (auto& mine : s.runs)
        mine.resize(2);
    EXPECT_EQ(reason(s, "take"), "AS1: fewer than 9 runs are too few to tell a gain from noise");
}

TEST(demo_advice, recommends_a_strategy_that_gains)
{
    series s = level();
    set(s, 7, 0.7, 20);
    EXPECT_EQ(chosen(s), "AS7");
    EXPECT_TRUE(has(reason(s, "take"), "1.4"));
}

TEST(demo_advice, refuses_a_strategy_that_is_faster_but_too_large)
{
    series s = level();
    set(s, 3, 0.5, 200);
    set(s, 7, 0.8, 20);
    EXPECT_EQ(chosen(s), "AS7");
    EXPECT_TRUE(reason(s, "refused").starts_with("AS3 is 2.0"));
}

TEST(demo_advice, recommends_a_large_strategy_if_no_other_gains_and_names_its_price)
{
    series s = level();
    set(s, 3, 0.5, 200);
    EXPECT_EQ(chosen(s), "AS3");
    EXPECT_TRUE(reason(s, "price").starts_with("10.0x the memory of AS1"));
}

TEST(demo_advice, prefers_destructors_and_an_abstract_base_if_strategies_are_equally_fast)
{
    series s = level();
    for (int strategy = 7; strategy <= 10; ++strategy)
        set(s, strategy, 0.8, 20);
    set(s, 8, 0.795, 20, 0.0001);
    EXPECT_EQ(chosen(s), "AS9");
    EXPECT_TRUE(
        reason(s, "level").ends_with("AS9 is within 3 % of it, and runs destructors as usual"));
}

TEST(demo_advice, prefers_less_memory_among_equals)
{
    series s = level();
    set(s, 5, 0.8, 28);
    set(s, 8, 0.8, 20);
    EXPECT_EQ(chosen(s), "AS8");
}

TEST(demo_advice, says_what_low_utilisation_costs_an_arena)
{
    series s = level();
    set(s, 5, 1.4, 40);
    EXPECT_EQ(chosen(s), "AS1");
    EXPECT_TRUE(reason(s, "take").starts_with("AS1: no gain detected, and 1 slower"));
    EXPECT_TRUE(has(reason(s, "slower"), "at U 0.80, 20 % of what an arena holds is dead"));
}

TEST(demo_advice, uses_the_finished_runs_after_an_interrupt)
{
    series s = level();
    for (std::size_t i = 3; i < strategy_count; ++i)
        s.runs[i].clear();
    auto const a = advise(s);
    EXPECT_EQ(a.standings.size(), 3);
    EXPECT_EQ(a.chosen, 0);
}

TEST(demo_advice, computes_the_dimensions)
{
    auto const d = advise(level()).measured;
    EXPECT_NEAR(d.density, 2'000 / 1.1e9, 1e-8);
    EXPECT_DOUBLE_EQ(d.variation, 0.01);
    EXPECT_DOUBLE_EQ(d.utilisation, 0.8);
    EXPECT_NEAR(d.locality, 0, 0.02);
}

} // namespace

// Tests the means over all results of a suite.
#include <bench/standings.hpp>

#include <gtest/gtest.h>

#include <algorithm>

namespace {

using namespace mallard::bench;

std::vector<row> pair_of_rows(std::string const& case_name, double glibc, double ours,
                              std::string const& metric = "ns_per_op", int threads = 1)
{
    auto const one = [&](const char* contender, double value) {
        return row{.suite = "malloc",
                   .case_name = case_name,
                   .contender = contender,
                   .threads = threads,
                   .metric = metric,
                   .figure = summary{value, value, value, 9},
                   .variant = {},
                   .why = {}};
    };
    return {one("glibc-2.36", glibc), one("mallard/malloc", ours)};
}

summary mean_of(standings const& all, std::string const& kind)
{
    for (row const& r : all.rows("malloc")) {
        if (r.case_name == "geometric_mean/" + kind && r.contender == "mallard/malloc" &&
            r.metric == "ratio_to_glibc")
            return *r.figure;
    }
    return {};
}

TEST(Standings, FamiliesOfCasesHaveEqualWeightWhateverTheirSize)
{
    standings all;
    for (const char* const bytes : {"16B", "32B", "64B", "128B"})
        all.add(pair_of_rows(std::string("pair/") + bytes, 4, 1));
    all.add(pair_of_rows("bulk/10kx64B/malloc", 1, 1));
    EXPECT_DOUBLE_EQ(mean_of(all, "time").median, 0.5); // not the fifth root of 1/256
    EXPECT_EQ(mean_of(all, "time").runs, 5U);
}

TEST(Standings, AMultithreadedCaseCountsOnceByItsCpuTime)
{
    standings all;
    std::vector<row> rows = pair_of_rows("threads/larson/T4", 10, 1, "ns_per_op", 4);
    std::ranges::copy(pair_of_rows("threads/larson/T4", 10, 5, "cpu_ns_per_op", 4),
                      std::back_inserter(rows));
    all.add(rows);
    EXPECT_DOUBLE_EQ(mean_of(all, "time").median, 0.5);
    EXPECT_EQ(mean_of(all, "time").runs, 1U);
}

TEST(Standings, ComputesAMeanWithoutTheMallocFreePairCases)
{
    standings all;
    all.add(pair_of_rows("pair/64B", 8, 1));
    all.add(pair_of_rows("threads/pair/64B/T1", 8, 1));
    all.add(pair_of_rows("fifo/100x64B", 8, 1));
    all.add(pair_of_rows("bulk/10kx64B/free", 2, 1));
    EXPECT_DOUBLE_EQ(mean_of(all, "time_without_pairs").median, 0.5);
    EXPECT_LT(mean_of(all, "time").median, 0.3);
}

TEST(Standings, IgnoresCyclesBecauseTheyAreNanosecondsInAnotherUnit)
{
    standings all;
    std::vector<row> rows = pair_of_rows("pair/64B", 4, 2);
    std::ranges::copy(pair_of_rows("pair/64B", 4, 4, "cycles_per_op"), std::back_inserter(rows));
    all.add(rows);
    EXPECT_EQ(mean_of(all, "time").runs, 1U);
}

} // namespace

// Tests the clock of the benchmarks. Two chains of dependent operations with known latencies have
// to agree about the length of a cycle.
#include <bench/clock.hpp>

#include <gtest/gtest.h>

#include <algorithm>

namespace {

using namespace mallard::bench;

// Assumes ticks of 2.6 GHz and a processor of 3.9 GHz. Then a cycle is two thirds of a tick.
TEST(Clock, ComputesCyclesIfTwoChainsOfKnownLatencyAgree)
{
    auto const cycles = cycles_per_tick(2.0, 0.66);
    ASSERT_TRUE(cycles);
    EXPECT_DOUBLE_EQ(*cycles, 1.5);
}

TEST(Clock, ReturnsNoCyclesIfTheTwoChainsDisagree)
{
    EXPECT_FALSE(cycles_per_tick(2.0, 0.22));  // three steps in a cycle
    EXPECT_FALSE(cycles_per_tick(2.0, 0.333)); // two steps in a cycle
    EXPECT_FALSE(cycles_per_tick(2.7, 0.66));  // a multiplication of four cycles
}

TEST(Clock, MeasuresAPlausibleProcessorSpeed)
{
    if (auto const cycles = cycles_per_ns()) {
        EXPECT_GT(*cycles, 0.8);
        EXPECT_LT(*cycles, 7);
    }
}

// Uses xor, because new processors execute several additions of 1 in a cycle.
TEST(Clock, CountsACycleForEachOfManyDependentXors)
{
    auto const cycles = cycles_per_ns();
    if (!cycles)
        GTEST_SKIP() << no_cycles;
    double least = 1e9;
    for (int attempt = 0; attempt < 200; ++attempt) {
        std::uint32_t value = 1;
        std::uint32_t mask = 3;
        asm("" : "+r"(mask));
        std::uint64_t const from = ticks();
        for (int i = 0; i < 1000; ++i)
            asm volatile(".rept 16\n\txor %1, %0\n\t.endr" : "+r"(value) : "r"(mask) : "cc");
        least = std::min(least, static_cast<double>(ticks() - from) * ns_per_tick());
    }
    EXPECT_NEAR(least * *cycles / 16'000, 1, 0.15);
}

} // namespace

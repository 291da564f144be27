#include <bench/clock.hpp>

#include <algorithm>
#include <array>

namespace mallard::bench {
namespace {

// The median of short tries: an interruption spoils one of them.
double measure_ns_per_tick()
{
    std::array<double, 5> tries{};
    for (double& ratio : tries) {
        double const from_ns = wall_ns();
        std::uint64_t const from = ticks();
        double ns = 0;
        while (ns < 2e5)
            ns = wall_ns() - from_ns;
        ratio = ns / static_cast<double>(ticks() - from);
    }
    std::ranges::sort(tries);
    return tries[2];
}

double measure_reading()
{
    std::uint64_t least = ~std::uint64_t{0};
    for (int i = 0; i < 10'000; ++i) {
        std::uint64_t const from = ticks();
        least = std::min(least, ticks() - from);
    }
    return static_cast<double>(least);
}

// Some processors count in steps of many ticks.
double measure_step()
{
    std::uint64_t least = ~std::uint64_t{0};
    for (int i = 0; i < 10'000; ++i) {
        std::uint64_t const first = ticks();
        std::uint64_t const second = ticks();
        std::uint64_t const third = ticks();
        std::uint64_t const a = second - first;
        std::uint64_t const b = third - second;
        if (a != b)
            least = std::min(least, a > b ? a - b : b - a);
    }
    return static_cast<double>(least);
}

// A chain of additions takes a cycle each. The fastest of many short tries is
// the one that nothing disturbed.
double measure_cycles_per_tick()
{
    constexpr int additions = 20'000;
    double best = 0;
    for (int attempt = 0; attempt < 200; ++attempt) {
        std::uint64_t value = 0;
        std::uint64_t const from = ticks();
        for (int i = 0; i < additions / 8; ++i) {
            asm volatile("add $1, %0\n\tadd $1, %0\n\tadd $1, %0\n\tadd $1, %0\n\t"
                         "add $1, %0\n\tadd $1, %0\n\tadd $1, %0\n\tadd $1, %0"
                         : "+r"(value));
        }
        best = std::max(best, additions / static_cast<double>(ticks() - from));
    }
    return best;
}

} // namespace

double ns_per_tick()
{
    static double const value = measure_ns_per_tick();
    return value;
}

double ticks_of_a_reading()
{
    static double const value = measure_reading();
    return value;
}

double ns_of_a_step()
{
    return measure_step() * ns_per_tick();
}

double cycles_per_ns()
{
    return measure_cycles_per_tick() / ns_per_tick();
}

} // namespace mallard::bench

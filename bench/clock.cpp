#include <bench/clock.hpp>

#include <algorithm>
#include <array>
#include <cmath>

namespace mallard::bench {
namespace {

// Returns the median of several short measurements, because an interrupt may spoil a single one.
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

// On some processors the counter advances in steps of many ticks.
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

// Measures the ticks of one step of a chain of dependent operations: each step needs the result of
// the step before. Returns the fastest of many short measurements, because nothing disturbed that
// measurement.
//
// No chain adds a constant, because Xeons since Golden Cove execute `add $1` while they rename
// registers, three or more in a cycle.
template <class EightSteps>
double ticks_of_a_step(EightSteps eight)
{
    constexpr int steps = 16'000;
    double best = 1e9;
    for (int attempt = 0; attempt < 200; ++attempt) {
        std::uint32_t value = 3;
        std::uint64_t const from = ticks();
        for (int i = 0; i < steps / 8; ++i)
            eight(value);
        best = std::min(best, static_cast<double>(ticks() - from) / steps);
    }
    return best;
}

// Measures a chain of dependent multiplications. A step takes three cycles on every x86-64
// processor of Intel since 2008 and of AMD since 2017.
double ticks_of_a_product()
{
    return ticks_of_a_step([](std::uint32_t& value) {
        asm volatile(".rept 8\n\timul %0, %0\n\t.endr" : "+r"(value) : : "cc");
    });
}

// Measures a chain of dependent exclusive ors. A step takes one cycle on every x86-64 processor of
// Intel since 2008 and of AMD since 2017.
double ticks_of_a_xor()
{
    std::uint32_t mask = 0x5a5a5a5a;
    asm("" : "+r"(mask)); // a register, not a constant
    return ticks_of_a_step([mask](std::uint32_t& value) {
        asm volatile(".rept 8\n\txor %1, %0\n\t.endr" : "+r"(value) : "r"(mask) : "cc");
    });
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

std::optional<double> cycles_per_tick(double product, double exclusive_or)
{
    constexpr double most_apart = 0.05;
    double const by_product = 3 / product;
    double const by_xor = 1 / exclusive_or;
    bool const agree = std::abs(by_product / by_xor - 1) <= most_apart;
    return agree ? std::optional(by_product) : std::nullopt;
}

std::optional<double> cycles_per_ns()
{
    // Tries several times, because the processor may change its speed between the two measurements.
    for (int attempt = 0; attempt < 5; ++attempt) {
        if (auto const cycles = cycles_per_tick(ticks_of_a_product(), ticks_of_a_xor()))
            return *cycles / ns_per_tick();
    }
    return std::nullopt;
}

} // namespace mallard::bench

// The mathematics of sampling. Each allocated byte is chosen with the same probability, and a block
// is sampled if one of its bytes is chosen. malloc and the recorder use these functions.
//
// A thread counts its allocated bytes in units of the mean distance between two chosen bytes.
// `draw_distance` returns the distance to the next chosen byte, in the same unit.
//
// The functions are static and lack the keyword `inline`, because clang inlines functions with that
// keyword even when it optimises for size, and malloc is optimised for size.
#pragma once

#include <mallard/detail/base/cxx20.hpp>

#include <cstdint>

namespace mallard::sampling {

/// Returns 64 random bits, computed by SplitMix64. (Steele, Lea, Flood: Fast splittable
/// pseudorandom number generators, 2014.)
[[maybe_unused]] static std::uint64_t draw(std::uint64_t& state) noexcept
{
    std::uint64_t x = state += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

/// Draws a number from the exponential distribution with mean 1. Uses comparisons instead of a
/// logarithm, because the library does not link libm. (Von Neumann: Various techniques used in
/// connection with random digits, 1951.)
[[maybe_unused]] static double draw_distance(std::uint64_t& state) noexcept
{
    for (double whole = 0;; whole += 1) {
        std::uint64_t const first = draw(state);
        std::uint64_t last = first;
        bool is_odd = true;
        for (std::uint64_t next = draw(state); next < last; next = draw(state)) {
            last = next;
            is_odd = !is_odd;
        }
        if (is_odd)
            return whole + static_cast<double>(first) * 0x1p-64;
    }
}

/// Computes 1 - e^-x, the probability that sampling chooses at least one byte of a block whose size
/// is x mean distances.
[[maybe_unused]] static double chance(double x) noexcept
{
    if (x > 40)
        return 1;
    int halved = 0;
    for (; x > 0.5; x /= 2)
        halved += 1;
    double term = x;
    double sum = x;
    for (int i = 2; i <= 12; ++i)
        sum += term *= -x / i;
    for (; halved != 0; --halved) // 1 - e^-2x = (1 - e^-x)(1 + e^-x)
        sum *= 2 - sum;
    return sum;
}

} // namespace mallard::sampling

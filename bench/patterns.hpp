// Orders in which blocks are freed, and sizes in which blocks are allocated. Orders and sizes are
// the same in every run, so that contenders and runs can be compared.
#pragma once

#include <bench/table.hpp>

#include <cstdint>
#include <numeric>

namespace mallard::bench {

enum class order { forward, reverse, shuffled };

/// A random number generator (xorshift64*), with the same numbers on every platform.
class random_numbers {
public:
    explicit random_numbers(std::uint64_t seed = 1) noexcept
        : state_(seed * 0x9e3779b97f4a7c15u + 1)
    {
    }

    std::uint64_t next() noexcept
    {
        state_ ^= state_ >> 12;
        state_ ^= state_ << 25;
        state_ ^= state_ >> 27;
        return state_ * 0x2545f4914f6cdd1du;
    }
    /// Returns a random number below `bound`. Requires that `bound` is far below 2^32.
    std::uint32_t below(std::size_t bound) noexcept
    {
        return static_cast<std::uint32_t>(((next() >> 32) * bound) >> 32);
    }

private:
    std::uint64_t state_;
};

/// Returns every index below `count` once, in the given order.
inline table<std::uint32_t> indices(std::size_t count, order how, std::uint64_t seed = 1)
{
    table<std::uint32_t> all(count);
    std::iota(all.begin(), all.end(), 0u);
    if (how == order::reverse)
        std::reverse(all.begin(), all.end());
    random_numbers random(seed);
    for (std::size_t i = count; how == order::shuffled && i > 1; --i)
        std::swap(all[i - 1], all[random.below(i)]);
    return all;
}

/// Returns `count` random indices below `bound`. An index may occur several times.
inline table<std::uint32_t> random_indices(std::size_t count, std::size_t bound)
{
    table<std::uint32_t> all(count);
    random_numbers random(7);
    for (std::uint32_t& index : all)
        index = random.below(bound);
    return all;
}

/// Returns random sizes from 8 bytes to `largest`, all multiples of 8. Each range from one power of
/// two to the next has the same probability. So small sizes are the most frequent, as in real
/// programs.
inline table<std::uint32_t> mixed_sizes(std::size_t count, std::size_t largest)
{
    table<std::uint32_t> all(count);
    random_numbers random(3);
    std::size_t octaves = 0;
    while ((std::size_t{16} << octaves) <= largest)
        ++octaves;
    for (std::uint32_t& size : all) {
        std::size_t const low = std::size_t{8} << random.below(octaves);
        size = static_cast<std::uint32_t>(low + random.below(low / 8 + 1) * 8);
    }
    return all;
}

} // namespace mallard::bench

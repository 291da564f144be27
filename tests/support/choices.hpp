// The source of the choices in random programs: a seed, or the bytes of a fuzzer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>

namespace mallard::testing {

/// Makes unlimited choices from a seed.
class seeded {
public:
    explicit seeded(std::uint64_t seed) : random_(seed) {}

    /// Returns a number below `end`.
    std::size_t operator()(std::size_t end) { return random_() % end; }
    bool more() const { return true; }

private:
    std::mt19937_64 random_;
};

/// Makes choices from the bytes of a fuzzer, until no byte is left.
class recorded {
public:
    explicit recorded(std::span<const std::uint8_t> bytes) : rest_(bytes) {}

    std::size_t operator()(std::size_t end)
    {
        std::size_t number = 0;
        for (std::size_t span = 1; span < end && more(); span <<= 8) {
            number = number << 8 | rest_.front();
            rest_ = rest_.subspan(1);
        }
        return number % end;
    }
    bool more() const { return !rest_.empty(); }

private:
    std::span<const std::uint8_t> rest_;
};

} // namespace mallard::testing

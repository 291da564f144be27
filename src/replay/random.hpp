// Pseudo-random numbers, which are the same in every run.
#pragma once

#include <mallard/trace/replay_format.h>

namespace mallard::replay {

/// A pseudo-random sequence. Each number is a counter that is mixed twice, as in splitmix64.
class random_numbers {
public:
    /// Returns the next number, from 0 to `bound` - 1.
    std::uint64_t below(std::uint64_t bound) noexcept
    {
        ++count_;
        return mallard_replay_mix(mallard_replay_mix(seed, count_), count_) % bound;
    }

private:
    static constexpr std::uint64_t seed = 12345;
    std::uint64_t count_ = 0;
};

} // namespace mallard::replay

// Picks one call in so many, at random.
#pragma once

#include <mallard/detail/base/cxx20.hpp>

#include <cstdint>

namespace mallard {

/// When the next call is picked.
class sample_countdown {
public:
    /// True once in `one_in` calls on average: a decrement and a test, unless the
    /// count ends. Each distance from 1 to `2 * one_in - 1` is as likely.
    bool is_due(std::uint64_t one_in) noexcept
    {
        if (--left_ != 0) [[likely]]
            return false;
        bool const is_first = random_ == 0; // nothing is drawn yet: so this one is not due
        left_ = 1 + draw() % (2 * one_in - 1);
        return !is_first;
    }

private:
    [[gnu::cold, gnu::noinline]] std::uint64_t draw() noexcept
    {
        // Where the countdown lies differs from run to run and from thread to thread.
        if (random_ == 0)
            random_ = reinterpret_cast<std::uintptr_t>(this) * 0x9e3779b97f4a7c15u | 1;
        // Marsaglia, "Xorshift RNGs", 2003.
        random_ ^= random_ << 13;
        random_ ^= random_ >> 7;
        random_ ^= random_ << 17;
        return random_ >> 11; // its lowest bits are its worst
    }

    std::uint64_t left_ = 1;
    std::uint64_t random_ = 0;
};

} // namespace mallard

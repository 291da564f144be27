// The strings of Benchmark I of J. Lakos (ACCU 2017): 33 to 1,000 characters out of 64 KiB of
// random characters.
#pragma once

#include <array>
#include <cstddef>
#include <random>
#include <string_view>

namespace mallard::bench::lab {

/// Chooses random strings in one of two ways. `each` draws two random numbers for each string, as
/// Lakos's program does. `before` draws the lengths beforehand, and starts each string 61
/// characters after the previous one.
class words {
public:
    enum class when { each, before };

    explicit words(when drawn) : drawn_(drawn)
    {
        std::uniform_int_distribution<int> printable('!', '~');
        for (char& c : all_)
            c = static_cast<char>(printable(engine_));
        for (std::size_t& length : lengths_)
            length = length_(engine_);
    }

    std::string_view operator()()
    {
        if (drawn_ == when::each)
            return draw();
        cut_ = (cut_ + 61) % (all_.size() - longest);
        return {all_.data() + cut_, lengths_[next_++ % lengths_.size()]};
    }

private:
    static constexpr std::size_t longest = 1000;

    std::string_view draw()
    {
        std::size_t const length = length_(engine_);
        return {all_.data() + at_(engine_), length};
    }

    when drawn_;
    std::array<char, std::size_t{1} << 16> all_{};
    std::size_t next_ = 0;
    std::size_t cut_ = 0;
    std::default_random_engine engine_;
    std::uniform_int_distribution<std::size_t> length_{33, longest};
    std::uniform_int_distribution<std::size_t> at_{0, all_.size() - longest};
    std::array<std::size_t, 4096> lengths_;
};

} // namespace mallard::bench::lab

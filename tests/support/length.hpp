// The length of tests that repeat something, such as random programs, rounds of threads, or runs in
// each of which another call fails.
#pragma once

#include "tsan.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>

namespace mallard::testing {

/// Returns the length of the tests in percent, from the environment variable MALLARD_TEST_LENGTH.
/// `./x test` sets 10, `./x test --all` sets 100, and `./x soak` may set more.
inline std::size_t test_length()
{
    static std::size_t const percent = [] {
        const char* const text = std::getenv("MALLARD_TEST_LENGTH");
        std::size_t const number = text == nullptr ? 0 : std::strtoul(text, nullptr, 10);
        return number == 0 ? 100 : number;
    }();
    return percent;
}

/// Returns the repetitions of a loop that at full length repeats `count` times. Returns at least
/// `least`, or `count` if `count` is smaller.
inline std::size_t repeated(std::size_t count, std::size_t least = 1)
{
    return std::max(count * test_length() / 100, std::min(count, least));
}

/// Returns `repeated(count)`, or a tenth of `count` under ThreadSanitizer, which makes code slow,
/// unless the length is already a tenth or less.
inline std::size_t rounds(std::size_t count)
{
    std::size_t const tenth = count / 10 * std::max<std::size_t>(test_length(), 100) / 100;
    return has_tsan() ? std::min(repeated(count), tenth) : repeated(count);
}

/// Returns the step between the places that a test tries, such as the number of the call that
/// fails. The step is 1 at full length, and at most `most` in a short run.
inline std::size_t stride(std::size_t most)
{
    return std::clamp<std::size_t>(100 / test_length(), 1, most);
}

} // namespace mallard::testing

// Runs random programs with choices from seeds.
#pragma once

#include "../support/kinds.hpp"
#include "../support/length.hpp"
#include "../support/program.hpp"

namespace mallard::testing {

/// Runs a program with several seeds. Each run has a new source, to which all chunks must have been
/// returned at the end. A failure prints the seed; `--gtest_random_seed=SEED --gtest_filter=TEST`
/// starts with that seed. `make(source, choose)` returns the allocator.
template <class Make>
void run_programs(std::size_t programs, Make make, std::size_t limit = bytes_max)
{
    auto const first = static_cast<std::size_t>(GTEST_FLAG_GET(random_seed));
    for (std::size_t seed = first; seed < first + programs; ++seed) {
        doing = "seed " + std::to_string(seed);
        seeded choose(seed);
        failing_source source;
        using allocator = decltype(make(source, choose));
        subject_of<allocator> of([&] { return make(source, choose); });
        program<seeded>(source, choose, of, limit).run(repeated(4000, 400));
    }
    doing.clear();
}

} // namespace mallard::testing

// A figure from repeated measurements: its middle and its spread.
#pragma once

#include <cstddef>
#include <span>

namespace mallard::bench {

/// `low` and `high` are the 10th and 90th percentile, so with fewer than ten
/// runs they are the extremes.
struct summary {
    double median = 0;
    double low = 0;
    double high = 0;
    std::size_t runs = 0;
};

/// The value at nearest rank of `sorted`, which is not empty; 0 <= fraction <= 1.
double percentile(std::span<const double> sorted, double fraction);

/// Sorts `samples`, which are not empty.
summary summarise(std::span<double> samples);

} // namespace mallard::bench

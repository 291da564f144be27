// Median and spread of repeated measurements.
#pragma once

#include <cstddef>
#include <span>

namespace mallard::bench {

/// The median with `low` and `high`, the 10th and 90th percentiles. With fewer than ten runs these
/// are the extremes.
struct summary {
    double median = 0;
    double low = 0;
    double high = 0;
    std::size_t runs = 0;
};

/// The value at nearest rank of `sorted`, which is not empty; 0 <= fraction <= 1.
double percentile(std::span<const double> sorted, double fraction);

/// Returns the summary of `samples`, which must not be empty. Sorts `samples`.
summary summarise(std::span<double> samples);

} // namespace mallard::bench

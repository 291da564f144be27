// Median and spread of repeated measurements.
#pragma once

#include <cstddef>
#include <span>

namespace mallard::bench {

/// The median of samples, with the 10th percentile (`low`) and the 90th (`high`). With fewer than
/// ten samples, `low` and `high` are the smallest and the largest.
struct summary {
    double median = 0;
    double low = 0;
    double high = 0;
    std::size_t runs = 0;
};

/// Returns the value at the nearest rank. Requires that `sorted` is sorted and not empty, and that
/// 0 <= fraction <= 1.
double percentile(std::span<const double> sorted, double fraction);

/// Sorts `samples` and returns their summary. Requires at least one sample.
summary summarise(std::span<double> samples);

} // namespace mallard::bench

#include <bench/support/statistics.hpp>

#include <algorithm>
#include <cmath>

namespace mallard::bench {

double percentile(std::span<const double> sorted, double fraction)
{
    double const rank = std::ceil(fraction * static_cast<double>(sorted.size()));
    auto const index = static_cast<std::size_t>(std::max(rank, 1.0)) - 1;
    return sorted[std::min(index, sorted.size() - 1)];
}

summary summarise(std::span<double> samples)
{
    std::ranges::sort(samples);
    std::size_t const middle = samples.size() / 2;
    double const median =
        samples.size() % 2 == 1 ? samples[middle] : (samples[middle - 1] + samples[middle]) / 2;
    return {median, percentile(samples, 0.1), percentile(samples, 0.9), samples.size()};
}

} // namespace mallard::bench

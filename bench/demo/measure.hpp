// Measures the time of one workload under one strategy. The translation unit of each workload
// instantiates these templates.
#pragma once

#include <bench/clock.hpp>
#include <bench/demo/cell.hpp>
#include <bench/support/memory_use.hpp>

#include <bench/demo/strategy.hpp>

#include <utility>

namespace mallard::demo {

/// Measures the seconds of processor time since the last call. Processor time includes the kernel's
/// time for page faults.
///
/// Wall time would not be better. The process has one thread and never waits, so wall time would
/// only add the load of other programs.
class lap_clock {
public:
    double lap() noexcept
    {
        double const before = std::exchange(last_, bench::cpu_ns());
        return (last_ - before) * 1e-9;
    }

private:
    double last_ = bench::cpu_ns();
};

/// Constructs the resource and the structure, uses the structure, and destroys both, as code with a
/// local allocator does.
template <class Workload, class S>
answer live_once(corpus all, measurement& sums)
{
    using structure = typename Workload::template structure<S>;
    answer says;
    lap_clock clock;
    {
        typename S::resource_type resource;
        S::template run<structure>(resource, [&](structure& s) {
            Workload::template build<S>(s, all, says);
            sums.build += clock.lap();
            Workload::template use<S>(s, all, says);
            sums.use += clock.lap();
        });
        if constexpr (S::number == counted::number)
            sums.counts = resource.result();
    }
    sums.destroy += clock.lap();
    return says;
}

/// Builds, uses and destroys the structure `rounds` times, and returns the mean of the times. A
/// single round may be too short to measure (less than a millisecond).
template <class Workload, class S>
measurement measure_under(std::uint64_t rounds, corpus all)
{
    measurement result;
    for (std::uint64_t i = 0; i < rounds; ++i)
        result.says = live_once<Workload, S>(all, result);
    result.peak_rss_kib = bench::peak_resident_kib();
    result.after_rss_kib = bench::resident_kib();
    for (double* const sum : {&result.build, &result.use, &result.destroy})
        *sum /= static_cast<double>(rounds);
    return result;
}

template <class Workload>
measurement measure(int strategy, std::uint64_t rounds, corpus all)
{
    if (strategy == counted::number)
        return measure_under<Workload, counted>(1, all);
    measurement result;
    for_each_strategy([&]<class S>(S) {
        if (S::number == strategy)
            result = measure_under<Workload, S>(rounds, all);
    });
    return result;
}

} // namespace mallard::demo

// Timed loops for experiments.
#pragma once

#include <bench/clock.hpp>
#include <bench/harness.hpp>

#include <array>
#include <limits>

namespace mallard::bench {

/// Writes a figure in ns. If `out` has two elements, also writes it in cycles. The cycles are NaN
/// if they could not be measured.
inline void put_ns_and_cycles(std::span<double> out, double ns)
{
    static std::optional<double> const cycles = cycles_per_ns();
    out[0] = ns;
    if (out.size() > 1)
        out[1] = cycles ? ns * *cycles : std::numeric_limits<double>::quiet_NaN();
}

/// Repeats an operation until the batch is long enough. The first round determines the number of
/// repetitions, and does not count. Later rounds use the same number.
class batch {
public:
    explicit batch(effort e) noexcept : least_ns_(e.batch_ns()) {}

    /// Calls `body(n)`, which does n operations. Returns the ns of one operation.
    template <class Body>
    double ns_of_one(Body&& body)
    {
        for (;;) {
            double const from = cpu_ns();
            body(count_);
            double const ns = cpu_ns() - from;
            if (sized_ || ns >= least_ns_) {
                sized_ = true;
                return ns / static_cast<double>(count_);
            }
            count_ *= 2;
        }
    }

private:
    double least_ns_;
    std::size_t count_ = 1;
    bool sized_ = false;
};

/// Times two phases that alternate, such as "free all" and "allocate all". Both phases are repeated
/// until together they fill a batch. Short phases are timed by the time-stamp counter, long ones in
/// CPU time.
class two_phases {
public:
    explicit two_phases(effort e) noexcept : least_ns_(e.batch_ns()) {}

    /// Returns the ns of one pass of each phase.
    template <class First, class Second>
    std::array<double, 2> ns_of_pass(First&& first, Second&& second)
    {
        std::array<double, 2> sum{};
        double passes = 0;
        do {
            double const start = now();
            first();
            double const middle = now();
            second();
            sum[0] += middle - start;
            sum[1] += now() - middle;
            passes += 1;
        } while (sum[0] + sum[1] < least_ns_);
        coarse_ = std::min(sum[0], sum[1]) / passes > 1e5;
        return {sum[0] / passes, sum[1] / passes};
    }

private:
    double now() const noexcept
    {
        return coarse_ ? cpu_ns() : static_cast<double>(ticks()) * ns_per_tick_;
    }

    double least_ns_;
    double ns_per_tick_ = ns_per_tick();
    bool coarse_ = false;
};

} // namespace mallard::bench

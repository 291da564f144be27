// Counts page faults of this process.
#pragma once

#include <sys/resource.h>

#include <cstddef>

namespace mallard::bench {

/// Returns the number of minor page faults of all threads. (A minor page fault needs no access to a
/// disk.)
inline double page_faults() noexcept
{
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    return static_cast<double>(used.ru_minflt);
}

/// Counts page faults since construction. The result is the faults for each thousand of `count`
/// operations.
class faults_per_thousand {
public:
    explicit faults_per_thousand(std::size_t count) noexcept : count_(count) {}

    double so_far() const noexcept
    {
        return (page_faults() - before_) * 1000 / static_cast<double>(count_);
    }

private:
    std::size_t count_;
    double before_ = page_faults();
};

} // namespace mallard::bench

// Counts page faults of this process.
#pragma once

#include <sys/resource.h>

#include <cstddef>

namespace mallard::bench {

/// The minor page faults (those without access to a disk) of all threads.
inline double page_faults() noexcept
{
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    return static_cast<double>(used.ru_minflt);
}

/// Counts the page faults since construction, for each thousand of `count` operations.
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

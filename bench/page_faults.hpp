// How often the kernel had to give this process a page.
#pragma once

#include <sys/resource.h>

#include <cstddef>

namespace mallard::bench {

/// Those that needed no disk, of all threads.
inline double page_faults() noexcept
{
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    return static_cast<double>(used.ru_minflt);
}

/// From where it is made on, in every thousand of `count` operations.
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

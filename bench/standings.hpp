// Ranks contenders by all results of a suite.
#pragma once

#include <bench/support/row.hpp>

#include <map>
#include <string>
#include <vector>

namespace mallard::bench {

/// Computes the geometric means of the ratios of contenders to glibc. The kinds of means are: time,
/// time without the family of cases "pairs", and each kind of memory.
///
/// Families of cases have equal weights, however many cases they have. Each case counts once, and a
/// threaded case counts by its CPU time. A result is left out if the contender or glibc has no
/// figure. `runs` is the number of results that were used.
class standings {
public:
    void add(std::vector<row> const& rows);

    /// Returns two results for each contender and kind: the mean relative to glibc, and the mean
    /// relative to the best contender.
    std::vector<row> rows(std::string_view suite) const;

    void print() const;

private:
    struct mean {
        double logarithms = 0;
        std::size_t count = 0;
    };
    struct standing {
        std::map<std::string, mean> families;
        double value() const;
        std::size_t count() const;
    };
    using kind = std::string; // the compared quantity: "time", "peak_rss", ...

    double best(kind const&) const;

    std::map<kind, std::map<std::string, standing>> means_;
};

} // namespace mallard::bench

// Ranks contenders over all rows of a suite.
#pragma once

#include <bench/support/row.hpp>

#include <map>
#include <string>
#include <vector>

namespace mallard::bench {

/// Computes geometric means of contenders relative to glibc: of time, of time without pairs, and of
/// each kind of memory. Families of cases weigh equally, however many cases they have, and a case
/// counts once: a threaded case by its CPU time. A row that the contender or glibc lacks is left
/// out; `runs` is the number of rows used.
class standings {
public:
    void add(std::vector<row> const& rows);

    /// Returns two rows for each contender and kind: relative to glibc, and relative to the best.
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

// Who is first, over all rows of a suite.
#pragma once

#include <bench/support/row.hpp>

#include <map>
#include <string>
#include <vector>

namespace mallard::bench {

/// Geometric means of what contenders have where glibc has 1: in time, in time without pairs, and
/// in each kind of memory. Families of cases weigh equally, however many cases they have, and a
/// case counts once: of the wall and CPU time of a threaded one, the latter. A row that a contender
/// or glibc lacks is left out; `runs` is how many rows there were.
class standings {
public:
    void add(std::vector<row> const& rows);

    /// Two rows for each contender and kind: against glibc, and against the best.
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
    using kind = std::string; // what is compared: "time", "peak_rss", ...

    double best(kind const&) const;

    std::map<kind, std::map<std::string, standing>> means_;
};

} // namespace mallard::bench

// Prints results for people and for programs.
#pragma once

#include <bench/support/row.hpp>

#include <string>
#include <vector>

namespace mallard::bench {

/// Prints the results of one experiment, with a table for each case and metric. The best result
/// comes first. Each line has the ratio to glibc, the ratio to the best, and the memory.
void print_tables(std::string const& asks, std::vector<row> const& rows);

void print_json(std::vector<row> const& rows, provenance const&);

/// Collects the cases that Mallard loses: its best contender is more than 10 % worse than the best
/// other contender of the same kind. The kinds are mallocs, strategies of Lakos (ACCU 2017), and
/// local allocators.
///
/// Every such case is printed.
class losses {
public:
    /// Adds the results of a case. With `with_memory`, also compares the memory in cases that
    /// measure time.
    void add(std::vector<row> const& rows, bool with_memory);
    void print() const;

private:
    struct loss {
        row ours, theirs;
        double ratio() const { return ours.figure->median / theirs.figure->median; }
    };
    std::vector<loss> all_;
    std::size_t compared_ = 0;
};

} // namespace mallard::bench

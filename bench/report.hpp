// Prints rows for people and for programs.
#pragma once

#include <bench/support/row.hpp>

#include <string>
#include <vector>

namespace mallard::bench {

/// Prints the rows of one experiment as a table for each case and metric: the best row first, with
/// the ratio to glibc and to the best, and with the memory.
void print_tables(std::string const& asks, std::vector<row> const& rows);

void print_json(std::vector<row> const& rows, provenance const&);

/// Collects cases in which Mallard's best contender is more than 10 % worse than the best other
/// contender of the same kind: mallocs, strategies of the talk, or local allocators. A loss is
/// shown, never dropped.
class losses {
public:
    /// `with_memory` also compares memory in cases that measure time.
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

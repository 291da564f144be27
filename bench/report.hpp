// Rows for people, and rows for programs.
#pragma once

#include <bench/support/row.hpp>

#include <string>
#include <vector>

namespace mallard::bench {

/// The rows of one experiment as a table for each case and metric: best first,
/// with the ratio to glibc and to the best, and memory beside it.
void print_tables(std::string const& asks, std::vector<row> const& rows);

void print_json(std::vector<row> const& rows, provenance const&);

/// Where the best of Mallard is more than a tenth behind the best of the others, each of one kind:
/// a malloc, a strategy of the talk, or a local allocator. A loss is shown, never dropped.
class losses {
public:
    /// `with_memory`: in memory too, not only where nothing else is measured.
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

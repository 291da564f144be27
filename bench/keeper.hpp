// Saves the finished results of a run, so that they are not lost if the run is interrupted.
#pragma once

#include <bench/harness.hpp>

#include <set>
#include <stdexcept>
#include <string>

namespace mallard::bench {

/// A file of results, with one JSON object on each line. The results of an experiment are added
/// when the experiment ends. If the last line is incomplete, it is removed.
class keeper {
public:
    /// An error with a message of three lines.
    struct refused : std::runtime_error {
        using std::runtime_error::runtime_error;
    };

    explicit keeper(std::string path);

    bool empty() const noexcept { return known_.empty(); }
    bool has(std::string_view suite, figure const&, std::string const& contender) const;

    /// Adds results. Throws `refused` if the results cannot be written, for instance on a full
    /// disk. Then the file has none of these results.
    void add(std::vector<row> const& rows, provenance const& run) const;

private:
    std::string path_;
    std::set<std::string> known_;
};

} // namespace mallard::bench

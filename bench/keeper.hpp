// Rows that outlive a run that is cut short.
#pragma once

#include <bench/harness.hpp>

#include <set>
#include <stdexcept>
#include <string>

namespace mallard::bench {

/// A file of rows, a JSON object a line, to which rows are added as each experiment
/// ends. A last line that was cut off is removed.
class keeper {
public:
    /// The text is the three lines of an error.
    struct refused : std::runtime_error {
        using std::runtime_error::runtime_error;
    };

    explicit keeper(std::string path);

    bool empty() const noexcept { return known_.empty(); }
    bool has(std::string_view suite, figure const&, std::string const& contender) const;

    /// Throws `refused` when the file does not take them, a full disk being one reason;
    /// it then has no part of them.
    void add(std::vector<row> const& rows, provenance const& run) const;

private:
    std::string path_;
    std::set<std::string> known_;
};

} // namespace mallard::bench

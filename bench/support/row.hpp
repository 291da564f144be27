// One result (a row). Every suite prints results in this form, in C++ and in Rust.
#pragma once

#include <bench/support/statistics.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace mallard::bench {

/// One figure of one contender. Lower is better for every metric. If the contender cannot run the
/// case, there is no figure, and `why` has the reason.
struct row {
    std::string suite;
    std::string case_name;
    std::string contender;
    int threads = 1;
    std::string metric;
    std::optional<summary> figure;
    std::string variant; ///< "faithful", "corrected", or empty
    std::string why;
};

/// Facts about a run that are repeated in every result of the run.
struct provenance {
    std::string commit;  ///< short hash, with "-dirty" when the tree differs; or "unknown"
    std::string machine; ///< processor, CPUs, caches, kernel, compiler
    std::string command; ///< the command that produces the result again
};

/// Describes this run. The command begins with `launcher`, followed by the arguments of `main`.
provenance describe_run(std::string_view launcher, int argc, const char* const* argv);

/// Writes a result as one JSON object, without a line end.
std::string to_json(row const&, provenance const&);

} // namespace mallard::bench

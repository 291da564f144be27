// The text the demo works on: found or named, taken in one order, then shared
// with every cell as one read-only mapping, so that all read the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mallard::demo {

enum class format : std::uint64_t { text, json };

/// What was taken, and what was not and why.
struct collection {
    struct file {
        std::string name;
        std::string text;
        format is = format::text;
    };
    struct place { // a root of the walk, or what the user named
        std::string name;
        std::size_t files = 0;
        std::size_t bytes = 0;
    };

    std::vector<file> files;
    std::vector<place> places;
    std::vector<std::string> notes; ///< "empty.txt: skipped, it is empty"

    std::size_t bytes() const noexcept;
    std::uint64_t fingerprint() const noexcept; ///< equal: the same text was measured
};

inline constexpr std::size_t default_bytes_max = std::size_t{5} << 20;
inline constexpr std::size_t named_bytes_max = std::size_t{32} << 20;

/// Text that is on any Debian machine with a compiler: the licences, Perl's
/// library, the C++ headers, then what else there is, each walked in sorted
/// order and none more than half of the whole.
collection collect_default(std::size_t bytes_max = default_bytes_max);

/// What the user names, in that order; directories are walked, sorted, links
/// not followed. Throws `failure` when a name is missing or cannot be read, or
/// when nothing is left to work on.
collection collect_named(std::span<const std::string> names,
                         std::size_t bytes_max = named_bytes_max);

/// One document as a cell sees it.
struct document {
    std::string_view text;
    format is = format::text;
};

using corpus = std::span<const document>;

/// Writes the collection to memory that has a file descriptor and no name;
/// children inherit it.
int share(const collection&);

/// Maps what `share` wrote, and touches every page of it: reading it later
/// faults nothing in. Stays mapped until the process ends.
std::vector<document> open_shared(int descriptor);

} // namespace mallard::demo

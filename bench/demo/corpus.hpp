// The text that the demo works on. It is collected in a fixed order. All child processes map the
// same memory read-only, so that they read the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mallard::demo {

enum class format : std::uint64_t { text, json };

/// The collected texts, and the files that were left out, with the reasons.
struct collection {
    struct file {
        std::string name;
        std::string text;
        format is = format::text;
    };
    struct place { // a root of the walk, or a name that the user gave
        std::string name;
        std::size_t files = 0;
        std::size_t bytes = 0;
    };

    std::vector<file> files;
    std::vector<place> places;
    std::vector<std::string> notes; ///< "empty.txt: skipped, it is empty"

    std::size_t bytes() const noexcept;
    std::uint64_t fingerprint() const noexcept; ///< equal if the text is the same
};

inline constexpr std::size_t default_bytes_max = std::size_t{5} << 20;
inline constexpr std::size_t named_bytes_max = std::size_t{32} << 20;

/// Collects text that is on any Debian machine with a compiler: the licences, Perl's library, the
/// C++ headers, then other text. Each folder is read in sorted order, and at most half of the whole
/// text comes from one folder.
collection collect_default(std::size_t bytes_max = default_bytes_max);

/// Collects the named files and folders in the given order. Folders are walked in sorted order, and
/// links are not followed. Throws `failure` if a name does not exist or cannot be read, or if no
/// text is found.
collection collect_named(std::span<const std::string> names,
                         std::size_t bytes_max = named_bytes_max);

/// One document, as a child process sees it.
struct document {
    std::string_view text;
    format is = format::text;
};

using corpus = std::span<const document>;

/// Writes the collection to memory that has a file descriptor but no name. Child processes inherit
/// the descriptor.
int share(const collection&);

/// Maps the text that `share` wrote, and touches every page, so that reading it later causes no
/// page fault. The mapping stays until the process ends.
std::vector<document> open_shared(int descriptor);

} // namespace mallard::demo

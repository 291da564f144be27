// The text that the workloads process. It is collected in a fixed order and saved in a file. All
// processes map the same file read-only, so that they read the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mallard::demo {

enum class format : std::uint64_t { text, json };

/// The collected texts.
struct collection {
    struct file {
        std::string name;
        std::string text;
        format is = format::text;
    };

    std::vector<file> files;

    std::size_t bytes() const noexcept;
};

inline constexpr std::size_t default_bytes_max = std::size_t{5} << 20;

/// Collects text that is on any Debian machine with a compiler: the licences, Perl's library, the
/// C++ headers, then other text. Throws `failure` if there is none.
collection collect_default(std::size_t bytes_max = default_bytes_max);

/// Collects the texts below `roots`, in that order. Each directory is read in sorted order, links
/// are not followed, and at most half of the whole text comes from one root. Files that are empty,
/// binary or unreadable are left out. Throws `failure` if there is no text.
collection collect(std::span<const std::string> roots, std::size_t bytes_max);

/// One document, as a workload sees it.
struct document {
    std::string_view text;
    format is = format::text;
};

using corpus = std::span<const document>;

/// Writes the collection to a file. Throws `failure` if the file cannot be written.
void save(const collection&, const std::string& path);

/// Maps the text that `save` wrote, and touches every page, so that reading it later causes no page
/// fault. The mapping stays until the process exits. Throws `failure` if `save` did not write the
/// file.
std::vector<document> open_saved(const std::string& path);

} // namespace mallard::demo

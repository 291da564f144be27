// Describes the interface of a workload, and defines the type of its answer.
#pragma once

#include <bench/demo/corpus.hpp>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

namespace mallard::demo {

/// The answer of a workload. The answer must be the same under every strategy.
struct answer {
    std::uint64_t read = 0;     ///< words, bytes or phrases of the text
    std::uint64_t made = 0;     ///< how many items the structure has
    std::uint64_t found = 0;    ///< how many results the use phase found
    std::uint64_t checksum = 0; ///< checksum of all results and their content

    bool operator==(const answer&) const = default;
};

// A workload is a type with
//
//     static constexpr workload_words words;
//     template <class S> using structure;             a container in S's memory
//     template <class S> static void build(structure<S>&, corpus, answer&);
//     template <class S> static void use(const structure<S>&, corpus, answer&);
//
// S is a strategy, or `counted`. Every element that allocates gets its allocator from the container
// that it is inserted into. So the same code works with all bindings.

/// The words that reports use for a workload. `read`, `made` and `found` are the names of the
/// counts in its `answer`.
struct workload_words {
    std::string_view name, type, read, made, found;
};

/// Returns a sample of whole documents from all parts of the corpus, with about `bytes_max` bytes
/// in total.
inline std::vector<document> sample(corpus all, std::size_t bytes_max)
{
    std::size_t bytes = 0;
    for (const auto& d : all)
        bytes += d.text.size();
    std::size_t const every = std::max((bytes + bytes_max - 1) / bytes_max, std::size_t{1});
    std::vector<document> some;
    for (std::size_t i = 0; i < all.size(); i += every)
        some.push_back(all[i]);
    return some;
}

} // namespace mallard::demo

// Runs a cell, which is one workload under one strategy, once. Each cell is a separate process, so
// that nothing has warmed the caches or used the memory before.
#pragma once

#include <bench/demo/corpus.hpp>
#include <bench/demo/counted.hpp>
#include <bench/demo/workload.hpp>

#include <optional>
#include <span>
#include <string>

namespace mallard::demo {

struct measurement {
    double build = 0; ///< seconds of one round
    double use = 0;
    double destroy = 0; ///< seconds to destroy the structure and the resource
    std::uint64_t peak_rss_kib = 0;
    std::uint64_t after_rss_kib = 0; ///< after everything is destroyed
    answer says;
    std::optional<profile> counts; ///< only from the run that counts allocations

    double seconds() const noexcept { return build + use + destroy; }
};

struct workload_entry {
    workload_words words;
    measurement (*measure)(int strategy, std::uint64_t rounds, corpus all);
};

// The workloads. Each is in a separate translation unit, because each instantiates all its
// templates fifteen times.
workload_entry word_index_entry();
workload_entry parse_tree_entry();
workload_entry phrase_window_entry();

/// Returns all workloads, in the order in which they are printed.
std::span<const workload_entry> workloads();

std::string to_line(const measurement&);
measurement from_line(const std::string&);

} // namespace mallard::demo

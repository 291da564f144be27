// Runs a workload of bench/demo (the suite `demo`) under one strategy.
#pragma once

#include "known.hpp"

#include <bench/demo/corpus.hpp>
#include <bench/demo/strategy.hpp>
#include <bench/demo/workload.hpp>

#include <cstdio>
#include <stdexcept>

namespace known {

/// Builds, uses and destroys the structure of a workload for a corpus. Advice on this program names
/// this function as the region.
template <class Workload, class S>
mallard::demo::answer answer_of(mallard::demo::corpus all)
{
    mallard::demo::answer says;
    typename S::resource_type memory;
    S::template run<typename Workload::template structure<S>>(memory, [&](auto& structure) {
        Workload::template build<S>(structure, all, says);
        Workload::template use<S>(structure, all, says);
    });
    return says;
}

/// Runs a workload `rounds` times. Each round omits another document, so that no two inputs are
/// equal.
template <class Workload, class S>
void run_workload(int rounds)
{
    auto const taken = mallard::demo::collect_default();
    std::uint64_t sum = 0;
    for (int i = 0; i < rounds; ++i) {
        std::vector<mallard::demo::document> documents;
        for (std::size_t d = 0; d < taken.files.size(); ++d)
            if (d != static_cast<std::size_t>(i) % taken.files.size())
                documents.push_back({taken.files[d].text, taken.files[d].is});
        sum = sum * 31 + answer_of<Workload, S>(documents).checksum;
    }
    print(sum);
}

/// Runs a workload, as the main function of a program.
template <class Workload, class S>
int main_of(int count, char** arguments, int usual)
{
    try {
        run_workload<Workload, S>(rounds(count, arguments, usual));
        return 0;
    } catch (const std::runtime_error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 2;
    }
}

} // namespace known

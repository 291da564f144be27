// What a person reads, and what a program reads.
#pragma once

#include <bench/demo/advice.hpp>
#include <bench/demo/corpus.hpp>
#include <bench/support/row.hpp>

#include <vector>

namespace mallard::demo {

/// A workload whose every strategy ran at least once, and what it says.
struct finding {
    const series* measured;
    advice advised;
};

void print_opening(const collection&, const bench::provenance&);
void print_finding(const finding&);

/// One line a workload, and why fewer runs were done than planned.
void print_closing(const std::vector<finding>&, const session&, std::size_t runs_planned);

/// A row for each workload, strategy and metric, and at last one object:
/// {"recommendation": [...], "text": {...}, ...}.
void print_json(const std::vector<finding>&, const session&, const collection&,
                const bench::provenance&);

} // namespace mallard::demo

// Prints reports for people and for programs.
#pragma once

#include <bench/demo/advice.hpp>
#include <bench/demo/corpus.hpp>
#include <bench/support/row.hpp>

#include <vector>

namespace mallard::demo {

/// The results of a workload for which every strategy ran at least once, and the advice for it.
struct finding {
    const series* measured;
    advice advised;
};

void print_opening(const collection&, const bench::provenance&);
void print_finding(const finding&);

/// Prints one line for each workload, and the reason if there were fewer runs than planned.
void print_closing(const std::vector<finding>&, const session&, std::size_t runs_planned);

/// Prints a row for each workload, strategy and metric, and then one object: {"recommendation":
/// [...], "text": {...}, ...}.
void print_json(const std::vector<finding>&, const session&, const collection&,
                const bench::provenance&);

} // namespace mallard::demo

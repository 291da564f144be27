//! Makes docs/performance.md, which has the answers on one page.

use super::losses::Groups;
use super::mallocs::Mallocs;
use super::names::known_as;
use super::{local, sentences};
use crate::markdown::{escaped, item, table, wrapped};
use crate::report::markdown::FIRST;
use crate::rows::experiment::Machine;
use crate::tables::{Cell, Table};
use std::collections::BTreeSet;

const READING: &str = "A figure is a ratio: the time or memory that a program or a call needs with one allocator, divided by \
    what it needs with another. Below 1 is less time or memory, which is better. A *peer* is another project's \
    allocator. Mallocs are compared with mallocs, and local allocators (arenas and pools) with local allocators for the same \
    need. `./x bench report` also writes all figures, with spreads, commands and commits, to `build/performance.html` \
    and, as text, to `build/performance.md`. The guide explains [how to run and read the \
    benchmarks](guide/benchmarks.md).";

/// Makes the page.
pub fn render(machines: &[Machine], mallocs: &Mallocs) -> String {
    let mut text = format!("{FIRST}\n\n# Performance\n\n");
    for sentence in sentences(machines, mallocs) {
        text += &item(&sentence);
    }
    text += &format!("\n{}", wrapped(READING));
    text += &malloc(mallocs);
    if let Some(found) = local::table(machines) {
        text += "\n## Local allocators against local allocators\n\n";
        text += &wrapped(
            "The time that Mallard's allocator needs, divided by the time that the named peer needs. A cell names the two \
             fastest peers. Figures are geometric means over the cases that both allocators have.",
        );
        text += &table(&found, "Local allocators");
        text += &local::programs(machines).map_or(String::new(), |p| format!("\n{}", wrapped(&p)));
    }
    text + &losses(machines) + &measured(machines)
}

fn malloc(mallocs: &Mallocs) -> String {
    let Some(standings) = mallocs.standings() else { return String::new() };
    let left: Vec<String> = mallocs.left_out().iter().map(|c| known_as(c)).collect();
    let left = match left.is_empty() {
        true => String::new(),
        false => format!(" The HTML page also has {}.", left.join(", ")),
    };
    let text = wrapped(&format!(
        "Figures are relative to glibc's malloc, which is 1, and are geometric means. \"Programs\" are whole \
         programs. \"Calls\" are benchmarks that only call malloc and free, in four kinds with equal weight: pairs (each \
         block is freed right after it is allocated), bulk, mixes of sizes, and threads. If several versions of a library were \
         measured, this page has the version with which programs need the shortest time. Each column's smallest figure is bold.{left}"
    ));
    let each = mallocs.each_program().map_or(String::new(), |(machine, each)| {
        let title = format!("\n**Each program on {}: CPU time / peak memory**\n", machine.common);
        title + &table(&each, "Each program")
    });
    let title = &standings.title;
    format!("\n## {title}\n\n{text}{}{each}", table(&standings, title))
}

fn losses(machines: &[Machine]) -> String {
    let found = Groups::of(machines).table(machines.len() > 1, false);
    if found.is_empty() {
        return String::new();
    }
    let text = wrapped(
        "In each case, a Mallard allocator is compared with the best peer. Mallard loses a \
         figure if its median is over 3 % higher and the ranges do not overlap, or over 10 % higher if one figure comes \
         from a single run. The ratio is Mallard's figure divided by the peer's, as the median and the maximum over the \
         lost figures. Memory is the peak RSS, and, in some suites, also the RSS after all \
         blocks are freed. That RSS is large for an allocator that keeps its memory.",
    );
    format!("\n## Where Mallard loses\n\n{text}{}", table(&found, "Where Mallard loses, grouped"))
}

/// Returns the name of a machine as its results contain it, but without the kernel, which may
/// change.
fn without_kernel(machine: &Machine) -> &str {
    machine.name.split(", Linux").next().unwrap_or_default()
}

/// Groups the machines that have the same name, whatever their kernels are.
fn by_name(machines: &[Machine]) -> Vec<Vec<&Machine>> {
    let mut groups: Vec<Vec<&Machine>> = Vec::new();
    for machine in machines {
        let is_same = |group: &&mut Vec<&Machine>| {
            group[0].common == machine.common && without_kernel(group[0]) == without_kernel(machine)
        };
        match groups.iter_mut().find(is_same) {
            Some(group) => group.push(machine),
            None => groups.push(vec![machine]),
        }
    }
    groups
}

/// Lists the machines, and the measured commits that are not in the history.
fn measured(machines: &[Machine]) -> String {
    let mut found = Table::new("Machines", &["name", "name in the results"])
        .columns(["identified by", "suites", "results"].map(str::to_string));
    for same in by_name(machines) {
        let suites: BTreeSet<&str> = same.iter().flat_map(|m| m.suites()).collect();
        let rows: usize = same.iter().flat_map(|m| &m.experiments).map(|e| e.rows.len()).sum();
        let cells = [&same[0].known_by, &suites.len().to_string(), &rows.to_string()];
        let cells = cells.into_iter().map(Cell::text).collect();
        found.line(vec![same[0].common.clone(), without_kernel(same[0]).to_string()], cells);
    }
    let mut text = format!("\n## Machines\n{}", table(&found.without_empty_columns(), "Machines"));
    let lost: BTreeSet<&String> = machines.iter().flat_map(|m| &m.lost_commits).collect();
    if !lost.is_empty() {
        let names = lost.iter().map(|c| format!("{} (not in this repository)", escaped(c)));
        let names: Vec<String> = names.collect();
        text += &format!(
            "\n{}",
            wrapped(&format!(
                "Some results were measured at commits that are not in this repository's history, so the measured \
                 code cannot be built again: {}.",
                names.join(", ")
            ))
        );
    }
    text
}

//! Makes docs/performance.md, which has the answers on one page.

use super::losses::Groups;
use super::mallocs::Mallocs;
use super::names::known_as;
use super::{local, sentences};
use crate::markdown::{escaped, table, wrapped};
use crate::report::markdown::FIRST;
use crate::rows::experiment::Machine;
use crate::tables::{Cell, Table};
use std::collections::BTreeSet;

const READING: &str = "A figure says what an allocator takes where another takes 1: below 1 is less, and less is \
    better. Mallocs are compared with mallocs, and local allocators with local allocators of the same kind. All figures, \
    with spreads, commands and commits, are on the page that `./x bench report` writes, `build/performance.html`, and as \
    text in `build/performance.md`. The guide says [how to run and read the benchmarks](guide/benchmarks.md).";

/// Makes the page.
pub fn render(machines: &[Machine], mallocs: &Mallocs) -> String {
    let mut text = format!("{FIRST}\n\n# Performance\n\n");
    for sentence in sentences(machines, mallocs) {
        text += &format!("- {}", wrapped(&sentence).replace('\n', "\n  ").trim_end());
        text.push('\n');
    }
    text += &format!("\n{}", wrapped(READING));
    text += &malloc(mallocs);
    if let Some(found) = local::table(machines) {
        text += "\n## Local allocators against local allocators\n\n";
        text += &wrapped(
            "What Mallard takes where the peer takes 1, for the two peers that are closest to Mallard or ahead of it. \
             Means over the cases that both have.",
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
        "glibc's malloc is 1. Whole programs stand beside calls of malloc and free, where pairs (a block is freed \
         right after it was taken), bulk, mixes of sizes, and threads have equal weight. Of several versions of a \
         library, this page has the one that takes the least time in programs. Bold is the least figure.{left}"
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
        "One allocator of Mallard stands against the best peer of each case. A figure is lost if that peer takes \
         less, and the ranges of the runs do not overlap.",
    );
    format!(
        "\n## Where it loses, grouped\n\n{text}{}",
        table(&found, "Where Mallard loses, grouped")
    )
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

/// Lists the machines, and the commits that the history no longer has.
fn measured(machines: &[Machine]) -> String {
    let mut found = Table::new("Machines", &["name", "as its rows name it"])
        .columns(["known by", "suites", "rows"].map(str::to_string));
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
                "Some rows name commits that history no longer has: {}.",
                names.join(", ")
            ))
        );
    }
    text
}

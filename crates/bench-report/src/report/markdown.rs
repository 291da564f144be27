//! The report as a Markdown page, for a code hosting site.

use super::sections::{Block, Section, Where};
use crate::markdown::{self, escaped, wrapped};
use crate::rows::experiment::Machine;
use std::collections::BTreeMap;

/// The first line, which warns that the page is generated, and names the command that generates it.
pub const FIRST: &str =
    "<!-- Generated from the results in results/ and the figures in bench/published: do not edit. \
    To generate it again: ./x bench report -->";

/// Paragraphs that explain how to read the page. The HTML page has the same text.
pub const READING: &[&str] = &[
    "Every figure is computed from benchmark results, and lower is better for all of them. \
     A result has the median of its runs, the 10th and the 90th percentile, and the command, commit and machine. The allocator or tool `mallard/...` belongs to this project, `limit/...` is a bound written by hand, and the others \
     are peers (from other projects) with their default settings. A memory figure is for one process. The tables state \
     if a benchmark's work was divided by 2^N, and if a figure comes from a single run. *FAIL* means that the process ran out of memory. *FAIL, computed* means that \
     the case was not run, because it would need more memory than the limit.",
    "*Faithful* results follow the published benchmark, including its errors. *Corrected* results are without these \
     errors; if a case has both, the answers here use the corrected results. Published figures are in parentheses. They were \
     measured on hardware from 2015, so compare only patterns with them; compare times with peers in the same run.",
];

pub fn render(lead: &Section, machines: &[(&Machine, Vec<Section>)]) -> String {
    let mut text = format!("{FIRST}\n\n# Performance\n\n");
    for paragraph in READING {
        text += &wrapped(paragraph);
        text.push('\n');
    }
    text += &wrapped(
        "This page has all answers as text. docs/performance.md is the short page. The file performance.html in this \
         directory has all tables, heat maps and curves, with filters. docs/guide/benchmarks.md explains how to run and \
         read the benchmarks.",
    );
    if lead.is_for(Where::Markdown) {
        text += render_section(lead).replacen("###", "##", 1).as_str();
    }
    for (machine, sections) in machines {
        text += &format!("\n## {}\n", escaped(&machine.heading()));
        if let Some(lost) = lost_commits(machine) {
            text += &format!("\n{}", wrapped(&lost));
        }
        for section in sections.iter().filter(|s| s.is_for(Where::Markdown)) {
            text += &render_section(section);
        }
        text += &measured(machine);
    }
    text
}

fn render_section(section: &Section) -> String {
    let mut text = format!("\n### {}\n", section.title);
    for block in &section.blocks {
        match block {
            Block::Text(paragraph) => text += &format!("\n{}", wrapped(paragraph)),
            Block::Table(Where::Page, _) | Block::Caption(_) | Block::Chart(_) => {}
            Block::Table(_, table) => text += &markdown::table(table, &section.title),
        }
    }
    text
}

/// Returns the section with the commands and commits of all results.
pub fn measured(machine: &Machine) -> String {
    let mut text = format!("\n### How it was measured\n\n{}\n", wrapped(&escaped(&machine.name)));
    text += "| suite | results | command | commit |\n|---|---:|---|---|\n";
    for (suite, command, commit, rows) in runs(machine) {
        let command = command.replace('|', "\\|");
        text += &format!("| {suite} | {rows} | `{command}` | {commit} |\n");
    }
    text
}

/// Returns a sentence about results whose commits are not in the repository, if there are any.
pub fn lost_commits(machine: &Machine) -> Option<String> {
    let rows = || machine.experiments.iter().flat_map(|e| &e.rows);
    let lost = rows().filter(|r| machine.lost_commits.contains(&r.commit)).count();
    let names: Vec<&str> = machine.lost_commits.iter().map(String::as_str).collect();
    (lost > 0).then(|| {
        format!(
            "{lost} of this machine's {} results were measured at commits that are not in this repository's \
             history ({}), so the measured code cannot be built again.",
            rows().count(),
            names.join(", ")
        )
    })
}

/// Returns the suite, the command, the commit, and the number of results of each run.
pub fn runs(machine: &Machine) -> Vec<(String, String, String, usize)> {
    let mut runs: BTreeMap<(usize, String, String), usize> = BTreeMap::new();
    let suites = machine.suites();
    for row in machine.experiments.iter().flat_map(|e| &e.rows) {
        let place = suites.iter().position(|s| *s == row.suite).unwrap_or(0);
        *runs.entry((place, row.command.clone(), row.commit.clone())).or_default() += 1;
    }
    let named = |((place, command, commit), rows): ((usize, String, String), usize)| {
        let lost =
            if machine.lost_commits.contains(&commit) { " (not in this repository)" } else { "" };
        (suites[place].to_string(), command, commit + lost, rows)
    };
    runs.into_iter().map(named).collect()
}

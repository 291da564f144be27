//! The report as a Markdown page, for a code hosting site.

use super::sections::{Block, Section, Where};
use crate::markdown::{self, escaped, wrapped};
use crate::rows::experiment::Machine;
use std::collections::BTreeMap;

/// The first line, which warns that the page is generated, and names the command that generates it.
pub const FIRST: &str =
    "<!-- Generated from the rows in results/ and the figures in bench/published: do not edit. \
    To make it again: ./x bench report -->";

/// Paragraphs that explain how to read the page. The HTML page has the same text.
pub const READING: &[&str] = &[
    "Every figure is computed from rows that a benchmark wrote; lower is better for all of them. \
     A row has the median of its runs with the 10th and 90th percentile, and the command, commit and machine that made it. \
     Contenders `mallard/...` are ours, `limit/...` are bounds written by hand, the others are peers with their versions, \
     as they come. A figure of memory is of one process. Where the work of a benchmark was divided by 2^N, and where a \
     figure is of one run, it says so. *FAIL* ran out of memory; *FAIL, computed* was not run, since it would hold more than \
     it may by arithmetic alone.",
    "*Faithful* rows follow the published recipe, its traps included; *corrected* rows repair what the recipe \
     gets wrong, and are what the answers here go by where there are both. Published figures are in parentheses: \
     they are of 2015's hardware, so compare shapes with them, and times with the peers of the same run.",
];

pub fn render(lead: &Section, machines: &[(&Machine, Vec<Section>)]) -> String {
    let mut text = format!("{FIRST}\n\n# Performance\n\n");
    for paragraph in READING {
        text += &wrapped(paragraph);
        text.push('\n');
    }
    text += &wrapped(
        "This is the text of all answers. docs/performance.md is the short page, and performance.html beside this file has \
         all tables, heat maps and curves, with filters. docs/guide/benchmarks.md says how to run and read the benchmarks.",
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
    text += "| suite | rows | command | commit |\n|---|---:|---|---|\n";
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
            "{lost} of the {} rows of this machine name commits that are not in this repository ({}): \
             what they measured cannot be built again.",
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

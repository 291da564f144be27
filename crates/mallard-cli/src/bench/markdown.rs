//! The page as Markdown, for a forge.

use super::experiment::Machine;
use super::sections::{Block, Section, Where};
use super::table::{Cell, Table};
use std::collections::BTreeMap;

/// The first line says that it is generated, and by what.
pub const FIRST: &str =
    "<!-- Generated from the rows in results/ and the figures in bench/published: do not edit. \
    To make it again: ./x bench report -->";

/// How to read it, on both pages.
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
        "All tables, heat maps, curves and the filters for them are on the page that `./x bench report` \
         writes to `build/performance.html`. The guide says [how to run and read the benchmarks](guide/benchmarks.md).",
    );
    if lead.is_for(Where::Markdown) {
        text += render_section(lead).replacen("###", "##", 1).as_str();
    }
    for (machine, sections) in machines {
        text += &format!("\n## {}\n", escaped(&machine.title));
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
            Block::Table(Where::Page, _) | Block::Chart(_) => {}
            Block::Table(_, table) => text += &render_table(table, &section.title),
        }
    }
    text
}

fn render_table(table: &Table, above: &str) -> String {
    let mut text = String::from("\n");
    if table.title != above {
        text += &format!("**{}**\n\n", escaped(&table.title));
    }
    let heads = table.heads.iter().map(|h| escaped(h));
    let titles = heads.chain(table.columns.iter().map(|c| escaped(&c.title)));
    text += &format!("| {} |\n", titles.collect::<Vec<_>>().join(" | "));
    let left = table.heads.iter().map(|_| "---");
    let align = if table.is_prose { "---" } else { "---:" };
    let rules = left.chain(table.columns.iter().map(|_| align));
    text += &format!("|{}|\n", rules.collect::<Vec<_>>().join("|"));
    for line in &table.lines {
        let cells = line.heads.iter().map(|h| escaped(h)).chain(line.cells.iter().map(cell));
        text += &format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "));
    }
    for note in &table.notes {
        text += &format!("\n{}", wrapped(&escaped(note)));
    }
    text
}

fn cell(cell: &Cell) -> String {
    let text = escaped(&cell.text);
    let text = if cell.best { format!("**{text}**") } else { text };
    match (text.is_empty(), cell.published.is_empty()) {
        (_, true) => text,
        (true, false) => format!("({})", escaped(&cell.published)),
        (false, false) => format!("{text} ({})", escaped(&cell.published)),
    }
}

/// What was measured when, and how to do it again.
fn measured(machine: &Machine) -> String {
    let mut text = format!("\n### How it was measured\n\n{}\n", wrapped(&escaped(&machine.name)));
    text += "| suite | rows | command | commit |\n|---|---:|---|---|\n";
    for (suite, command, commit, rows) in runs(machine) {
        text += &format!("| {suite} | {rows} | `{command}` | {commit} |\n");
    }
    text
}

/// A sentence about rows that nobody can measure again as they were, if there are any.
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

/// Suite, command, commit and how many rows are of it.
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

/// What Markdown would read as something else.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '|' | '*' | '~' => out.extend(['\\', c]),
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '\n' => out.push(' '),
            _ => out.push(c),
        }
    }
    out
}

/// Lines of a hundred columns.
fn wrapped(text: &str) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > 100 {
            out.push('\n');
            column = 0;
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out += word;
        column += length;
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_cannot_break_its_table() {
        let table = {
            let mut t = Table::new("t", &["a|b"]).columns(["vector<int>".into()]);
            t.line(vec!["x".into()], vec![Cell::text("1 | 2").published("3")]);
            t
        };
        let text = render_table(&table, "t");
        assert!(text.contains("| a\\|b | vector&lt;int&gt; |"), "{text}");
        assert!(text.contains("| x | 1 \\| 2 (3) |"), "{text}");
    }

    #[test]
    fn lines_of_prose_are_short() {
        assert!(wrapped(&"word ".repeat(100)).lines().all(|l| l.len() <= 100));
    }
}

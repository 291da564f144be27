//! The page as one HTML file that asks the network for nothing.

use super::charts::Charts;
use super::experiment::{Kind, Machine};
use super::markdown::{lost_commits, runs, READING};
use super::sections::{Block, Section, Where};
use super::table::{Cell, Table, FACETS};
use maud::{html, Markup, PreEscaped, DOCTYPE};
use std::collections::BTreeSet;

const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");
/// Neither the page nor the library in it may load anything.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

pub fn render(
    machines: &[(&Machine, Vec<Section>)],
    charts: &Charts,
    library: Option<&str>,
) -> String {
    let names = Names::of(machines);
    let title = "Mallard: performance";
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                link rel="icon" href="data:,";
                title { (title) }
                style { (PreEscaped(STYLE)) }
                style id="filtered" {}
            }
            body.published {
                header {
                    h1 { (title) }
                    p { "Which allocator for which situation, what it gains, and when it does not: computed from measurements." }
                    details {
                        summary { "How to read this page" }
                        @for paragraph in READING { p { (paragraph.replace(['`', '*'], "")) } }
                        p { "In tables: blue is better than glibc (or, without it, than the best peer), orange worse; a bold figure is the best of its line. A title sorts." }
                    }
                }
                (controls(machines))
                main {
                    @for (index, (machine, sections)) in machines.iter().enumerate() {
                        (one(index, machine, sections, &names))
                    }
                }
                script id="data" type="application/json" { (PreEscaped(data(&names, charts))) }
                @if let Some(library) = library {
                    script { (PreEscaped(inert(library))) }
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
    .into_string()
}

/// A script must not contain its own end.
fn inert(script: &str) -> String {
    script.replace("</script", "<\\/script")
}

fn data(names: &Names, charts: &Charts) -> String {
    let json = serde_json::json!({"contenders": names.0, "charts": charts});
    // In a string of JSON the only place where it can be; a script must not contain a tag.
    json.to_string().replace('<', "\\u003c")
}

/// Contenders by number: the class `c7` of a cell is what a filter hides.
struct Names(Vec<String>);

impl Names {
    fn of(machines: &[(&Machine, Vec<Section>)]) -> Names {
        let blocks = machines.iter().flat_map(|(_, sections)| sections).flat_map(|s| &s.blocks);
        let mut all = BTreeSet::new();
        for block in blocks {
            let Block::Table(_, table) = block else { continue };
            all.extend(table.columns.iter().filter_map(|c| c.contender.clone()));
            all.extend(table.lines.iter().filter_map(|l| l.contender.clone()));
        }
        Names(all.into_iter().collect())
    }

    fn class(&self, contender: &Option<String>) -> Option<String> {
        let place = self.0.binary_search(contender.as_ref()?).ok()?;
        Some(format!("c{place}"))
    }
}

fn controls(machines: &[(&Machine, Vec<Section>)]) -> Markup {
    html! {
        form.controls aria-label="What is shown" {
            label { "machine " select id="machine" {
                @for (index, (machine, _)) in machines.iter().enumerate() {
                    option value=(index) { (machine.title) }
                }
            } }
            label { "recipe " select id="variant" {
                @for variant in FACETS {
                    option value=(variant) { (variant) }
                }
            } }
            label { "figure " select id="kind" {
                option value="time" { "time" }
                option value="memory" { "peak RSS" }
                option value="other" { "faults and others" }
            } }
            label { "contenders " input id="filter" type="search" placeholder="AS7 mimalloc" size="14"; }
            label { input id="published" type="checkbox" checked; " published" }
            label { input id="ratio" type="checkbox"; " ratio" }
            label { input id="spread" type="checkbox"; " spread" }
            button id="theme" type="button" { "dark / light" }
        }
    }
}

fn one(index: usize, machine: &Machine, sections: &[Section], names: &Names) -> Markup {
    let id = |section: &Section| format!("m{index}-{}", section.id);
    let shown: Vec<&Section> = sections.iter().filter(|s| s.is_for(Where::Page)).collect();
    html! {
        div.machine data-machine=(index) {
            h2 { (machine.title) }
            @if let Some(lost) = lost_commits(machine) { p { (lost) } }
            nav aria-label="Sections" {
                @for section in &shown { a href={ "#" (id(section)) } { (section.title) } " " }
            }
            @for section in &shown {
                @if section.folded {
                    details.section id=(id(section)) {
                        summary { h3 { (section.title) } }
                        (blocks(section, names))
                    }
                } @else {
                    section.section id=(id(section)) {
                        h3 { (section.title) }
                        (blocks(section, names))
                    }
                }
            }
            (measured(index, machine))
        }
    }
}

fn blocks(section: &Section, names: &Names) -> Markup {
    html! {
        div.blocks {
            @for block in &section.blocks {
                @match block {
                    Block::Text(text) => p { (text) },
                    Block::Table(Where::Markdown, _) => {},
                    Block::Table(_, table) => (one_table(table, &section.title, names)),
                    Block::Chart(name) => (chart(name)),
                }
            }
        }
        p.none hidden { "Nothing of this section was measured in this choice: another recipe or figure above has it." }
    }
}

fn chart(name: &str) -> Markup {
    html! {
        div.chart data-chart=(name) {
            label { "show " select {} }
            div.canvas { canvas role="img" aria-label=(name) {} }
            p.missing hidden { "There is no drawing: Chart.js was not there when this page was made, or nothing is to be drawn in this choice." }
            details { summary { "the figures" } div.scroll tabindex="0" role="region" aria-label="the figures" { table {} } }
        }
    }
}

fn one_table(table: &Table, above: &str, names: &Names) -> Markup {
    let kind = table.kind.map_or("", Kind::name);
    html! {
        figure.t.prose[table.is_prose] data-variant=[not_empty(&table.variant)] data-kind=[not_empty(kind)] {
            @if table.title != above { figcaption { h4 { (table.title) } } }
            div.scroll tabindex="0" role="region" aria-label=(table.title) {
                table {
                    thead { tr {
                        @for head in &table.heads { th.h scope="col" tabindex="0" { (head) } }
                        @for column in &table.columns {
                            th.(names.class(&column.contender).unwrap_or_default()) scope="col" tabindex="0" title=[column.contender.as_deref()] { (breakable(&column.title)) }
                        }
                    } }
                    tbody {
                        @for line in &table.lines {
                            tr.(names.class(&line.contender).unwrap_or_default()) {
                                @for head in &line.heads { th scope="row" { (head) } }
                                @for (place, cell) in line.cells.iter().enumerate() {
                                    (one_cell(cell, table, place, names))
                                }
                            }
                        }
                    }
                }
            }
            @for note in &table.notes { p.note { (note) } }
            @if !table.made_by.is_empty() {
                p.note { "Made by " @for (index, by) in table.made_by.iter().enumerate() { @if index > 0 { "; " } code { (by) } } }
            }
        }
    }
}

/// A browser breaks a long name at its slashes only if told to.
fn breakable(name: &str) -> Markup {
    html! {
        @for (index, part) in name.split('/').enumerate() {
            @if index > 0 { "/" wbr; }
            (part)
        }
    }
}

fn one_cell(cell: &Cell, table: &Table, place: usize, names: &Names) -> Markup {
    let column = table.columns.get(place);
    let mut class: Vec<String> =
        column.and_then(|c| names.class(&c.contender)).into_iter().collect();
    match cell.shade {
        0 => {}
        shade if shade > 0 => class.push(format!("g{shade}")),
        shade => class.push(format!("b{}", -shade)),
    }
    if cell.best {
        class.push("best".to_string());
    }
    let class = class.join(" ");
    let label = column.map(|c| c.title.as_str()).filter(|_| table.is_prose);
    html! {
        td class=[not_empty(&class)] data-l=[label.filter(|l| !l.is_empty() && !cell.is_empty())]
            data-r=[not_empty(&cell.ratio)] data-s=[not_empty(&cell.spread)] {
            (cell.text)
            @if !cell.published.is_empty() { small { (cell.published) } }
        }
    }
}

fn not_empty(text: &str) -> Option<&str> {
    Some(text).filter(|t| !t.is_empty())
}

fn measured(index: usize, machine: &Machine) -> Markup {
    html! {
        section.section id={ "m" (index) "-measured" } {
            h3 { "How it was measured" }
            p { (machine.name) }
            div.scroll tabindex="0" role="region" aria-label="How it was measured" {
                table {
                    thead { tr { @for title in ["suite", "rows", "command", "commit"] { th scope="col" tabindex="0" { (title) } } } }
                    tbody {
                        @for (suite, command, commit, rows) in runs(machine) {
                            tr { th scope="row" { (suite) } td { (rows) } td { code { (command) } } td { (commit) } }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_does_not_end_early() {
        assert!(!inert("x</script>y").contains("</script"));
    }
}

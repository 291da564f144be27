//! The report as one HTML file that loads nothing from the network.

use super::charts::Charts;
use super::markdown::{lost_commits, runs, READING};
use super::sections::{Block, Section, Where};
use crate::output::html::{self, inert, Contenders, POLICY};
use crate::rows::cases::FACETS;
use crate::rows::experiment::Machine;
use maud::{html, Markup, PreEscaped, DOCTYPE};

const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");
pub fn render(
    machines: &[(&Machine, Vec<Section>)],
    charts: &Charts,
    library: Option<&str>,
) -> String {
    let tables =
        machines.iter().flat_map(|(_, sections)| sections).flat_map(Section::tables_of_page);
    let names = Contenders::of(tables);
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

fn data(names: &Contenders, charts: &Charts) -> String {
    let json = serde_json::json!({"contenders": names.0, "charts": charts});
    // A script must not contain a tag. In JSON, `<` can occur only in strings, where it can be escaped.
    json.to_string().replace('<', "\\u003c")
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

fn one(index: usize, machine: &Machine, sections: &[Section], names: &Contenders) -> Markup {
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

fn blocks(section: &Section, names: &Contenders) -> Markup {
    html! {
        div.blocks {
            @for block in &section.blocks {
                @match block {
                    Block::Text(text) => p { (text) },
                    Block::Table(Where::Markdown, _) => {},
                    Block::Table(_, table) => (html::table(table, &section.title, names)),
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

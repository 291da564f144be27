//! The report as one HTML file that loads nothing from the network.

use super::charts::Charts;
use super::markdown::{lost_commits, runs, READING};
use super::sections::{Block, Section, Where};
use crate::output::html::{self, Contenders};
use crate::output::page::{theme_button, Page};
use crate::rows::cases::FACETS;
use crate::rows::experiment::Machine;
use maud::{html, Markup};

const TITLE: &str = "Mallard: performance";
const STYLE: &str = include_str!("page/page.css");
const SCRIPTS: [&str; 2] = [include_str!("page/scatter.js"), include_str!("page/page.js")];

/// Makes the page. `chart_js` is the text of Chart.js; without it the page has tables and no curves.
pub fn render(
    machines: &[(&Machine, Vec<Section>)],
    charts: &Charts,
    chart_js: Option<&str>,
) -> String {
    let tables =
        machines.iter().flat_map(|(_, sections)| sections).flat_map(Section::tables_of_page);
    let names = Contenders::of(tables);
    let data = serde_json::json!({"contenders": names.0, "charts": charts}).to_string();
    Page {
        title: TITLE,
        made_by: "mallard bench report",
        styles: &[STYLE],
        class: "published",
        body: body(machines, &names),
        data: &data,
        chart_js,
        scripts: &SCRIPTS,
    }
    .render()
}

fn body(machines: &[(&Machine, Vec<Section>)], names: &Contenders) -> Markup {
    html! {
        style id="filtered" {}
        header {
            h1 { (TITLE) }
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
                (one(index, machine, sections, names))
            }
        }
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
            (theme_button())
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
                    Block::Caption(text) => p { (text) },
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
            p.missing hidden { "There is no drawing: Chart.js was not there when mallard was built, or nothing is to be drawn in this choice." }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_without_chart_js_is_whole() {
        let text = render(&[], &Charts::default(), None);
        assert!(text.contains("</html>") && !text.contains("chart-js"), "{text}");
        assert!(render(&[], &Charts::default(), Some("of Chart.js")).contains("of Chart.js"));
    }
}

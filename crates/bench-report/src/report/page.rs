//! The report as one HTML file that loads nothing from the network.

use super::charts::Charts;
use super::markdown::{lost_commits, runs, READING};
use super::pack::packed;
use super::sections::{Block, Section, Where};
use super::short::versus::{OnMachine, TITLES};
use crate::html::{self, Contenders};
use crate::rows::cases::FACETS;
use crate::rows::experiment::Machine;
use mallard_page::{theme_button, Page};
use maud::{html, Markup, PreEscaped};

const TITLE: &str = "Mallard: performance";
const STYLE: &str = include_str!("page/page.css");
const SCRIPTS: [&str; 4] = [
    include_str!("page/scatter.js"),
    include_str!("page/versus.js"),
    include_str!("page/unpack.js"),
    include_str!("page/page.js"),
];

/// The content of the first screen: sentences, and Mallard compared with each malloc.
pub struct First {
    pub sentences: Vec<String>,
    pub versus: Vec<OnMachine>,
}

/// Makes the page. `chart_js` is the text of Chart.js. Without Chart.js, the page has tables but no
/// curves.
pub fn render(
    first: &First,
    machines: &[(&Machine, Vec<Section>)],
    charts: &Charts,
    chart_js: Option<&str>,
) -> String {
    let tables =
        machines.iter().flat_map(|(_, sections)| sections).flat_map(Section::tables_of_page);
    let names = Contenders::of(tables);
    let data = serde_json::json!({
        "contenders": names.0, "charts": charts, "versus": first.versus, "parts": TITLES
    });
    Page {
        title: TITLE,
        made_by: "./x bench report",
        styles: &[STYLE],
        class: "published",
        body: body(first, machines, &names),
        data: &data.to_string(),
        chart_js,
        scripts: &SCRIPTS,
    }
    .render()
}

fn body(first: &First, machines: &[(&Machine, Vec<Section>)], names: &Contenders) -> Markup {
    html! {
        style id="filtered" {}
        header {
            h1 { (TITLE) }
            ul.answers { @for sentence in &first.sentences { li { (sentence) } } }
            (question(machines))
        }
        main {
            div.room {
                section id="versus" {
                    h2 { "Mallard's malloc against other mallocs" }
                    p id="said" aria-live="polite" {}
                    div id="versus-bars" {}
                }
                noscript { p { "Charts and tables need JavaScript. The file performance.md in the same directory has all tables as text." } }
                h2 id="tables" { "All tables" }
                details {
                    summary { "How to read the tables" }
                    @for paragraph in READING { p { (paragraph.replace(['`', '*'], "")) } }
                    p { "In tables: blue is better than glibc (or than the best peer, if glibc was not measured), and orange is worse. A bold figure is the best of its line. Click a column title to sort." }
                }
            }
            (controls())
            div.room {
                @for (index, (machine, sections)) in machines.iter().enumerate() {
                    (one(index, machine, sections, names))
                }
            }
        }
    }
}

/// Renders the two selectors at the top of the page, for a machine and for a malloc.
fn question(machines: &[(&Machine, Vec<Section>)]) -> Markup {
    html! {
        form.question aria-label="What is compared" {
            label { "machine " select id="machine" {
                @for (index, (machine, _)) in machines.iter().enumerate() {
                    option value=(index) title=(machine.title) { (machine.common) }
                }
            } }
            label { "Mallard against " select id="peer" { option value="" { "every malloc" } } }
            (theme_button())
        }
    }
}

/// Renders the selectors for the tables below them.
fn controls() -> Markup {
    html! {
        form.controls aria-label="What is shown" {
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
            p id="unmatched" role="status" hidden {}
        }
    }
}

fn one(index: usize, machine: &Machine, sections: &[Section], names: &Contenders) -> Markup {
    let id = |section: &Section| format!("m{index}-{}", section.id);
    let shown: Vec<&Section> = sections.iter().filter(|s| s.is_for(Where::Page)).collect();
    html! {
        div.machine data-machine=(index) {
            h2 { (machine.heading()) }
            @if let Some(lost) = lost_commits(machine) { p { (lost) } }
            nav aria-label="Sections" {
                @for section in &shown { a href={ "#" (id(section)) } { (section.title) } " " }
            }
            @for section in &shown {
                @if section.folded {
                    (folded(&id(section), &section.title, blocks(section, names)))
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

/// Renders a section as compressed data. The section is closed when the page opens.
fn folded(id: &str, title: &str, content: Markup) -> Markup {
    html! {
        details.section id=(id) data-packed="" {
            summary { h3 { (title) } }
            script.packed type="text/plain" { (PreEscaped(packed(&content.into_string()))) }
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
        p.none hidden { "This section has nothing for the selected recipe and figure: select others above." }
    }
}

fn chart(name: &str) -> Markup {
    html! {
        div.chart data-chart=(name) {
            label { "show " select {} }
            div.canvas { canvas role="img" aria-label=(name) {} }
            p.missing hidden { "There is no chart: Chart.js was missing when mallard was built, or the selection above has no figures." }
            details { summary { "the figures" } div.scroll tabindex="0" role="region" aria-label="the figures" { table {} } }
        }
    }
}

/// Renders the commands and commits of all results of a machine.
fn measured(index: usize, machine: &Machine) -> Markup {
    let table = html! {
        p { (machine.name) }
        div.scroll tabindex="0" role="region" aria-label="How it was measured" {
            table {
                thead { tr { @for title in ["suite", "results", "command", "commit"] { th scope="col" tabindex="0" { (title) } } } }
                tbody {
                    @for (suite, command, commit, rows) in runs(machine) {
                        tr { th scope="row" { (suite) } td { (rows) } td { code { (command) } } td { (commit) } }
                    }
                }
            }
        }
    };
    folded(&format!("m{index}-measured"), "How it was measured", table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_without_chart_js_is_complete() {
        let first = First { sentences: vec!["One <b>.".to_string()], versus: Vec::new() };
        let text = render(&first, &[], &Charts::default(), None);
        assert!(text.contains("</html>") && !text.contains("chart-js"), "{text}");
        assert!(text.contains("<li>One &lt;b&gt;.</li>"), "{text}");
        let with = render(&first, &[], &Charts::default(), Some("of Chart.js"));
        assert!(with.contains("of Chart.js"));
    }
}

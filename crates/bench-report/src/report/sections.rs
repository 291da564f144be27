//! The sections of the report in order. The answers come first, then all tables.

use super::answer::{decision, headline, losses, mallocs, situations, standing, summaries, talk};
use super::short::losses::Groups;
use crate::rows::experiment::{deciding, Experiment, Kind, Machine};
use crate::rows::published::Published;
use crate::tables::layout::{self, lakos1, slices};
use crate::tables::Table;
use std::cmp::Reverse;

/// The output in which a block of a section is shown.
#[derive(Clone, Copy, PartialEq)]
pub enum Where {
    Both,
    /// The HTML page only, because the block is too long for Markdown.
    Page,
    /// The Markdown page only, because the HTML page has the full content that this block
    /// summarises.
    Markdown,
}

pub enum Block {
    Text(String),
    /// A text that only the HTML page has.
    Caption(&'static str),
    Table(Where, Table),
    /// The name of a chart that only the HTML page has.
    Chart(&'static str),
}

pub struct Section {
    pub id: String,
    pub title: String,
    pub blocks: Vec<Block>,
    /// Whether the section is closed when the page opens.
    pub folded: bool,
    /// Whether the section has figures. If not, the section states that nothing was measured.
    pub measured: bool,
}

impl Section {
    fn new(id: impl Into<String>, title: impl Into<String>) -> Section {
        Section {
            id: id.into(),
            title: title.into(),
            blocks: Vec::new(),
            folded: false,
            measured: true,
        }
    }

    fn text(mut self, text: impl Into<String>) -> Section {
        self.blocks.push(Block::Text(text.into()));
        self
    }

    fn table(mut self, place: Where, table: Table) -> Section {
        let table = if table.is_prose { table } else { table.without_empty_columns() };
        if !table.is_empty() {
            self.blocks.push(Block::Table(place, table));
        } else if place == Where::Both {
            // An empty table still has notes, which explain that nothing was measured.
            self.blocks.extend(table.notes.into_iter().map(Block::Text));
        }
        self
    }

    fn tables(self, place: Where, tables: impl IntoIterator<Item = Table>) -> Section {
        tables.into_iter().fold(self, |section, table| section.table(place, table))
    }

    fn folded(self) -> Section {
        Section { folded: true, ..self }
    }

    fn or_nothing(self) -> Section {
        if self.blocks.is_empty() {
            Section { measured: false, ..self.text("Not measured on this machine.") }
        } else {
            self
        }
    }

    /// Returns the tables that the HTML page shows.
    pub fn tables_of_page(&self) -> impl Iterator<Item = &Table> {
        self.blocks.iter().filter_map(|b| match b {
            Block::Table(_, table) => Some(table),
            _ => None,
        })
    }

    pub fn is_for(&self, place: Where) -> bool {
        self.blocks.iter().any(|b| match b {
            Block::Text(_) => true,
            Block::Table(w, _) => *w == Where::Both || *w == place,
            Block::Chart(_) | Block::Caption(_) => place == Where::Page,
        })
    }
}

/// Returns the first section, which compares mallocs. The section begins with the machine on which
/// most mallocs were measured.
pub fn lead(machines: &[Machine]) -> Section {
    let mut order: Vec<&Machine> = machines.iter().collect();
    order.sort_by_key(|m| Reverse(mallocs::peers(m)));
    let tables: Vec<Table> =
        order.into_iter().filter_map(|m| mallocs::table(m, &m.title)).collect();
    let section = Section::new("malloc", "Malloc against malloc");
    if tables.is_empty() {
        return section;
    }
    section.text(mallocs::NOTE).tables(Where::Both, tables)
}

/// Returns all sections of one machine.
pub fn of(machine: &Machine, published: &Published) -> Vec<Section> {
    use Where::{Both, Markdown, Page};
    let lakos1 = machine.of_suite("lakos1");
    let of_the_talk = |section: Section| Section { measured: machine.has_the_talk(), ..section };
    let malloc =
        mallocs::table(machine, "Time and memory with each malloc, relative to glibc's malloc (1)");
    let mut sections = vec![
        // The Markdown page has the malloc tables of all machines in its first section.
        Section::new("malloc", "Malloc against malloc")
            .tables(Page, malloc.map(|t| t.note(mallocs::NOTE))),
        Section::new("which", "Which one, and when not")
            .table(Both, situations::table(machine))
            .table(Both, situations::tuned(machine)),
        of_the_talk(
            Section::new("decision", "The talk's decision tables, measured")
                .table(Both, decision::table(machine, published))
                .folded(),
        ),
        of_the_talk(
            Section::new("headlines", "The talk's five benchmarks")
                .table(Both, headline::table(machine, published))
                .folded(),
        ),
        Section::new("peers", "Against the peers")
            .table(Both, standing::by_peer(machine))
            .table(Both, standing::by_suite(machine)),
        Section::new("losses", "Where Mallard loses")
            .text(losses::sentence(machine))
            .table(Page, Groups::of([machine]).table(false, true))
            .table(Markdown, losses::summary(machine)),
        Section::new("every-loss", "Every figure lost")
            .table(Page, losses::table(machine))
            .folded(),
        structures(&lakos1, published),
        locality(machine, published),
        shares(machine, published, "lakos3", "Benchmark III: blocks freed and allocated again"),
        shares(machine, published, "lakos4", "Benchmark IV: threads"),
        Section::new("lakos5", "Benchmark V: a fragmented heap")
            .tables(Both, summaries::fragmented(&machine.of_suite("lakos5")))
            .or_nothing()
            .folded(),
        Section::new("seeds", "Earlier reports")
            .tables(
                Both,
                summaries::seeds(
                    "Earlier reports, measured again",
                    &machine.of_suite("seeds"),
                    published,
                ),
            )
            .or_nothing()
            .folded(),
        crates(machine, published),
        Section {
            blocks: vec![Block::Chart("scaling")],
            ..Section::new("scaling", "Over threads")
        },
        Section {
            blocks: vec![Block::Chart("memory")],
            ..Section::new("memory", "Time against memory")
        },
    ];
    sections.extend(machine.suites().into_iter().map(|suite| all_of(machine, published, suite)));
    sections
}

/// Returns the section with charts that compare predictions of replays with measurements.
pub fn calibration() -> Section {
    let text = "Each point is a program's saving under a malloc, compared with the program under glibc, as mallard \
                try measured it and as mallard replay found it in a recording. A negative figure is a loss. At points on \
                the dashed line, both are equal. A vertical line at a point shows the interval that the replay predicts for \
                the program. docs/calibration.md explains the figures.";
    Section {
        blocks: vec![Block::Caption(text), Block::Chart("calibration")],
        ..Section::new("calibration", "Replays compared with measurements")
    }
}

fn structures(all: &[&Experiment], published: &Published) -> Section {
    let mut section = Section::new("lakos1", "Benchmark I: growing")
        .tables(Where::Both, talk::by_structure(all, published));
    let chosen = deciding(all);
    section = section.tables(Where::Markdown, lakos1::gain_map(&chosen, published));
    for slice in slices(all) {
        if ["ns_per_op", "peak_rss_kib"].contains(&slice.metric) {
            section = section.tables(Where::Page, lakos1::gain_map(&slice.all, published));
        }
    }
    section.tables(Where::Both, talk::ranking(all)).or_nothing().folded()
}

fn locality(machine: &Machine, published: &Published) -> Section {
    let tables = layout::tables(machine, published, "lakos2");
    let is_of_talk = |t: &Table| {
        let diffusion = t.title.starts_with("Diffusion") && t.title.ends_with(": AS1");
        diffusion || ["(AS1)", "(AS7)"].iter().any(|end| t.title.ends_with(end))
    };
    // For the time of an access, only the ratio is shown, because the absolute value says little.
    let is_shown = |t: &Table| {
        let is_ratio = t.title.contains("ns_per_op: ratio");
        is_of_talk(t) && (t.title.contains("degradation") || is_ratio)
    };
    let all = machine.select(|e| e.suite == "lakos2" && e.metric == "degradation");
    let variant = deciding(&all).first().map_or("", |e| &e.variant).to_string();
    let ratios: Vec<Table> = tables
        .iter()
        .filter(|t| t.variant == variant && t.title.contains("degradation: ratio") && is_of_talk(t))
        .filter(|t| {
            ["2^21 elements, c", "2^21 elements, f", "2^25 "].iter().any(|n| t.title.starts_with(n))
        })
        .cloned()
        .collect();
    Section::new("lakos2", "Benchmark II: locality")
        .tables(Where::Page, tables.into_iter().filter(is_shown))
        .tables(Where::Markdown, ratios)
        .or_nothing()
        .folded()
}

fn shares(machine: &Machine, published: &Published, suite: &str, title: &str) -> Section {
    let all = machine.of_suite(suite);
    let maps = layout::tables(machine, published, suite);
    let maps = maps
        .into_iter()
        .filter(|t| t.title.contains("per cent of AS1") && t.kind == Some(Kind::Time));
    Section::new(suite, title)
        .tables(Where::Both, summaries::shares(&all, published))
        .tables(Where::Page, maps)
        .or_nothing()
        .folded()
}

fn crates(machine: &Machine, published: &Published) -> Section {
    let section = Section::new("crates", "Rust: Mallard's crate compared with others");
    let all = machine.of_suite("crates");
    if all.is_empty() {
        return section.or_nothing().folded();
    }
    section
        .text(
            "How much time do Mallard's crate and its peers on crates.io need, in the benchmarks by these \
             crates? This section has the cases for which a peer published a figure. \"All of crates\" on the HTML page \
             has every case. The name glibc means `Box` with the system's malloc.",
        )
        .tables(Where::Both, summaries::seeds("What the crates published", &all, published))
        .folded()
}

/// Returns all tables of a suite, in a section that is closed when the page opens.
fn all_of(machine: &Machine, published: &Published, suite: &str) -> Section {
    let section = Section::new(format!("all-{suite}"), format!("All of {suite}"));
    section.tables(Where::Page, layout::tables(machine, published, suite)).folded()
}

//! Renders the tables of the benchmark page as HTML.

use crate::rows::experiment::Kind;
use crate::tables::{Cell, Table};
use maud::{html, Markup};
use std::collections::BTreeSet;

/// The sorted names of all allocators on a page. The index of a name selects a CSS class: the
/// columns of the allocator with index 7 have class `c7`. The filter on the page hides columns by
/// their class.
pub struct Contenders(pub Vec<String>);

impl Contenders {
    /// Collects the contenders of some tables.
    pub fn of<'a>(tables: impl IntoIterator<Item = &'a Table>) -> Contenders {
        let mut all = BTreeSet::new();
        for table in tables {
            all.extend(table.columns.iter().filter_map(|c| c.contender.clone()));
            all.extend(table.lines.iter().filter_map(|l| l.contender.clone()));
        }
        Contenders(all.into_iter().collect())
    }

    fn class(&self, contender: &Option<String>) -> Option<String> {
        let place = self.0.binary_search(contender.as_ref()?).ok()?;
        Some(format!("c{place}"))
    }
}

/// Renders one table. Omits the table's title if the heading `above` has the same text.
pub fn table(table: &Table, above: &str, names: &Contenders) -> Markup {
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
                details.note {
                    summary { "commands and commits: " (table.made_by.len()) }
                    @for by in &table.made_by { p { code { (by) } } }
                }
            }
        }
    }
}

/// Renders a name that may be broken after each slash.
fn breakable(name: &str) -> Markup {
    html! {
        @for (index, part) in name.split('/').enumerate() {
            @if index > 0 { "/" wbr; }
            (part)
        }
    }
}

fn one_cell(cell: &Cell, table: &Table, place: usize, names: &Contenders) -> Markup {
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

//! Writes to the terminal.

use crate::error::status::UNREADABLE;
use crate::error::Failure;
#[cfg(feature = "recordings")]
use crate::tables::{Cell, Table};
use comfy_table::{presets, Attribute, CellAlignment, ContentArrangement};
use std::io::{ErrorKind, IsTerminal, Write};

/// Writes a text to stdout. A closed pipe, for example to `head`, is not an error, but a full disk is.
pub fn say(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(Failure::new(
            format!("cannot write to stdout: {}", e.to_string().to_lowercase()),
            "not everything was written",
            "df -h .",
        )
        .with_status(UNREADABLE)),
        _ => Ok(()),
    }
}

/// A table of text without a frame.
pub fn plain_table(
    titles: &[&str],
    lines: impl IntoIterator<Item = Vec<String>>,
) -> comfy_table::Table {
    let mut table = empty();
    table.set_header(titles.to_vec());
    for line in lines {
        table.add_row(line);
    }
    align(&mut table, 1);
    table
}

/// A table with its title and notes. Published figures are in the second line of a cell.
#[cfg(feature = "recordings")]
pub fn render(table: &Table) -> String {
    let mut out = empty();
    // Breaks a long name at its slashes, so that columns are narrow.
    let columns = table.columns.iter().map(|c| match c.contender {
        Some(_) => c.title.replace('/', "/\n"),
        None => c.title.replace("published: ", "published:\n"),
    });
    let titles = table.heads.iter().cloned().chain(columns);
    out.set_header(titles.collect::<Vec<_>>());
    let mut any_published = false;
    for line in &table.lines {
        let mut cells: Vec<comfy_table::Cell> =
            line.heads.iter().map(comfy_table::Cell::new).collect();
        any_published |= line.cells.iter().any(|c| !c.published.is_empty());
        cells.extend(line.cells.iter().map(cell));
        out.add_row(cells);
    }
    align(&mut out, table.heads.len());
    let mut text = format!("{}\n{out}\n", table.title);
    if any_published {
        text += "  (in parentheses: published)\n";
    }
    for note in &table.notes {
        text += &format!("  {note}\n");
    }
    for made_by in &table.made_by {
        text += &format!("  {made_by}\n");
    }
    text
}

#[cfg(feature = "recordings")]
fn cell(cell: &Cell) -> comfy_table::Cell {
    let text = match (cell.text.is_empty(), cell.published.is_empty()) {
        (_, true) => cell.text.clone(),
        (true, false) => format!("({})", cell.published),
        (false, false) => format!("{}\n({})", cell.text, cell.published),
    };
    let out = comfy_table::Cell::new(text);
    if cell.best && std::io::stdout().is_terminal() {
        out.add_attribute(Attribute::Bold)
    } else {
        out
    }
}

/// An empty table. It may be wider than the window: `less -S` shows the rest.
fn empty() -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table
}

fn align(table: &mut comfy_table::Table, heads: usize) {
    for column in table.column_iter_mut().skip(heads) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

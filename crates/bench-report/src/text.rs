//! Renders a benchmark table for the terminal.

use crate::tables::{Cell, Table};
use comfy_table::Attribute;
use mallard_measure::output::columns::Columns;
use std::io::IsTerminal;

/// Renders a table with its title and notes. Published figures are in the second line of a cell.
pub fn render(table: &Table) -> String {
    // Breaks a long name at its slashes, so that columns are narrow.
    let columns = table.columns.iter().map(|c| match c.contender {
        Some(_) => c.title.replace('/', "/\n"),
        None => c.title.replace("published: ", "published:\n"),
    });
    let titles = table.heads.iter().cloned().chain(columns);
    let titles = titles.collect();
    let mut rows = Vec::new();
    let mut any_published = false;
    for line in &table.lines {
        let mut cells: Vec<comfy_table::Cell> =
            line.heads.iter().map(comfy_table::Cell::new).collect();
        any_published |= line.cells.iter().any(|c| !c.published.is_empty());
        cells.extend(line.cells.iter().map(cell));
        rows.push(cells);
    }
    let out = Columns::new(titles, rows, table.heads.len());
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

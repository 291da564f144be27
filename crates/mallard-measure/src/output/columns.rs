//! Text tables without a frame.
//!
//! If a table is wider than the output, its titles, names and gaps are made narrower. If that is
//! not enough, the columns that do not fit follow below, next to a repetition of the names.

use super::width::{shortened, width};
use comfy_table::{presets, Cell, CellAlignment, ContentArrangement, Table};
use std::fmt;
use std::ops::Range;

/// The maximum width of names in a table that would otherwise be too wide.
const NAME_MAX: usize = 32;

/// The indent of columns that are printed below the name of their row.
const INDENT: usize = 6;

/// A table whose first columns contain names, aligned to the left, and whose other columns contain
/// figures.
#[derive(Clone)]
pub struct Columns {
    titles: Vec<String>,
    rows: Vec<Vec<Cell>>,
    names: usize,
    figures: CellAlignment,
    /// The number of spaces between two columns.
    gap: u16,
}

impl Columns {
    /// Makes a table whose first `names` columns are names.
    pub fn new(titles: Vec<String>, rows: Vec<Vec<Cell>>, names: usize) -> Columns {
        Columns { titles, rows, names, figures: CellAlignment::Right, gap: 2 }
    }

    /// Aligns all columns to the left.
    pub fn left(self) -> Columns {
        Columns { figures: CellAlignment::Left, ..self }
    }

    /// Returns the lines of the titles, and the lines of each table row. Columns that are too wide
    /// to stand next to the names are in further lines of the row.
    pub fn rows(self) -> (Vec<String>, Vec<Vec<String>>) {
        let number = self.rows.len();
        let (mut titles, mut rows) = (Vec::new(), vec![Vec::new(); number]);
        for lines in self.parts(width(), false) {
            let begin = lines.len() - number;
            titles.extend_from_slice(&lines[..begin]);
            rows.iter_mut().zip(&lines[begin..]).for_each(|(row, line)| row.push(line.clone()));
        }
        (titles, rows)
    }

    /// Splits the table into parts that fit into `width`, and returns the lines of each part with
    /// its titles. The first part begins with the names. If `repeats_names` is set, every part
    /// begins with the names.
    fn parts(mut self, width: usize, repeats_names: bool) -> Vec<Vec<String>> {
        if self.width_of(0..self.titles.len()) > width {
            let columns = 0..self.titles.len();
            columns.for_each(|column| self.titles[column] = self.narrow_title(column));
        }
        if self.width_of(0..self.titles.len()) > width {
            self.shorten_names();
            self.gap = 1;
        }
        if self.width_of(0..self.titles.len()) > width {
            self.gap = 2; // narrow gaps were not enough, so they are not used
        }
        let (mut parts, mut begin) = (Vec::new(), self.names);
        loop {
            let mut end = begin + 1;
            let has_names = repeats_names || begin == self.names;
            let before = if has_names { self.width_of(0..self.names) } else { INDENT };
            while end < self.titles.len() && before + self.width_of(begin..end + 1) <= width {
                end += 1;
            }
            parts.push(self.part(begin..end.min(self.titles.len()), has_names));
            if end >= self.titles.len() {
                return parts;
            }
            begin = end;
        }
    }

    fn width_of(&self, columns: Range<usize>) -> usize {
        columns.map(|column| self.column_width(column) + usize::from(self.gap)).sum()
    }

    fn column_width(&self, column: usize) -> usize {
        self.cells_width(column).max(widest(&self.titles[column]))
    }

    fn cells_width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| widest(&cell.content())).max().unwrap_or(0)
    }

    /// Returns the title of a column, in several lines if the cells of the column are narrower.
    fn narrow_title(&self, column: usize) -> String {
        let title = &self.titles[column];
        match widest(title) > self.cells_width(column) {
            true => title.replace(' ', "\n"),
            false => title.clone(),
        }
    }

    fn shorten_names(&mut self) {
        for row in &mut self.rows {
            for cell in row.iter_mut().take(self.names) {
                let name = cell.content();
                // A path is not shortened, because the user could not paste a shortened path.
                if widest(&name) > NAME_MAX && !name.starts_with(['/', '.']) {
                    *cell = Cell::new(shortened(&name, NAME_MAX));
                }
            }
        }
    }

    /// Formats some columns as lines. Each line begins with the names, or with spaces if
    /// `has_names` is false.
    fn part(&self, columns: Range<usize>, has_names: bool) -> Vec<String> {
        let mut table = Table::new();
        table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        let names = if has_names { self.names } else { 0 };
        let indent = " ".repeat(if has_names { 0 } else { INDENT });
        let shown = || (0..names).chain(columns.clone());
        table.set_header(shown().map(|column| &self.titles[column]));
        for row in &self.rows {
            let cells = shown().map(|column| row.get(column).cloned().unwrap_or(Cell::new("")));
            table.add_row(cells.collect::<Vec<_>>());
        }
        for (number, column) in table.column_iter_mut().enumerate() {
            column.set_padding((1, self.gap - 1));
            if number >= names {
                column.set_cell_alignment(self.figures);
            }
        }
        let lines = table.to_string();
        lines.lines().map(|line| format!("{indent}{line}").trim_end().to_string()).collect()
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let parts = self.clone().parts(width(), true);
        let parts: Vec<String> = parts.iter().map(|lines| lines.join("\n")).collect();
        f.write_str(&parts.join("\n\n"))
    }
}

/// Returns the length of the longest line.
fn widest(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

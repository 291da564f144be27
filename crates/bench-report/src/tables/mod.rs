//! Defines tables in a form that can be rendered for the terminal, in Markdown and in HTML.

pub mod conditions;
pub mod layout;

use crate::rows::cases::facet;
use crate::rows::contender;
use crate::rows::experiment::{Experiment, Kind};
use crate::rows::row::Row;
use std::collections::BTreeSet;

/// One cell of a table.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    pub text: String,
    /// The published figure, shown next to the text.
    pub published: String,
    /// The range from the 10th to the 90th percentile.
    pub spread: String,
    /// The ratio to the baseline of the line.
    pub ratio: String,
    /// The colour of the cell: from 7 (much better than the baseline) to -7 (much worse).
    pub shade: i8,
    pub best: bool,
}

impl Cell {
    pub fn text(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), ..Cell::default() }
    }

    pub fn figure(value: Option<f64>) -> Cell {
        Cell::text(value.map_or(String::new(), number))
    }

    /// Sets the colour from the gain over the baseline.
    pub fn shaded(mut self, gain: Option<f64>) -> Cell {
        self.shade = gain.map_or(0, shade);
        self
    }

    /// Makes a cell with the figure of a result, or the reason why there is no figure.
    pub fn of(row: Option<&Row>) -> Cell {
        let Some(row) = row else { return Cell::default() };
        match row.median {
            Some(median) => {
                let (low, high) = (number(row.low()), number(row.high()));
                // If both bounds are equal, the figure was the same in every run, so the spread is
                // omitted.
                let spread = if low == high { String::new() } else { format!("{low}-{high}") };
                Cell { text: number(median), spread, ..Cell::default() }
            }
            None if row.failed() => Cell {
                text: if row.failed_on_paper() { "FAIL, computed" } else { "FAIL" }.into(),
                spread: row.why.clone(),
                shade: -SHADES,
                ..Cell::default()
            },
            None => Cell { text: "-".into(), spread: row.why.clone(), ..Cell::default() },
        }
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.published.is_empty()
    }

    pub fn published(mut self, text: impl Into<String>) -> Cell {
        self.published = text.into();
        self
    }
}

/// The number of shades for better figures, and also for worse figures.
const SHADES: i8 = 7;

/// Returns the shade for a gain. The shades change in small steps near 1, where most figures are.
/// The last shade begins at a factor of about 40.
fn shade(gain: f64) -> i8 {
    let most = f64::from(SHADES);
    let steps = (gain.log2().abs().powf(0.7) * 2.2).min(most);
    (steps * gain.log2().signum()).round() as i8
}

#[derive(Clone, Debug, Default)]
pub struct Column {
    pub title: String,
    /// The allocator of the column, by which the page's filter hides the column.
    pub contender: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub struct Line {
    pub heads: Vec<String>,
    pub cells: Vec<Cell>,
    pub contender: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub struct Table {
    pub title: String,
    pub notes: Vec<String>,
    /// The titles of the first columns, which have the names of the lines.
    pub heads: Vec<String>,
    pub columns: Vec<Column>,
    pub lines: Vec<Line>,
    /// The variant that a reader must select to see the table. A table with an empty variant is
    /// always visible.
    pub variant: String,
    pub kind: Option<Kind>,
    /// The commands and commits that produced the figures.
    pub made_by: BTreeSet<String>,
    /// Whether cells contain sentences, which wrap.
    pub is_prose: bool,
}

impl Table {
    pub fn new(title: impl Into<String>, heads: &[&str]) -> Table {
        let heads = heads.iter().map(|h| h.to_string()).collect();
        Table { title: title.into(), heads, ..Table::default() }
    }

    pub fn prose(title: impl Into<String>, heads: &[&str], columns: &[&str]) -> Table {
        let mut table = Table::new(title, heads).columns(columns.iter().map(|c| c.to_string()));
        table.is_prose = true;
        table
    }

    pub fn columns(mut self, titles: impl IntoIterator<Item = String>) -> Table {
        self.columns.extend(titles.into_iter().map(|title| Column { title, contender: None }));
        self
    }

    /// Adds a column for an allocator.
    pub fn contender(&mut self, contender: &str) {
        self.columns.push(Column {
            title: contender::short(contender),
            contender: Some(contender.to_string()),
        });
    }

    pub fn line(&mut self, heads: Vec<String>, cells: Vec<Cell>) {
        self.lines.push(Line { heads, cells, contender: None });
    }

    pub fn note(mut self, note: impl Into<String>) -> Table {
        self.notes.push(note.into());
        self
    }

    /// Sets variant, kind, commands and conditions from the experiments that the table shows.
    pub fn of(mut self, experiments: &[&Experiment]) -> Table {
        if let Some(first) = experiments.first() {
            self.variant = facet(&first.variant).to_string();
            self.kind = Some(first.kind());
        }
        for row in experiments.iter().flat_map(|e| &e.rows) {
            self.made_by.insert(made_by(row));
        }
        self.notes.extend(conditions::sentence(experiments.iter().flat_map(|e| &e.rows)));
        self
    }

    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Removes the columns in which all cells are empty.
    pub fn without_empty_columns(mut self) -> Table {
        let kept: Vec<bool> = (0..self.columns.len())
            .map(|i| self.lines.iter().any(|l| l.cells.get(i).is_some_and(|c| !c.is_empty())))
            .collect();
        let keep = |i: usize| kept.get(i).copied().unwrap_or(true);
        self.columns = enumerated(self.columns, keep);
        for line in &mut self.lines {
            line.cells = enumerated(std::mem::take(&mut line.cells), keep);
        }
        self
    }
}

fn enumerated<T>(all: Vec<T>, keep: impl Fn(usize) -> bool) -> Vec<T> {
    all.into_iter().enumerate().filter(|(i, _)| keep(*i)).map(|(_, t)| t).collect()
}

/// Returns the command and commit of a result: `./x bench pool --json, commit 1b96d48`.
pub fn made_by(row: &Row) -> String {
    format!("{}, commit {}", row.command, row.commit)
}

/// Formats a figure with three or four digits, because further digits would be noise.
pub fn number(value: f64) -> String {
    match value {
        0.0 => "0".to_string(),
        v if v < 0.0995 => format!("{v:.3}"),
        v if v < 9.995 => format!("{v:.2}"),
        v if v < 999.5 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

/// Formats a change with its sign, rounded to tenths. More digits would be noise.
pub fn tenths(value: f64) -> String {
    match (value * 10.0).round() == 0.0 {
        true => "0".to_string(),
        false => format!("{value:+.1}"),
    }
}

/// Formats a factor: `3.42×`.
pub fn times(value: f64) -> String {
    format!("{}×", number(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_or_four_significant_digits() {
        let all = [0.0, 0.0123, 0.5, 1.0, 12.34, 123.4, 1234.5].map(number);
        assert_eq!(all, ["0", "0.012", "0.50", "1.00", "12.3", "123.4", "1234"]);
    }

    #[test]
    fn cell_colours_grow_stronger_with_the_gain_up_to_a_maximum() {
        assert_eq!([1.0, 2.0, 0.5, 100.0, 0.001].map(shade), [0, 2, -2, 7, -7]);
    }

    #[test]
    fn empty_columns_are_removed() {
        let mut table = Table::new("t", &["h"]).columns(["a".into(), "b".into()]);
        table.line(vec!["1".into()], vec![Cell::default(), Cell::text("x")]);
        let table = table.without_empty_columns();
        assert_eq!(table.columns.len(), 1);
        assert_eq!(table.lines[0].cells[0].text, "x");
    }
}

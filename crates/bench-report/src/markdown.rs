//! Renders tables and paragraphs as Markdown.

use crate::tables::{Cell, Table};

/// Renders one table. Omits the table's title if the heading `above` has the same text.
pub fn table(table: &Table, above: &str) -> String {
    let mut text = String::from("\n");
    if table.title != above {
        text += &format!("**{}**\n\n", escaped(&table.title));
    }
    let heads = table.heads.iter().map(|h| escaped(h));
    let titles = heads.chain(table.columns.iter().map(|c| escaped(&c.title)));
    text += &format!("| {} |\n", titles.collect::<Vec<_>>().join(" | "));
    let left = table.heads.iter().map(|_| "---");
    let align = if table.is_prose { "---" } else { "---:" };
    let rules = left.chain(table.columns.iter().map(|_| align));
    text += &format!("|{}|\n", rules.collect::<Vec<_>>().join("|"));
    for line in &table.lines {
        let cells = line.heads.iter().map(|h| escaped(h)).chain(line.cells.iter().map(cell));
        text += &format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "));
    }
    for note in &table.notes {
        text += &format!("\n{}", wrapped(&escaped(note)));
    }
    text
}

fn cell(cell: &Cell) -> String {
    let text = escaped(&cell.text);
    let text = if cell.best { format!("**{text}**") } else { text };
    match (text.is_empty(), cell.published.is_empty()) {
        (_, true) => text,
        (true, false) => format!("({})", escaped(&cell.published)),
        (false, false) => format!("{text} ({})", escaped(&cell.published)),
    }
}

/// Escapes the characters that Markdown would interpret.
pub fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '|' | '*' | '~' => out.extend(['\\', c]),
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '\n' => out.push(' '),
            _ => out.push(c),
        }
    }
    out
}

/// Renders an item of a list.
pub fn item(text: &str) -> String {
    format!("- {}\n", wrapped(text).replace('\n', "\n  ").trim_end())
}

/// Wraps a text into lines of at most 100 columns.
pub fn wrapped(text: &str) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > 100 {
            out.push('\n');
            column = 0;
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out += word;
        column += length;
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_cannot_break_its_table() {
        let sample = {
            let mut t = Table::new("t", &["a|b"]).columns(["vector<int>".into()]);
            t.line(vec!["x".into()], vec![Cell::text("1 | 2").published("3")]);
            t
        };
        let text = table(&sample, "t");
        assert!(text.contains("| a\\|b | vector&lt;int&gt; |"), "{text}");
        assert!(text.contains("| x | 1 \\| 2 (3) |"), "{text}");
    }

    #[test]
    fn paragraphs_are_wrapped_at_100_columns() {
        assert!(wrapped(&"word ".repeat(100)).lines().all(|l| l.len() <= 100));
    }
}

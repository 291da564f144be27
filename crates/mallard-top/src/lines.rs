//! Writes a line for each interval, for a file, a pipe, or a terminal that cannot show a screen.

use crate::figures::{Figures, Function};
use crate::screen::{change, short};
use crate::view::{Listed, View};
use mallard_measure::output::units::{bytes, time};

/// How the figures are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// On a screen that changes.
    Screen,
    /// As a line of text for each interval.
    Lines,
    /// As a JSON object in a line for each interval.
    Json,
}

/// The maximum numbers of functions and of threads in a JSON object.
const FUNCTIONS: usize = 20;
const THREADS: usize = 100;

/// Returns a line of text with the figures of the whole program and the first function of the list.
pub fn text(figures: &Figures, view: &View) -> String {
    let Figures { seconds, whole, resident_bytes, .. } = figures;
    let resident = resident_bytes.map_or(String::new(), |of| format!(", {} resident", bytes(of)));
    let first = view.listed(figures).first().map_or(String::new(), |(name, row, ..)| {
        format!(
            "; {name} has {} and allocates {}/s",
            bytes(row.live_bytes),
            bytes(row.bytes_per_second as u64)
        )
    });
    format!(
        "{}: {} in use in {} blocks, {}/s{resident}; {}/s allocated{first}\n",
        time(seconds * 1e9),
        bytes(whole.live_bytes),
        short(whole.live_blocks as f64),
        change(whole.growth),
        bytes(whole.bytes_per_second as u64),
    )
}

/// Returns a line of JSON with the figures of the whole program, and the first functions and threads of the
/// lists.
pub fn json(figures: &Figures, view: &View) -> String {
    let listed = view.listed(figures).into_iter().take(FUNCTIONS);
    let function = |(name, row, _, stack): Listed| Function {
        name: name.to_string(),
        row: *row,
        stack: stack.to_vec(),
    };
    let functions = listed.map(function).collect();
    let mut threads = figures.threads.clone();
    threads.sort_by(|a, b| view.sort.key(&b.row).total_cmp(&view.sort.key(&a.row)));
    threads.truncate(THREADS);
    let figures = Figures { functions, threads, ..*figures };
    format!("{}\n", serde_json::to_string(&figures).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Row;

    fn figures() -> Figures {
        let row = |live_bytes| Row { live_bytes, growth: 1024.0, ..Row::default() };
        let function = |name: &str, size| Function {
            name: name.to_string(),
            row: row(size),
            stack: vec!["main".to_string()],
        };
        let mut functions: Vec<Function> = (0..30).map(|n| function(&format!("f{n}"), n)).collect();
        functions.push(function("parse  a.cpp:3", 2048));
        Figures { seconds: 2.0, whole: row(4096), functions, ..Figures::default() }
    }

    #[test]
    fn a_line_names_the_first_function_of_the_list() {
        assert_eq!(
            text(&figures(), &View::default()),
            "2.0 s: 4.0 KiB in use in 0 blocks, +1.0 KiB/s; 0 B/s allocated; parse  a.cpp:3 has 2.0 KiB \
             and allocates 0 B/s\n"
        );
    }

    #[test]
    fn json_has_the_first_functions_in_order() {
        let value: serde_json::Value =
            serde_json::from_str(&json(&figures(), &View::default())).unwrap();
        let functions = value["functions"].as_array().unwrap();
        assert_eq!((functions.len(), &functions[0]["name"]), (20, &"parse  a.cpp:3".into()));
        assert_eq!((&value["live_bytes"], &value["resident_bytes"]), (&4096.into(), &().into()));
        assert_eq!(functions[0]["stack"][0], "main");
    }
}

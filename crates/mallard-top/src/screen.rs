//! Draws the view in a terminal, and reads keys.

use crate::figures::{Figures, Row, Sort};
use crate::view::{Listed, View};
use mallard_measure::output::units::{bytes, plural, time};
use mallard_measure::output::width::shortened;
use nix::unistd::{getpgrp, tcgetpgrp};
use ratatui::crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use ratatui::crossterm::terminal;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use ratatui::{DefaultTerminal, Frame};
use std::io::{self, IsTerminal};
use std::mem::ManuallyDrop;
use std::time::Duration;

/// The number of lines above the list, without notes, and below it.
const ABOVE: usize = 5;
const BELOW: usize = 3;
/// The width of the figures before each name.
const FIGURES: usize = 50;
/// A name is not shortened below this width.
const NAME_MIN: usize = 12;

/// Returns whether stdout is a terminal that can show a screen. A terminal whose size is unknown has 0
/// columns. The system stops a process in the background that changes the mode of its terminal.
pub fn can_draw() -> bool {
    let is_dumb = std::env::var("TERM").is_ok_and(|name| name.is_empty() || name == "dumb");
    let has_size = || terminal::window_size().is_ok_and(|size| size.columns > 0 && size.rows > 0);
    let is_in_foreground = || tcgetpgrp(io::stdout()).is_ok_and(|group| group == getpgrp());
    io::stdout().is_terminal() && !is_dumb && is_in_foreground() && has_size()
}

/// What is drawn.
pub struct Scene<'a> {
    /// The program and its process id.
    pub subject: &'a str,
    /// The figures that are shown.
    pub figures: &'a Figures,
    /// What the user has chosen to see.
    pub view: &'a View,
    /// Sentences below the figures of the whole program.
    pub notes: &'a [String],
    /// Whether colours may be used.
    pub has_colours: bool,
}

/// A terminal in which only this view writes. Dropping it restores the terminal.
pub struct Screen {
    /// Never dropped, because `Terminal::drop` panics if neither the terminal nor stderr can be written.
    terminal: ManuallyDrop<DefaultTerminal>,
}

impl Screen {
    /// Switches the terminal to a separate screen, on which keys are not echoed.
    pub fn open() -> io::Result<Screen> {
        ratatui::try_init().map(|terminal| Screen { terminal: ManuallyDrop::new(terminal) })
    }

    /// Draws a scene. Returns the number of rows of the list that fit.
    pub fn draw(&mut self, scene: &Scene) -> io::Result<usize> {
        self.terminal.draw(|frame| draw(frame, scene))?;
        let height = self.terminal.size()?.height as usize;
        Ok(rows_that_fit(height, scene.notes.len()))
    }

    /// Returns the keys that were pressed since the last call, and whether the terminal has another size.
    pub fn keys(&self) -> io::Result<(Vec<KeyEvent>, bool)> {
        let (mut keys, mut is_resized) = (Vec::new(), false);
        while event::poll(Duration::ZERO)? {
            match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => keys.push(key),
                Event::Resize(..) => is_resized = true,
                _ => {}
            }
        }
        Ok((keys, is_resized))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.terminal.show_cursor(); // fails if the terminal is closed
        restore();
    }
}

/// Restores the terminal, which a thread that waits for the terminal cannot do. Without a terminal, nothing is
/// to be restored.
pub fn restore() {
    let _ = ratatui::try_restore();
}

fn rows_that_fit(height: usize, notes: usize) -> usize {
    height.saturating_sub(ABOVE + notes + BELOW)
}

/// Draws a scene.
pub fn draw(frame: &mut Frame, scene: &Scene) {
    let area = frame.area();
    let (width, height) = (area.width as usize, area.height as usize);
    let rows = rows_that_fit(height, scene.notes.len());
    let mut lines = head(scene);
    let mut list = list(scene, width, rows);
    list.resize(rows, Line::default());
    lines.extend(list);
    lines.extend(foot(scene.view));
    frame.render_widget(Paragraph::new(lines), area);
}

fn bold(text: impl Into<String>) -> Span<'static> {
    Span::styled(text.into(), Modifier::BOLD)
}

/// Returns the lines above the list: the program, the figures of the whole program, and notes.
fn head(scene: &Scene) -> Vec<Line<'static>> {
    let Figures { seconds, whole, resident_bytes, cpus, .. } = scene.figures;
    let paused = if scene.view.paused.is_some() { "  paused" } else { "" };
    let title = format!("mallard top: {}, {}{paused}", scene.subject, time(seconds * 1e9));
    let resident = resident_bytes.map_or(String::new(), |of| format!("; {} resident", bytes(of)));
    let cpus = cpus.map_or(String::new(), |of| format!("; {of:.2} CPUs"));
    let mut lines = vec![
        Line::from(bold(title)),
        Line::from(vec![
            "in use: ".into(),
            bold(bytes(whole.live_bytes)),
            format!(
                " in {} blocks, {} a second{resident}",
                short(whole.live_blocks as f64),
                change(whole.growth)
            )
            .into(),
        ]),
        Line::from(vec![
            "allocated: ".into(),
            bold(bytes(whole.bytes_per_second as u64)),
            format!(
                " in {} blocks a second; {}{cpus}",
                short(whole.blocks_per_second),
                plural(scene.figures.thread_count, "thread")
            )
            .into(),
        ]),
    ];
    lines.extend(scene.notes.iter().map(|note| Line::from(note.clone())));
    lines.push(Line::default());
    lines.push(titles(scene.view));
    lines
}

/// Returns the titles of the columns. A star marks the column by which the list is ordered.
fn titles(view: &View) -> Line<'static> {
    let last = if view.shows_threads { "CPU" } else { "BLOCKS" };
    let name = if view.shows_threads { "THREAD" } else { "FUNCTION" };
    let title = |sort: Option<Sort>, title: &str, width: usize| match sort == Some(view.sort) {
        true => bold(format!("{:>width$}", format!("*{title}"))),
        false => Span::raw(format!("{title:>width$}")),
    };
    Line::from(vec![
        title(Some(Sort::Use), "IN USE", 9),
        title(Some(Sort::Growth), "GROWS/s", 10),
        title(Some(Sort::Bytes), "ALLOC/s", 10),
        title(Some(Sort::Blocks), "BLOCKS/s", 10),
        title(None, last, 9),
        Span::raw(format!("  {name}")),
    ])
}

/// Returns the rows of the list that are around the selected row, and the call stack of that row.
fn list(scene: &Scene, width: usize, rows: usize) -> Vec<Line<'static>> {
    let view = scene.view;
    let listed = view.listed(scene.figures);
    let selected = view.selected.min(listed.len().saturating_sub(1));
    let stack: &[String] = match view.shows_stack {
        true => listed.get(selected).map_or(&[], |(.., stack)| stack),
        false => &[],
    };
    let stack = &stack[..stack.len().min(rows / 2)];
    let before = (selected + 1 + stack.len()).saturating_sub(rows);
    let mut lines = Vec::new();
    for (number, row) in listed.iter().enumerate().skip(before).take(rows) {
        lines.push(line(row, width, number == selected, scene));
        if number == selected {
            lines.extend(stack.iter().map(|function| {
                let room = width.saturating_sub(12);
                Line::from(format!("          ^ {}", shortened(function, room)))
            }));
        }
    }
    lines.truncate(rows);
    lines
}

fn line(row: &Listed, width: usize, is_selected: bool, scene: &Scene) -> Line<'static> {
    let &(name, row, cpu, _) = row;
    let Row { live_bytes, live_blocks, growth, bytes_per_second, blocks_per_second } = *row;
    let last = match cpu {
        Some(share) => format!("{:.0} %", share * 100.0),
        None if scene.view.shows_threads => "-".to_string(),
        None => short(live_blocks as f64),
    };
    let room = width.saturating_sub(FIGURES).max(NAME_MIN);
    let growing = match scene.has_colours && growth >= 1.0 {
        true => Style::from(Color::Yellow),
        false => Style::default(),
    };
    let line = Line::from(vec![
        Span::raw(format!("{:>9}", bytes(live_bytes))),
        Span::styled(format!("{:>10}", change(growth)), growing),
        Span::raw(format!("{:>10}", bytes(bytes_per_second as u64))),
        Span::raw(format!("{:>10}{last:>9}  {}", short(blocks_per_second), shortened(name, room))),
    ]);
    if is_selected {
        line.style(Modifier::REVERSED)
    } else {
        line
    }
}

fn foot(view: &View) -> Vec<Line<'static>> {
    let filter = match (view.is_typing, &*view.filter) {
        (true, text) => format!("filter: {text}_  (Enter: keep, Esc: remove)"),
        (false, "") => String::new(),
        (false, text) => format!("filter: {text}  (Esc: remove)"),
    };
    vec![
        Line::from(filter),
        Line::from("order: u in use  g growth  a bytes/s  b blocks/s       t threads/functions"),
        Line::from("q quit  s save  p pause  / filter  arrows select  Enter call stack"),
    ]
}

/// Formats a change of bytes with its sign: `+1.2 MiB`.
pub fn change(growth: f64) -> String {
    match growth.abs() as u64 {
        0 => "0 B".to_string(),
        size => format!("{}{}", if growth < 0.0 { '-' } else { '+' }, bytes(size)),
    }
}

/// Formats a count in at most 7 characters: `950,000`, `2.3 M`, `140 M`.
pub fn short(count: f64) -> String {
    let unit = |figure: f64, unit: &str| match figure < 9.95 {
        true => format!("{figure:.1} {unit}"),
        false => format!("{figure:.0} {unit}"),
    };
    match count {
        _ if count < 999_999.5 => mallard_measure::output::units::count(count.round() as u64),
        _ if count < 999.5e6 => unit(count / 1e6, "M"),
        _ => unit(count / 1e9, "G"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{Function, Thread};
    use ratatui::backend::TestBackend;
    use ratatui::Terminal;

    fn figures() -> Figures {
        let row = |live_bytes, live_blocks, growth, bytes_per_second, blocks_per_second| Row {
            live_bytes,
            live_blocks,
            growth,
            bytes_per_second,
            blocks_per_second,
        };
        let function = |name: &str, row, stack: &[&str]| Function {
            name: name.to_string(),
            row,
            stack: stack.iter().map(ToString::to_string).collect(),
        };
        let mib = f64::from(1 << 20);
        let book = row(120 << 20, 900_000, 1.25 * mib, 30.0 * mib, 310_000.0);
        let tokens = row(3 << 20, 20_000, -0.5 * mib, 270.0 * mib, 2_100_000.0);
        let thread = |name: &str, row, cpu| Thread { name: name.to_string(), row, cpu };
        Figures {
            seconds: 12.0,
            whole: row(182 << 20, 1_234_567, 0.75 * mib, 300.0 * mib, 2_410_000.0),
            resident_bytes: Some(240 << 20),
            cpus: Some(1.98),
            unknown_frees: 12,
            lost: 0,
            thread_count: 2,
            functions: vec![
                function(
                    "tokenize  lexer.cpp:88",
                    tokens,
                    &["tokenize  lexer.cpp:88", "main  main.cpp:9"],
                ),
                function("order_book::insert_at_price_level  order_book.cpp:1203", book, &[]),
                function("idle  main.cpp:7", row(0, 0, 0.0, 0.0, 0.0), &[]),
            ],
            threads: vec![
                thread("matcher (4712)", book, Some(0.97)),
                thread("feed (4713)", tokens, None),
            ],
        }
    }

    /// Draws a scene, and compares the text with the file NAME.txt next to the tests.
    fn check(name: &str, view: &View, notes: &[String], (width, height): (u16, u16)) {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let figures = figures();
        let subject = "order_book (process 4711)";
        let scene = Scene { subject, figures: &figures, view, notes, has_colours: true };
        terminal.draw(|frame| draw(frame, &scene)).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        let text: String = (0..height).map(|y| format!("{}\n", line(y).trim_end())).collect();
        let file =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/{name}.txt"));
        if std::env::var_os("MALLARD_WRITE_SCREENS").is_some() {
            std::fs::write(&file, &text).unwrap();
        }
        let expected = std::fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(text, expected, "to accept: MALLARD_WRITE_SCREENS=1 cargo test -p mallard-top");
    }

    #[test]
    fn functions_fit_into_80_columns() {
        let notes =
            ["Blocks from before the recording are not counted; 12 of them were freed.".into()];
        check("functions", &View::default(), &notes, (80, 24));
    }

    #[test]
    fn the_call_stack_of_the_selected_function_is_below_the_function() {
        let view = View { shows_stack: true, selected: 1, ..View::default() };
        check("stack", &View { sort: Sort::Use, ..view }, &[], (80, 16));
    }

    #[test]
    fn threads_have_their_share_of_a_cpu() {
        let view = View { shows_threads: true, sort: Sort::Blocks, ..View::default() };
        check("threads", &view, &[], (120, 14));
    }

    #[test]
    fn a_filter_is_shown_while_it_is_typed() {
        let view = View { filter: "TOK".to_string(), is_typing: true, ..View::default() };
        check("filter", &view, &[], (80, 14));
    }

    #[test]
    fn a_terminal_without_room_for_the_list_is_no_error() {
        for (width, height) in [(1, 1), (20, 4), (80, 8), (300, 9)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            let (figures, view) = (figures(), View { selected: 9, ..View::default() });
            let scene = Scene {
                subject: "",
                figures: &figures,
                view: &view,
                notes: &[],
                has_colours: false,
            };
            terminal.draw(|frame| draw(frame, &scene)).unwrap();
        }
    }

    #[test]
    fn counts_and_changes_are_short() {
        let counts = [0.0, 999_999.0, 999_999.9, 9.96e6, 2.5e9].map(short);
        assert_eq!(counts, ["0", "999,999", "1.0 M", "10 M", "2.5 G"]);
        assert_eq!([1536.0, -2048.0, 0.4].map(change), ["+1.5 KiB", "-2.0 KiB", "0 B"]);
    }
}

//! What the user has chosen to see, and how a key changes that.

use crate::figures::{Figures, Row, Sort};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// What a key asks of the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Ends the recording, and the program if this command has started it.
    Quit,
    /// Keeps the recording as a trace when the recording ends, or discards it again.
    Keep,
}

/// What the user has chosen to see.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// The order of the list.
    pub sort: Sort,
    /// Only names that contain this text are listed. Upper and lower case are the same.
    pub filter: String,
    /// Whether the user is typing the filter.
    pub is_typing: bool,
    /// Whether the list has threads instead of functions.
    pub shows_threads: bool,
    /// Whether the call stack of the selected function is shown.
    pub shows_stack: bool,
    /// While this has figures, the view does not change.
    pub paused: Option<Figures>,
    /// The index of the selected row in the list.
    pub selected: usize,
}

/// A row of the list: a name, the figures, the CPU of a thread, and the call stack of a function.
pub type Listed<'a> = (&'a str, &'a Row, Option<f64>, &'a [String]);

impl View {
    /// Handles a key. `figures` are those that are shown, and `page` is the number of rows of the list.
    pub fn key(&mut self, key: KeyEvent, figures: &Figures, page: usize) -> Option<Request> {
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return Some(Request::Quit);
        }
        if self.is_typing {
            self.type_filter(key.code);
            return None;
        }
        let last = self.listed(figures).len().saturating_sub(1);
        match key.code {
            KeyCode::Char('q') => return Some(Request::Quit),
            KeyCode::Char('s') => return Some(Request::Keep),
            KeyCode::Char('p' | ' ') => {
                self.paused = if self.paused.is_some() { None } else { Some(figures.clone()) };
            }
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Char('t') => (self.shows_threads, self.selected) = (!self.shows_threads, 0),
            KeyCode::Char('u') => self.sort = Sort::Use,
            KeyCode::Char('g') => self.sort = Sort::Growth,
            KeyCode::Char('a') => self.sort = Sort::Bytes,
            KeyCode::Char('b') => self.sort = Sort::Blocks,
            KeyCode::Enter => self.shows_stack = !self.shows_stack,
            KeyCode::Esc => (self.shows_stack, self.filter) = (false, String::new()),
            KeyCode::Up | KeyCode::Char('k') => self.selected = self.selected.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.selected += 1,
            KeyCode::PageUp => self.selected = self.selected.saturating_sub(page),
            KeyCode::PageDown => self.selected += page,
            KeyCode::Home => self.selected = 0,
            KeyCode::End => self.selected = last,
            _ => {}
        }
        self.selected = self.selected.min(last);
        None
    }

    fn type_filter(&mut self, key: KeyCode) {
        self.selected = 0;
        match key {
            KeyCode::Char(letter) => self.filter.push(letter),
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => (self.is_typing, self.filter) = (false, String::new()),
            _ => {}
        }
    }

    /// Returns the rows of the list, in order.
    pub fn listed<'a>(&self, figures: &'a Figures) -> Vec<Listed<'a>> {
        let mut rows: Vec<Listed> = match self.shows_threads {
            true => {
                figures.threads.iter().map(|of| (&*of.name, &of.row, of.cpu, &[][..])).collect()
            }
            false => {
                figures.functions.iter().map(|of| (&*of.name, &of.row, None, &*of.stack)).collect()
            }
        };
        let filter = self.filter.to_lowercase();
        rows.retain(|(name, ..)| name.to_lowercase().contains(&filter));
        rows.sort_by(|a, b| {
            self.sort.key(b.1).total_cmp(&self.sort.key(a.1)).then_with(|| a.0.cmp(b.0))
        });
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{Function, Thread};

    fn figures() -> Figures {
        let row = |live_bytes, growth| Row { live_bytes, growth, ..Row::default() };
        let function =
            |name: &str, row| Function { name: name.to_string(), row, stack: Vec::new() };
        Figures {
            functions: vec![function("small", row(1, 9.0)), function("Large", row(7, -1.0))],
            threads: vec![Thread { name: "worker (5)".to_string(), row: row(3, 0.0), cpu: None }],
            ..Figures::default()
        }
    }

    fn names(view: &View) -> Vec<String> {
        view.listed(&figures()).iter().map(|(name, ..)| name.to_string()).collect()
    }

    fn press(view: &mut View, keys: &str) -> Option<Request> {
        let code = |letter| match letter {
            '\n' => KeyCode::Enter,
            '<' => KeyCode::Backspace,
            letter => KeyCode::Char(letter),
        };
        let press = |letter| view.key(KeyEvent::from(code(letter)), &figures(), 10);
        keys.chars().map(press).last().flatten()
    }

    #[test]
    fn keys_change_the_order_and_the_list() {
        let mut view = View::default();
        assert_eq!(names(&view), ["Large", "small"]);
        press(&mut view, "g");
        assert_eq!(names(&view), ["small", "Large"]);
        press(&mut view, "t");
        assert_eq!(names(&view), ["worker (5)"]);
    }

    #[test]
    fn a_filter_is_typed_and_keys_are_letters_meanwhile() {
        let mut view = View::default();
        assert_eq!(press(&mut view, "/LAq<\n"), None);
        assert_eq!((names(&view), view.is_typing), (vec!["Large".to_string()], false));
        view.key(KeyEvent::from(KeyCode::Esc), &figures(), 10);
        assert_eq!(names(&view).len(), 2);
    }

    #[test]
    fn the_selection_stays_in_the_list() {
        let mut view = View::default();
        press(&mut view, "jjjj");
        assert_eq!(view.selected, 1);
        view.key(KeyEvent::from(KeyCode::PageUp), &figures(), 10);
        assert_eq!(view.selected, 0);
        view.key(KeyEvent::from(KeyCode::Up), &Figures::default(), 10);
        assert_eq!(view.selected, 0);
    }

    #[test]
    fn control_c_quits_even_while_the_filter_is_typed() {
        let mut view = View::default();
        press(&mut view, "/x");
        let key = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(view.key(key, &figures(), 10), Some(Request::Quit));
        assert_eq!(press(&mut View::default(), "s"), Some(Request::Keep));
        assert_eq!(press(&mut View::default(), "q"), Some(Request::Quit));
    }

    #[test]
    fn a_paused_view_keeps_its_figures() {
        let mut view = View::default();
        press(&mut view, "p");
        assert_eq!(view.paused, Some(figures()));
        press(&mut view, "p");
        assert_eq!(view.paused, None);
    }
}

//! Shows figures in a separate thread, and handles keys there.

use crate::figures::Figures;
use crate::lines::{self, Format};
use crate::screen::{restore, Scene, Screen};
use crate::view::{Request, View};
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{sync_channel, Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often keys are read.
const PASS: Duration = Duration::from_millis(20);
/// At the end, the thread has this time to show the last figures and to restore the terminal.
const PATIENCE: Duration = Duration::from_secs(1);

/// Figures, and sentences about them.
pub struct Page {
    /// The program and its process id.
    pub subject: String,
    /// The figures.
    pub figures: Figures,
    /// Sentences about what the figures lack, and about saving.
    pub notes: Vec<String>,
}

/// What the user has asked for.
#[derive(Default)]
pub struct Wishes {
    /// How often the user has asked to quit.
    pub quits: AtomicU32,
    /// Whether the recording is saved at the end.
    pub keeps: Arc<AtomicBool>,
    /// Whether nobody can see the figures any more, because the terminal or the pipe is closed.
    pub is_closed: AtomicBool,
}

/// The thread that shows figures.
pub struct Shown {
    pages: Option<SyncSender<Page>>,
    thread: Option<JoinHandle<()>>,
    has_screen: bool,
}

impl Shown {
    /// Starts the thread. With [`Format::Screen`], the terminal shows a separate screen until the value is
    /// dropped. If the terminal cannot show one, the thread writes lines.
    pub fn start(format: Format, view: View, wishes: Arc<Wishes>) -> Shown {
        let screen = (format == Format::Screen).then(|| Screen::open().ok()).flatten();
        let has_screen = screen.is_some();
        let (pages, received) = sync_channel(1);
        let show = move || {
            let shown = match screen {
                Some(screen) => on_screen(screen, view, &received, &wishes),
                None => as_lines(format, &view, &received),
            };
            if shown.is_err() {
                wishes.is_closed.store(true, Ordering::Relaxed);
            }
        };
        // Without a thread, nothing is shown, and the program is recorded anyway.
        let thread = std::thread::Builder::new().spawn(show).ok();
        Shown { pages: Some(pages), thread, has_screen }
    }

    /// Shows a page, unless the thread still shows an earlier one.
    pub fn show(&self, page: Page) {
        if let Some(pages) = &self.pages {
            let _ = pages.try_send(page); // fails if the terminal or the pipe is slow or closed
        }
    }

    /// Shows the last page, if there is one, and ends the thread.
    pub fn finish(&mut self, page: Option<Page>) {
        let begin = Instant::now();
        let mut left = page;
        while let (Some(page), Some(pages)) = (left.take(), &self.pages) {
            if let Err(TrySendError::Full(page)) = pages.try_send(page) {
                left = (begin.elapsed() < PATIENCE).then_some(page);
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        self.pages = None; // ends the thread
        let is_running = |thread: &JoinHandle<()>| !thread.is_finished();
        while self.thread.as_ref().is_some_and(is_running) && begin.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
        match self.thread.take() {
            Some(thread) if thread.is_finished() => drop(thread.join()),
            // The thread waits for the terminal, and ends with this process.
            _ if self.has_screen => restore(),
            _ => {}
        }
    }
}

/// Draws pages and handles keys until the sender is dropped.
fn on_screen(
    mut screen: Screen,
    mut view: View,
    pages: &Receiver<Page>,
    wishes: &Wishes,
) -> io::Result<()> {
    let has_colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let mut rows = 1;
    let mut last: Option<Page> = None;
    loop {
        let mut is_changed = match pages.recv_timeout(PASS) {
            Ok(page) => last.replace(page).is_none() || view.paused.is_none(),
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        };
        let (keys, is_resized) = screen.keys()?;
        is_changed |= is_resized || !keys.is_empty();
        let Some(Page { subject, figures, notes }) = &last else { continue };
        for key in keys {
            let paused = view.paused.clone();
            match view.key(key, paused.as_ref().unwrap_or(figures), rows) {
                Some(Request::Quit) => drop(wishes.quits.fetch_add(1, Ordering::Relaxed)),
                Some(Request::Keep) => drop(wishes.keeps.fetch_xor(true, Ordering::Relaxed)),
                None => {}
            }
        }
        if is_changed {
            let figures = view.paused.as_ref().unwrap_or(figures);
            rows = screen.draw(&Scene { subject, figures, view: &view, notes, has_colours })?;
        }
    }
}

/// Writes a line for each page until the sender is dropped.
fn as_lines(format: Format, view: &View, pages: &Receiver<Page>) -> io::Result<()> {
    for Page { figures, .. } in pages {
        let line = match format {
            Format::Json => lines::json(&figures, view),
            Format::Lines | Format::Screen => lines::text(&figures, view),
        };
        let mut out = io::stdout().lock();
        out.write_all(line.as_bytes()).and_then(|()| out.flush())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> Page {
        Page { subject: String::new(), figures: Figures::default(), notes: Vec::new() }
    }

    #[test]
    fn a_thread_that_shows_nothing_delays_neither_pages_nor_the_end() {
        let (pages, received) = sync_channel(1);
        let mut shown = Shown { pages: Some(pages), thread: None, has_screen: false };
        for _ in 0..100 {
            shown.show(page());
        }
        shown.finish(Some(page()));
        assert_eq!(received.iter().count(), 1);
    }
}

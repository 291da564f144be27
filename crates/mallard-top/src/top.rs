//! Observes a recording, and shows its figures.

use crate::figures::{Figures, Meter, System};
use crate::lines::{self, Format};
use crate::screen::{Scene, Screen};
use crate::view::{Request, Sort, View};
use mallard_measure::output::units::{bytes, count};
use mallard_record::ring::Owner;
use mallard_record::session::{Log, Observer};
use mallard_record::system::Memory;
use mallard_trace::live::{Live, Named};
use nix::sys::signal::{raise, Signal};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Looking up names uses at most this share of the time, because it reads the debug information anew
/// each time.
const LOOKING_MAX: f64 = 0.1;

/// The options of a live view.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program and its process id.
    pub subject: String,
    /// Whether the process was already running when the recording began.
    pub is_attached: bool,
    /// How often the figures change.
    pub interval: Duration,
    /// How the list is ordered at first.
    pub sort: Sort,
    /// Only names that contain this text are listed at first.
    pub filter: String,
    /// How the figures are shown.
    pub format: Format,
    /// The name of the trace if the recording is saved.
    pub trace: PathBuf,
    /// Whether the recording is saved. The key `s` changes this.
    pub keeps: Arc<AtomicBool>,
    /// Directories with debug information.
    pub debug_folders: Vec<PathBuf>,
}

/// Looks up names in a separate thread, and waits between two look-ups.
struct Names {
    thread: Option<JoinHandle<Named>>,
    begin: Instant,
    next: Instant,
}

/// A live view of a recording.
pub struct Top {
    options: Options,
    live: Live,
    system: System,
    meter: Meter,
    figures: Figures,
    view: View,
    names: Names,
    /// `None` without a screen.
    screen: Option<Screen>,
    /// The number of rows of the list that fit on the screen.
    page: usize,
    begin: Instant,
    next: Instant,
    has_colours: bool,
    /// Whether stdout or the terminal can still be written.
    is_seen: bool,
}

impl Top {
    /// Makes a view. With [`Format::Screen`], switches the terminal to a separate screen until the view is
    /// dropped. If the terminal cannot be switched, the view writes lines.
    pub fn open(mut options: Options) -> Top {
        let screen = (options.format == Format::Screen).then(|| Screen::open().ok()).flatten();
        if screen.is_none() && options.format == Format::Screen {
            options.format = Format::Lines;
        }
        let now = Instant::now();
        let view = View { sort: options.sort, filter: options.filter.clone(), ..View::default() };
        let next = now + options.interval;
        Top {
            options,
            live: Live::default(),
            system: System::default(),
            meter: Meter::default(),
            figures: Figures::default(),
            view,
            names: Names { thread: None, begin: now, next: now },
            screen,
            page: 1,
            begin: now,
            next,
            has_colours: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
            is_seen: true,
        }
    }

    /// Starts to look up names, or adds the names that were found.
    fn look_up(&mut self) {
        let now = Instant::now();
        if let Some(thread) = self.names.thread.take_if(|thread| thread.is_finished()) {
            let took = self.names.begin.elapsed().div_f64(LOOKING_MAX);
            self.names.next = now + took;
            if let Ok(named) = thread.join() {
                self.live.name(named);
            }
        }
        if self.names.thread.is_some() || now < self.names.next {
            return;
        }
        if let Some(unnamed) = self.live.unnamed() {
            let folders = self.options.debug_folders.clone();
            self.names.begin = now;
            // Without a thread, the names stay unknown.
            let look_up = move || unnamed.look_up(&folders);
            self.names.thread = std::thread::Builder::new().spawn(look_up).ok();
        }
    }

    /// Handles the keys, and returns whether the screen has to be drawn again.
    fn handle_keys(&mut self) -> io::Result<bool> {
        let Some(screen) = &self.screen else { return Ok(false) };
        let (keys, is_resized) = screen.keys()?;
        let is_changed = is_resized || !keys.is_empty();
        for key in keys {
            let figures = self.view.paused.clone();
            let figures = figures.as_ref().unwrap_or(&self.figures);
            match self.view.key(key, figures, self.page) {
                Some(Request::Quit) => end(),
                Some(Request::Keep) => {
                    self.options.keeps.fetch_xor(true, Ordering::Relaxed);
                }
                None => {}
            }
        }
        Ok(is_changed)
    }

    fn draw(&mut self, log: Log) -> io::Result<()> {
        let notes = self.notes(log);
        let figures = self.view.paused.as_ref().unwrap_or(&self.figures);
        let scene = Scene {
            subject: &self.options.subject,
            figures,
            view: &self.view,
            notes: &notes,
            has_colours: self.has_colours,
        };
        if let Some(screen) = &mut self.screen {
            self.page = screen.draw(&scene)?;
        }
        Ok(())
    }

    /// Returns sentences about what the figures lack, and about saving.
    fn notes(&self, log: Log) -> Vec<String> {
        let mut notes = Vec::new();
        let Figures { unknown_frees, lost, .. } = self.figures;
        if self.options.is_attached {
            let freed = count(unknown_frees);
            notes.push(format!(
                "Blocks from before the recording are not counted; {freed} of them were freed."
            ));
        }
        if lost > 0 {
            let lost = count(lost);
            notes.push(format!("{lost} events are missing, because the ring buffer was full."));
        }
        let (size, trace) = (bytes(log.bytes), self.options.trace.display());
        match (self.options.keeps.load(Ordering::Relaxed), log.is_closed) {
            (true, false) => notes.push(format!("At the end, the events ({size}) become {trace}.")),
            (true, true) => {
                notes.push(format!("At the end, the first {size} of events become {trace}."))
            }
            (false, true) => {
                notes.push(format!("The event log is full; s saves its first {size}."))
            }
            (false, false) => {}
        }
        notes
    }

    fn write_line(&mut self) -> io::Result<()> {
        let line = match self.options.format {
            Format::Screen => return Ok(()),
            Format::Lines => lines::text(&self.figures, &self.view),
            Format::Json => lines::json(&self.figures, &self.view),
        };
        let mut out = io::stdout().lock();
        out.write_all(line.as_bytes()).and_then(|()| out.flush())
    }

    fn try_show(&mut self, log: Log) -> io::Result<()> {
        let now = Instant::now();
        let is_due = now >= self.next;
        if is_due {
            self.next = now + self.options.interval;
            let time = self.begin.elapsed();
            self.figures = self.meter.read(&self.live, &self.system, time, log.lost);
            self.write_line()?;
        }
        if self.handle_keys()? || is_due {
            self.draw(log)?;
        }
        Ok(())
    }
}

impl Observer for Top {
    fn records(&mut self, owner: Owner, records: &[u8]) {
        self.live.read(owner.thread, records);
    }

    fn memory(&mut self, process: u32, memory: &Memory) {
        self.system.processes.insert(process, Memory { mapped: None, ..memory.clone() });
    }

    fn cpu(&mut self, thread: u32, cpu_ns: u64) {
        self.system.threads.insert(thread, cpu_ns);
    }

    fn show(&mut self, t: u64, log: Log) {
        self.live.advance(t);
        self.look_up();
        if self.is_seen && self.try_show(log).is_err() {
            // The terminal or the pipe is closed. A program that this command has started runs on.
            self.is_seen = false;
            if self.options.is_attached {
                end();
            }
        }
    }
}

/// Ends the recording, as SIGTERM from outside does: this command ends the program that it has started,
/// or detaches from the process.
fn end() {
    let _ = raise(Signal::SIGTERM); // cannot fail for a valid signal
}

//! Observes a recording, and computes its figures.

use crate::figures::{Figures, Meter, Sort, System};
use crate::lines::Format;
use crate::shown::{Page, Shown, Wishes};
use crate::view::View;
use mallard_measure::output::units::{bytes, count};
use mallard_record::ring::Owner;
use mallard_record::session::{Log, Observer};
use mallard_record::system::Memory;
use mallard_trace::live::{Live, Named};
use nix::sys::signal::Signal;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Looking up names uses at most this share of the time, because it reads the debug information anew
/// each time.
const LOOKING_MAX: f64 = 0.1;

/// At the end, lines wait at most this time for names.
const LAST_LOOK: Duration = Duration::from_secs(2);

/// The options of a live view.
#[derive(Clone, Debug)]
pub struct Options {
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

/// A live view of a recording. Dropping the view shows the last figures, and restores the terminal.
pub struct Top {
    options: Options,
    subject: String,
    trace: PathBuf,
    live: Live,
    system: System,
    meter: Meter,
    names: Names,
    shown: Shown,
    wishes: Arc<Wishes>,
    /// How many requests to quit were passed on to the session.
    quits: u32,
    log: Log,
    begin: Instant,
    /// When the next figures are due.
    next: Instant,
}

impl Top {
    /// Makes a view before the recording begins.
    pub fn open(options: Options) -> Top {
        let wishes = Arc::new(Wishes { keeps: options.keeps.clone(), ..Wishes::default() });
        let view = View { sort: options.sort, filter: options.filter.clone(), ..View::default() };
        let now = Instant::now();
        Top {
            shown: Shown::start(options.format, view, wishes.clone()),
            subject: String::new(),
            trace: PathBuf::new(),
            live: Live::default(),
            system: System::default(),
            meter: Meter::default(),
            names: Names { thread: None, begin: now, next: now },
            wishes,
            quits: 0,
            log: Log::default(),
            begin: now,
            next: now,
            options,
        }
    }

    /// Begins the view of a process. `trace` is the name of the trace if the recording is saved.
    pub fn begin(mut self, name: &str, process: u32, trace: PathBuf) -> Top {
        self.subject = format!("{name} (process {process})");
        self.trace = trace;
        self.begin = Instant::now();
        self
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
        if self.names.thread.is_none() && now >= self.names.next {
            self.begin_to_look_up(now);
        }
    }

    fn begin_to_look_up(&mut self, now: Instant) {
        if let Some(unnamed) = self.live.unnamed() {
            let folders = self.options.debug_folders.clone();
            self.names.begin = now;
            // Without a thread, the names stay unknown.
            let look_up = move || unnamed.look_up(&folders);
            self.names.thread = std::thread::Builder::new().spawn(look_up).ok();
        }
    }

    fn page(&mut self) -> Page {
        let time = self.begin.elapsed();
        let figures = self.meter.read(&self.live, &self.system, time, self.log.lost);
        Page { subject: self.subject.clone(), notes: self.notes(&figures), figures }
    }

    /// Returns sentences about what the figures lack, and about saving.
    fn notes(&self, figures: &Figures) -> Vec<String> {
        let mut notes = Vec::new();
        if self.options.is_attached {
            let freed = count(figures.unknown_frees);
            notes.push(format!(
                "Blocks from before the recording are not counted; {freed} of them were freed."
            ));
        }
        if figures.lost > 0 {
            let lost = count(figures.lost);
            notes.push(format!("{lost} events are missing, because the ring buffer was full."));
        }
        let (size, trace) = (bytes(self.log.bytes), self.trace.display());
        match (self.options.keeps.load(Ordering::Relaxed), self.log.is_closed) {
            (true, false) => notes.push(format!("At the end, the events ({size}) become {trace}.")),
            (true, true) => {
                notes.push(format!("At the end, the first {size} of events become {trace}."));
            }
            (false, true) => {
                notes.push(format!("The event log is full; s saves its first {size}."));
            }
            (false, false) => {}
        }
        if self.quits > 0 {
            notes
                .push("Waiting for the end; q again kills a program that was started.".to_string());
        }
        notes
    }

    /// Returns the signal with which the recording should end. `None` if it should go on.
    fn wanted_end(&mut self) -> Option<Signal> {
        let is_closed = self.wishes.is_closed.load(Ordering::Relaxed) && self.options.is_attached;
        let quits = self.wishes.quits.load(Ordering::Relaxed).max(u32::from(is_closed));
        let is_new = quits > self.quits;
        self.quits = quits;
        is_new.then_some(if quits > 1 { Signal::SIGKILL } else { Signal::SIGTERM })
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
        self.system.add(thread, cpu_ns, Instant::now());
    }

    fn ended(&mut self, process: u32, t: u64) {
        self.live.end(process, t);
        self.system.end(process);
    }

    fn show(&mut self, t: u64, log: Log) -> Option<Signal> {
        self.live.advance(t);
        self.look_up();
        self.log = log;
        let end = self.wanted_end();
        let now = Instant::now();
        if now >= self.next || end.is_some() {
            self.next = now.checked_add(self.options.interval).unwrap_or(now);
            let page = self.page();
            self.shown.show(page);
        }
        end
    }
}

impl Drop for Top {
    fn drop(&mut self) {
        self.live.advance(u64::MAX);
        // A short program has ended before its names were looked up.
        let begin = Instant::now();
        while self.options.format != Format::Screen && begin.elapsed() < LAST_LOOK {
            self.names.next = begin;
            self.look_up();
            if self.names.thread.is_none() {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let has_begun = !self.subject.is_empty();
        let page = has_begun.then(|| self.page());
        self.shown.finish(page);
    }
}

//! Sends work to a server while it is recorded, and then terminates the server.

use mallard_measure::process::child::Stop;
use mallard_measure::process::launch::Running;
use mallard_measure::process::load::Load;
use mallard_measure::process::orphans::descendants;
use mallard_trace::manifest::Manifest;
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The time in which a server must start, and the time in which it must exit after SIGTERM.
/// Recording makes the server slower.
const START: Duration = Duration::from_secs(30);
const GRACE: Duration = Duration::from_secs(30);
/// The maximum time of a load, unless the user sets another one.
const LOAD_MAX: Duration = Duration::from_secs(600);
/// How often this thread checks whether the server has ended.
const PAUSE: Duration = Duration::from_millis(10);
/// If a server ends within this time after its load failed, the load failed because the server
/// ended.
const CRASH: Duration = Duration::from_millis(200);

/// The name of the option group of which one option is required with `--for`.
pub const WORK: &str = "work";

/// The work of a server: a shell command, and the time for which it is repeated.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ServerWork {
    /// A shell command that gives work to a server. The program is started, CMD is repeated until it
    /// succeeds, for at most 30 seconds, and the program is ended by SIGTERM, or by SIGKILL 30 seconds
    /// later. CMD must end by itself, also while the server does not answer yet. The exit status is 0,
    /// or 125 if the load fails.
    #[arg(long, value_name = "CMD", group = WORK)]
    pub load: Option<String>,
    /// Repeats the load for this time. With --pid, the process is recorded for this time.
    #[arg(long = "for", value_name = "TIME", value_parser = mallard_measure::parse::duration, requires = WORK)]
    pub repeated_for: Option<Duration>,
    /// Kills CMD if it takes longer than this time, 10 minutes by default. The recording then ends;
    /// the trace is written.
    #[arg(long, value_name = "TIME", value_parser = mallard_measure::parse::duration, requires = "load")]
    pub timeout: Option<Duration>,
}

impl ServerWork {
    /// Returns this work, or the work of the recorded run if the user named none.
    pub fn or_as_recorded(self, manifest: &Manifest) -> ServerWork {
        if self.load.is_some() {
            return self;
        }
        let load = manifest.notes.load.clone();
        let seconds = manifest.notes.load_seconds;
        let time = seconds.filter(|_| load.is_some()).map(Duration::try_from_secs_f64);
        ServerWork { load, repeated_for: time.and_then(Result::ok), timeout: self.timeout }
    }

    /// Returns whether each run with this work surely does as much as the recorded run. False if
    /// the work differs, or if either load is repeated for some time.
    pub fn is_that_of(&self, manifest: &Manifest) -> bool {
        let is_once = manifest.notes.loads == Some(1);
        let is_server = self.load.is_some();
        self.load == manifest.notes.load && (!is_server || is_once && self.repeated_for.is_none())
    }
}

/// Why the load of a server stopped early.
#[derive(Debug)]
pub enum Unserved {
    /// The server had ended.
    Ended,
    /// The load failed in this way.
    Failed(String),
    /// The load ran for too long in this way, and was killed.
    Hung(String),
}

/// A thread that gives a server its work.
pub struct Serving(JoinHandle<Result<u64, Unserved>>);

impl Serving {
    /// Starts the load for a server that was just started. `None` if there is no load.
    pub fn begin(work: &ServerWork, running: &Running) -> Option<Serving> {
        let (command, repeated_for) = (work.load.clone()?, work.repeated_for);
        let limit = work.timeout.unwrap_or(LOAD_MAX);
        let process = Pid::from_raw(running.process() as i32);
        let has_ended = running.ends_by_signals();
        Some(Serving(std::thread::spawn(move || {
            let interrupted = &*has_ended;
            let load = Load { command: &command, repeated_for, start: START, limit, interrupted };
            let served = load.run(|| alive(&has_ended)).map_err(|stop| why(stop, &has_ended));
            end(process, &has_ended);
            Ok(served?.count)
        })))
    }

    /// Waits for the end of the load, and returns how often the command succeeded.
    pub fn finish(self) -> Result<u64, Unserved> {
        self.0.join().unwrap_or(Err(Unserved::Ended))
    }
}

/// Returns an error if the server has ended.
fn alive(has_ended: &AtomicBool) -> Result<(), Stop> {
    match has_ended.load(Ordering::Relaxed) {
        true => Err(Stop::Interrupted),
        false => Ok(()),
    }
}

/// Returns why a load stopped. If the server ends soon afterwards, the load failed because of that.
fn why(stop: Stop, has_ended: &AtomicBool) -> Unserved {
    let begin = Instant::now();
    while begin.elapsed() < CRASH && !has_ended.load(Ordering::Relaxed) {
        std::thread::sleep(PAUSE);
    }
    match stop {
        _ if has_ended.load(Ordering::Relaxed) => Unserved::Ended,
        Stop::Broken(how) => Unserved::Failed(how),
        Stop::LoadHangs(how) => Unserved::Hung(how),
        Stop::Failed(failure) => Unserved::Failed(failure.what().to_string()),
        Stop::Interrupted | Stop::TooLong => Unserved::Ended,
    }
}

/// Terminates a server and the processes that it has started, by SIGTERM, or by SIGKILL if they do
/// not exit in time. No event is lost, because the ring outlives the server.
fn end(process: Pid, has_ended: &AtomicBool) {
    if has_ended.load(Ordering::Relaxed) {
        return;
    }
    let mut all = descendants(process);
    all.insert(0, process);
    let signal = |signal: Signal, all: &[Pid]| {
        for process in all {
            let _ = kill(*process, signal); // fails if the process has ended
        }
    };
    signal(Signal::SIGTERM, &all);
    let begin = Instant::now();
    let is_over = |all: &[Pid]| {
        has_ended.load(Ordering::Relaxed) && all[1..].iter().all(|p| kill(*p, None).is_err())
    };
    while begin.elapsed() < GRACE && !is_over(&all) {
        std::thread::sleep(PAUSE);
    }
    if !is_over(&all) {
        all.extend(descendants(process));
        signal(Signal::SIGKILL, &all);
    }
}

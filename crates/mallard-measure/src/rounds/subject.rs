//! Runs a program once in an environment, for example under one malloc.

use crate::clock;
pub use crate::process::child::{ending, failure, Output, Stop};
use crate::process::child::{Child, End, Seen, Start};
use crate::process::launch::Ended;
use crate::process::load::{self, Load};
use crate::process::orphans;
use nix::sys::signal::Signal;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The time limit for the start of a server.
const START: Duration = Duration::from_secs(10);
/// The time limit for the exit of a server after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);

/// A subject of a comparison, which is a program in an environment.
#[derive(Clone, Debug, Default)]
pub struct Subject {
    /// The name in tables.
    pub name: String,
    /// The path of the program.
    pub path: PathBuf,
    /// The name and the arguments of the program.
    pub words: Vec<OsString>,
    /// Environment variables to set, or to remove (`None`).
    pub variables: Vec<(OsString, Option<OsString>)>,
    /// The library to preload.
    pub library: Option<PathBuf>,
    /// Whether the subject is the base with a setting of its malloc that affects only page faults
    /// and memory. If so, the first run shows whether the setting has an effect.
    pub is_setting: bool,
}

/// The maximum CPU time of a page fault in nanoseconds, including a share of the system calls that
/// map and unmap the page. On the slowest machine in results/, a page fault took 8 microseconds in
/// blocks of one page that were mapped separately.
const FAULT_NS: f64 = 10_000.0;
/// The number of bytes by which the peaks of equal runs may differ. The kernel counts resident
/// pages separately for each processor and adds up these counters only now and then. Also, a stack
/// begins at a random address.
const PEAK_VARIES: f64 = 512.0 * 1024.0;

/// The CPU time, memory and page faults of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// CPU time of the program and of the processes that it waited for, in nanoseconds.
    pub cpu_ns: f64,
    /// The part of the CPU time that was spent in the kernel, in nanoseconds.
    pub system_ns: f64,
    /// Wall time in nanoseconds.
    pub wall_ns: f64,
    /// The peak RSS in bytes of the process with the largest peak.
    pub peak_rss: f64,
    /// The resident bytes after the last call of a replay. 0 for other programs.
    pub end_rss: f64,
    /// The number of page faults.
    pub faults: f64,
}

impl Figures {
    /// Returns whether page faults and peak are nearly the same as those of the base. If so, a
    /// setting that affects only pages cannot change more than `min_gain`, a share of the base.
    pub fn shows_no_effect(&self, base: &Figures, min_gain: f64) -> bool {
        let faults = (self.faults - base.faults).abs() * FAULT_NS;
        let memory = (self.peak_rss - base.peak_rss).abs();
        let same_memory = memory < (min_gain * base.peak_rss).max(PEAK_VARIES);
        faults < min_gain * base.cpu_ns && same_memory
    }

    /// Computes the figures of a run. Times and page faults are divided by `count`, the number of
    /// loads that the run served.
    fn of(ended: &Ended, wall: Duration, count: u64) -> Figures {
        let count = count as f64;
        Figures {
            cpu_ns: (ended.user_ns + ended.system_ns) as f64 / count,
            system_ns: ended.system_ns as f64 / count,
            wall_ns: wall.as_nanos() as f64 / count,
            peak_rss: ended.peak_rss as f64,
            end_rss: 0.0,
            faults: (ended.minor_faults + ended.major_faults) as f64 / count,
        }
    }
}

/// One complete run.
pub struct Run {
    /// The figures of the run.
    pub figures: Figures,
    /// The output of the load command if there is one, otherwise the output of the program.
    pub output: Output,
    /// The status as `wait` returns it; 0 in a run with a load.
    pub status: i32,
    /// Whether the library was found in the mappings of the process.
    pub seen: Seen,
    /// The names of the processes that the program left running.
    pub left: Vec<String>,
    /// The time of the whole run, including the setup.
    pub took: Duration,
}

/// The settings of one run of a subject.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// The length of an environment variable that moves the stack. The stack's address alone can
    /// change the CPU time of a program by some percent.
    pub padding: usize,
    /// The time after which the run is killed.
    pub limit: Duration,
    /// Whether to search the mappings of the process for the library, and to wait for processes
    /// that the program leaves running.
    pub watches: bool,
}

/// The settings that all runs have in common.
#[derive(Clone, Default)]
pub struct Runner {
    /// The file for stdin.
    pub stdin: Option<PathBuf>,
    /// A shell command to run before each run.
    pub setup: Option<String>,
    /// A shell command that sends work to the program, which is a server.
    pub load: Option<String>,
    /// The time for which the load is repeated.
    pub repeated_for: Option<Duration>,
    /// Whether to find processes that a program leaves running, and to kill them.
    pub ends_orphans: bool,
    /// A flag that is set when the user interrupts mallard.
    pub interrupted: Arc<AtomicBool>,
}

impl Runner {
    /// Runs a subject once, after the setup.
    pub fn run_once(&self, subject: &Subject, turn: Turn) -> Result<Run, Stop> {
        let begin = Instant::now();
        self.set_up()?;
        let set_up = begin.elapsed();
        let mut variables = subject.variables.clone();
        variables.push(("MALLARD_PADDING".into(), Some("x".repeat(turn.padding).into())));
        let start = Start {
            path: subject.path.clone(),
            words: subject.words.clone(),
            variables,
            stdin: self.stdin.clone(),
            captures: self.load.is_none(),
            orphans: self.grace(turn),
            library: subject.library.clone().filter(|_| turn.watches),
        };
        let child = Child::start(&start)?;
        let run = match &self.load {
            Some(load) => self.serve(child, load, turn.limit),
            None => self.finish(child, turn.limit),
        };
        // The duration of a run does not include the wait for processes that the program leaves
        // running.
        let of_load = self.load.as_ref().map(|_| begin.elapsed());
        let own = |run: &Run| of_load.unwrap_or(set_up + run.took);
        let took = clock::ran(run.as_ref().map_or(Duration::ZERO, own));
        run.map(|run| Run { took, ..run })
    }

    /// Returns the time that processes left running by a program have to exit. `None` if such
    /// processes are not searched for. With a load, they cannot be recognised, because the load
    /// command is also a child of this process.
    fn grace(&self, turn: Turn) -> Option<Duration> {
        let grace = if turn.watches { orphans::GRACE } else { Duration::ZERO };
        (self.ends_orphans && self.load.is_none()).then_some(grace)
    }

    fn finish(&self, mut child: Child, limit: Duration) -> Result<Run, Stop> {
        match child.wait(limit, &self.interrupted)? {
            End::Interrupted => Err(Stop::Interrupted),
            End::TooLong => Err(Stop::TooLong),
            End::Ended(ended, wall) => Ok(Run {
                figures: Figures::of(&ended, wall, 1),
                output: std::mem::take(&mut child.output),
                status: ended.status,
                seen: child.seen,
                left: std::mem::take(&mut child.left),
                took: wall,
            }),
        }
    }

    /// Runs the load against the program, and then terminates the program.
    fn serve(&self, mut server: Child, load: &str, limit: Duration) -> Result<Run, Stop> {
        let (repeated_for, interrupted) = (self.repeated_for, &*self.interrupted);
        let load = Load { command: load, repeated_for, start: START, limit, interrupted };
        let served = load.run(|| self.alive(&mut server))?;
        let ended = terminate(&mut server)?;
        // The first load includes the start of the program, so it counts only if it is the only
        // one.
        let wall = match served.count as u32 {
            1 => served.first - server.begin,
            count => (served.last - served.first) * count / (count - 1),
        };
        Ok(Run {
            figures: Figures::of(&ended, wall, served.count),
            output: served.output,
            status: 0,
            seen: server.seen,
            left: Vec::new(),
            took: wall,
        })
    }

    /// Returns an error if the program has ended.
    fn alive(&self, server: &mut Child) -> Result<(), Stop> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(Stop::Interrupted);
        }
        if server.poll(Duration::ZERO)? {
            let ended = server.finish()?;
            let how = ending(ended.status, &server.output);
            return Err(Stop::Broken(format!("it ended before its load finished: {how}")));
        }
        server.watch();
        Ok(())
    }

    /// Runs the setup, if there is one.
    pub fn set_up(&self) -> Result<(), Stop> {
        match &self.setup {
            Some(setup) => load::set_up(setup, &self.interrupted),
            None => Ok(()),
        }
    }
}

/// Ends a server by SIGTERM, or by SIGKILL if the server does not end in time.
fn terminate(server: &mut Child) -> Result<Ended, Stop> {
    server.signal(Signal::SIGTERM);
    let begin = Instant::now();
    while begin.elapsed() < GRACE && !server.poll(Duration::from_millis(50))? {}
    Ok(server.finish()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_changes_page_faults_and_peak_by_less_than_the_minimum_gain_has_no_effect() {
        // The figures of perl with 500,000 strings, under glibc and under glibc with two settings.
        let of =
            |cpu_ns, faults, peak_rss| Figures { cpu_ns, faults, peak_rss, ..Figures::default() };
        let base = of(1.28e9, 31_787.0, 129.5e6);
        assert!(of(1.53e9, 31_776.0, 129.6e6).shows_no_effect(&base, 0.02));
        assert!(!of(1.28e9, 31_787.0, 120.0e6).shows_no_effect(&base, 0.02));
        // The figures of git log, without and with a trim threshold of 1 GiB.
        let git = of(2.7e8, 8_363.0, 36.2e6);
        assert!(!of(2.7e8, 5_975.0, 36.3e6).shows_no_effect(&git, 0.02));
        assert!(of(2.7e8, 8_428.0, 36.2e6).shows_no_effect(&git, 0.02));
        // The figures of a program that needs 7 MB. Its peak varies by 3 % from run to run.
        let small = of(2.0e7, 7_279.0, 7.0e6);
        assert!(of(2.0e7, 7_278.0, 6.8e6).shows_no_effect(&small, 0.02));
        assert!(!of(2.0e7, 7_278.0, 6.4e6).shows_no_effect(&small, 0.02));
    }
}

//! The subject of a recording: a program that this command has started, or a process that was
//! already running.

use crate::attach::{Attached, Outcome};
use mallard_measure::process::launch::{Ended, Running};
use mallard_measure::process::orphans::descendants;
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;
use std::time::Duration;

/// A process that is recorded.
pub enum Subject {
    /// A program that this command has started.
    Started(Running),
    /// A process that was already running.
    Attached(Box<Attached>),
}

impl Subject {
    /// Returns the process id.
    pub fn process(&self) -> u32 {
        match self {
            Subject::Started(running) => running.process(),
            Subject::Attached(attached) => attached.process(),
        }
    }

    /// Waits until the recording ends, with the program or on request, but at most `limit`. Returns
    /// whether it has ended.
    pub fn wait(&mut self, limit: Duration) -> io::Result<bool> {
        match self {
            Subject::Started(running) => running.wait(limit),
            Subject::Attached(attached) => attached.wait(limit),
        }
    }

    /// Returns the figures of the process. Call it only after `wait` has returned true.
    pub fn reap(&self) -> io::Result<Ended> {
        match self {
            Subject::Started(running) => running.reap(),
            Subject::Attached(attached) => Ok(attached.reap()),
        }
    }

    /// Returns the signal that asked for the end of the recording. `None` if no such signal
    /// arrived.
    pub fn interrupted_by(&self) -> Option<i32> {
        match self {
            Subject::Started(running) => running.interrupted_by,
            Subject::Attached(attached) => attached.interrupted_by(),
        }
    }

    /// Returns a flag. While it is set, SIGINT and similar signals end this process.
    pub fn ends_by_signals(&self) -> Arc<AtomicBool> {
        match self {
            Subject::Started(running) => running.ends_by_signals(),
            Subject::Attached(attached) => attached.ends_by_signals(),
        }
    }

    /// Ends the recording: sends a signal to a program that was started and is not reaped yet, and to
    /// the processes that the program has started. Detaches from a process that was already running.
    pub fn end(&self, signal: Signal) {
        match self {
            Subject::Attached(attached) => attached.end(),
            Subject::Started(running) => {
                let program = Pid::from_raw(running.process() as i32);
                for process in descendants(program).into_iter().chain([program]) {
                    let _ = kill(process, signal); // fails if the process has ended
                }
            }
        }
    }

    /// Returns whether threads of the process may still own segments of the ring although they
    /// write no more.
    pub fn leaves_segments(&self) -> bool {
        matches!(self, Subject::Attached(_))
    }

    /// Returns whether a thread in the ring can be found in the system by its id.
    pub fn has_known_threads(&self) -> bool {
        match self {
            Subject::Started(_) => true,
            Subject::Attached(attached) => attached.has_known_threads(),
        }
    }

    /// Returns how the recording of a running process went. `None` for a program that was started.
    pub fn ending(&self) -> Option<Ending> {
        match self {
            Subject::Started(_) => None,
            Subject::Attached(attached) => Some(Ending {
                process: attached.process(),
                outcome: attached.outcome,
                age: attached.age,
                longest_stop: attached.longest_stop,
                ticks: attached.ticks,
            }),
        }
    }
}

/// How the recording of a running process went.
#[derive(Clone, Copy, Debug)]
pub struct Ending {
    /// The process id.
    pub process: u32,
    /// Whether the process runs on.
    pub outcome: Outcome,
    /// For how long the process had run when the recording began, in seconds.
    pub age: f64,
    /// The longest time for which a thread was stopped.
    pub longest_stop: Duration,
    /// The ticks that a thread of the process needed to load the recorder.
    pub ticks: u64,
}

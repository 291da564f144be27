//! Controls the recording of a running process that has loaded the recorder, until the recorder
//! becomes inactive again.

use crate::attach::load::Loaded;
use crate::attach::refusals::Target;
use mallard_measure::process::launch::{end_descriptor, Ended};
use mallard_measure::process::proc::{self, Process, Stat};
use nix::errno::Errno;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::socket::{recv, send, MsgFlags};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Messages of `src/record/attach_request.hpp`.
const LOOK_AGAIN: &[u8] = b"l";
const DETACH: &[u8] = b"d";

/// How often the recorder looks for modules that were loaded without a call that it sees.
const LOOK: Duration = Duration::from_millis(100);
/// The maximum time until the recorder answers.
const PATIENCE: Duration = Duration::from_secs(15);
/// The maximum time from the moment when a process that ends closes its socket until the system
/// reports the end of the process.
const LAST: Duration = Duration::from_secs(1);

/// How a recording of a running process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The original entries are restored, and the process continues.
    Detached,
    /// The process has ended.
    Ended,
    /// The process has executed another program.
    Executed,
    /// The recorder does not answer. The process may be stopped.
    Silent,
}

/// Signals that ask this command to end. The first one ends the recording.
pub struct Interrupt {
    /// The number of the signal that arrived last, or 0.
    signal: Arc<AtomicUsize>,
    /// Whether a signal arrived.
    pub came: Arc<AtomicBool>,
    has_ended: Arc<AtomicBool>,
}

impl Interrupt {
    /// Installs handlers for these signals.
    pub fn take() -> io::Result<Interrupt> {
        let (signal, came, has_ended) = <(Arc<AtomicUsize>, Arc<AtomicBool>, Arc<_>)>::default();
        for number in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
            signal_hook::flag::register_conditional_default(number, Arc::clone(&has_ended))?;
            signal_hook::flag::register(number, came.clone())?;
            signal_hook::flag::register_usize(number, signal.clone(), number as usize)?;
        }
        Ok(Interrupt { signal, came, has_ended })
    }

    /// Returns the signal that arrived. `None` if no signal arrived.
    pub fn signal(&self) -> Option<i32> {
        Some(self.signal.load(Ordering::Relaxed) as i32).filter(|&signal| signal != 0)
    }
}

/// A running process that is recorded.
pub struct Attached {
    process: u32,
    is_in_own_pids: bool,
    executable: PathBuf,
    /// A descriptor that becomes readable when the process ends.
    end: Option<OwnedFd>,
    socket: OwnedFd,
    interrupt: Interrupt,
    deadline: Option<Instant>,
    /// The figures of the process when the recording began, and now.
    first: Ended,
    last: Ended,
    looked: Instant,
    asked: Option<Instant>,
    /// How the recording ended.
    pub outcome: Outcome,
    /// The time for which the process had run when the recording began, in seconds.
    pub age: f64,
    /// The longest time for which a thread was stopped.
    pub longest_stop: Duration,
    /// The ticks that a thread of the process needed to load the recorder.
    pub ticks: u64,
}

impl Attached {
    /// Begins to control a process that has just loaded the recorder. The recording ends after
    /// `time`, if a time is given.
    pub fn new(
        target: &Target,
        loaded: Loaded,
        interrupt: Interrupt,
        time: Option<Duration>,
    ) -> Attached {
        let first = figures(target.process).unwrap_or_default();
        Attached {
            process: target.process,
            is_in_own_pids: target.is_in_own_pids,
            executable: target.path.clone(),
            end: end_descriptor(Pid::from_raw(target.process as i32)),
            socket: loaded.socket,
            interrupt,
            deadline: time.and_then(|time| Instant::now().checked_add(time)),
            first,
            last: first,
            looked: Instant::now(),
            asked: None,
            outcome: Outcome::Silent,
            age: target.age,
            longest_stop: loaded.longest_stop,
            ticks: loaded.ticks,
        }
    }

    /// Returns the process id.
    pub fn process(&self) -> u32 {
        self.process
    }

    /// Returns whether the thread ids in the ring are from the PID namespace of this command.
    pub fn has_known_threads(&self) -> bool {
        self.is_in_own_pids
    }

    /// Returns a flag that is set when the recording has ended. While the flag is set, SIGINT and
    /// similar signals end this process.
    pub fn ends_by_signals(&self) -> Arc<AtomicBool> {
        self.interrupt.has_ended.clone()
    }

    /// Returns the signal that ended the recording. `None` if no signal arrived.
    pub fn interrupted_by(&self) -> Option<i32> {
        self.interrupt.signal()
    }

    /// Ends the recording soon, as a signal does.
    pub fn end(&self) {
        self.interrupt.came.store(true, Ordering::Relaxed);
    }

    /// Waits until the recording has ended, but at most `limit`. Returns whether the recording has
    /// ended. The caller must read the ring between calls, because threads may wait for room in the
    /// ring.
    pub fn wait(&mut self, limit: Duration) -> io::Result<bool> {
        self.last = figures(self.process).unwrap_or(self.last);
        let is_due = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if self.asked.is_none() && (is_due || self.interrupt.came.load(Ordering::Relaxed)) {
            self.asked = Some(Instant::now());
            self.tell(DETACH);
        } else if self.asked.is_none() && self.looked.elapsed() > LOOK {
            self.looked = Instant::now();
            self.tell(LOOK_AGAIN);
        }
        let [has_ended, has_message] = self.poll(limit);
        self.outcome = if has_message {
            match recv(self.socket.as_raw_fd(), &mut [0], MsgFlags::MSG_DONTWAIT) {
                Ok(1) => Outcome::Detached,
                Err(Errno::EAGAIN | Errno::EINTR) => return Ok(false),
                _ => self.closed(),
            }
        } else if has_ended {
            Outcome::Ended
        } else if self.asked.is_some_and(|asked| asked.elapsed() > PATIENCE) {
            Outcome::Silent
        } else {
            return Ok(false);
        };
        Ok(true)
    }

    /// Sends a message. Ignores errors, because `wait` detects a closed socket.
    fn tell(&self, message: &[u8]) {
        let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
        let _ = send(self.socket.as_raw_fd(), message, flags);
    }

    /// Waits for an event. Returns whether the process has ended, and whether the socket can be
    /// read.
    fn poll(&self, limit: Duration) -> [bool; 2] {
        let timeout = PollTimeout::try_from(limit).unwrap_or(PollTimeout::MAX);
        let mut events = vec![PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        events.extend(self.end.as_ref().map(|end| PollFd::new(end.as_fd(), PollFlags::POLLIN)));
        let _ = poll(&mut events, timeout); // a signal may end the wait early
        let is_ready = |event: &PollFd| event.any().unwrap_or(false);
        [events.get(1).is_some_and(is_ready), is_ready(&events[0])]
    }

    /// Finds out why the socket was closed without a message.
    fn closed(&self) -> Outcome {
        let begin = Instant::now();
        while begin.elapsed() < LAST {
            let is_over = self.end.as_ref().is_some_and(|end| {
                let mut event = [PollFd::new(end.as_fd(), PollFlags::POLLIN)];
                poll(&mut event, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
            });
            if is_over || proc::threads(self.process).is_empty() {
                return Outcome::Ended;
            }
            // If the process is ending, its executable can no longer be read.
            let now = std::fs::read_link(proc::executable(self.process));
            if now.is_ok_and(|now| now != self.executable) {
                return Outcome::Executed;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Outcome::Executed // the same program again, or the program has closed the socket
    }

    /// Ends the recording, and returns the figures of the process since the recording began.
    pub fn reap(&self) -> Ended {
        self.interrupt.has_ended.store(true, Ordering::Relaxed);
        let (first, last) = (self.first, self.last);
        Ended {
            status: 0,
            user_ns: last.user_ns.saturating_sub(first.user_ns),
            system_ns: last.system_ns.saturating_sub(first.system_ns),
            peak_rss: last.peak_rss,
            minor_faults: last.minor_faults.saturating_sub(first.minor_faults),
            major_faults: last.major_faults.saturating_sub(first.major_faults),
        }
    }
}

/// Returns the figures of a process since it began. `None` if the process has ended.
fn figures(process: u32) -> Option<Ended> {
    let stat = Stat::of(process).filter(|stat| !stat.is_zombie())?;
    let ticks = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK).ok().flatten();
    let ns_per_tick = 1_000_000_000 / ticks.unwrap_or(100).max(1) as u64;
    Some(Ended {
        status: 0,
        user_ns: stat.field(14)? * ns_per_tick,
        system_ns: stat.field(15)? * ns_per_tick,
        peak_rss: proc::status_bytes(Process::Id(process), "VmHWM:")?,
        minor_faults: stat.field(10)?,
        major_faults: stat.field(12)?,
    })
}

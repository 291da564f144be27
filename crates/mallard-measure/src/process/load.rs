//! Runs shell commands of the user: the load of a server, and the setup before a run.

use super::child::{ending, Child, End, Output, Start, Stop};
use crate::error::status::MALLARD_FAILED;
use crate::error::Failure;
use crate::output::shell::quoted;
use crate::output::units::time;
use std::ffi::OsString;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// A load, which is a shell command that sends work to a server, and how to run it.
#[derive(Clone, Copy, Debug)]
pub struct Load<'a> {
    /// The command.
    pub command: &'a str,
    /// The time for which the command is repeated. If `None`, the command must succeed once.
    pub repeated_for: Option<Duration>,
    /// The time limit for the start of a server. The server has started when the command succeeds
    /// once.
    pub start: Duration,
    /// The time after which a run of the command is killed.
    pub limit: Duration,
    /// A flag that stops the load when it is set.
    pub interrupted: &'a AtomicBool,
}

/// A load that is finished.
pub struct Served {
    /// How often the command succeeded.
    pub count: u64,
    /// The output of the first command that succeeded.
    pub output: Output,
    /// When the first successful command ended.
    pub first: Instant,
    /// When the last successful command ended.
    pub last: Instant,
}

impl Load<'_> {
    /// Runs the load. `alive` must return an error if the server has ended.
    pub fn run(&self, mut alive: impl FnMut() -> Result<(), Stop>) -> Result<Served, Stop> {
        let output = self.first(&mut alive)?;
        let first = Instant::now();
        let (mut count, mut last) = (1, first);
        while self.repeated_for.is_some_and(|time| first.elapsed() < time) {
            alive()?;
            let (status, again) = self.once()?;
            if status != 0 {
                return Err(Stop::Broken(format!("the load failed: {}", ending(status, &again))));
            }
            (count, last) = (count + 1, Instant::now());
        }
        alive()?;
        Ok(Served { count, output, first, last })
    }

    /// Repeats the command until it succeeds for the first time.
    fn first(&self, alive: &mut impl FnMut() -> Result<(), Stop>) -> Result<Output, Stop> {
        let begin = Instant::now();
        loop {
            alive()?;
            let (status, output) = self.once()?;
            if status == 0 {
                return Ok(output);
            }
            if begin.elapsed() > self.start {
                let seconds = self.start.as_secs();
                let how = ending(status, &output);
                return Err(Stop::Broken(format!(
                    "the load did not succeed within {seconds} s: {how}"
                )));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Runs the command once.
    fn once(&self) -> Result<(i32, Output), Stop> {
        shell(self.command, self.limit, self.interrupted).map_err(|stop| match stop {
            Stop::TooLong => Stop::LoadHangs(format!(
                "the load did not end within {}, and was killed",
                time(self.limit.as_nanos() as f64)
            )),
            stop => stop,
        })
    }
}

/// The help for a load that fails because the server does not accept requests yet.
pub const WAITING_LOAD: &str =
    "a load that waits for the server: --load 'until READY; do sleep 0.1; done; CMD', with a command \
     READY that fails as long as the server does not answer";

/// Runs a shell command in the environment of the user, and returns its status and output.
fn shell(command: &str, limit: Duration, interrupted: &AtomicBool) -> Result<(i32, Output), Stop> {
    let words = ["sh", "-c", command].map(OsString::from).to_vec();
    let start = Start { path: "/bin/sh".into(), words, captures: true, ..Start::default() };
    let mut child = Child::start(&start)?;
    match child.wait(limit, interrupted)? {
        End::Ended(ended, _) => Ok((ended.status, std::mem::take(&mut child.output))),
        End::TooLong => Err(Stop::TooLong),
        End::Interrupted => Err(Stop::Interrupted),
    }
}

/// Runs the setup command of the user.
pub fn set_up(command: &str, interrupted: &AtomicBool) -> Result<(), Stop> {
    let (status, output) = shell(command, Duration::MAX, interrupted)?;
    if status == 0 {
        return Ok(());
    }
    let what = format!("the setup '{command}' failed: {}", ending(status, &output));
    let help = format!("sh -c {}", quoted(command));
    Err(Failure::new(what, "the measurement was stopped", help).with_status(MALLARD_FAILED).into())
}

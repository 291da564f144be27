//! Replaces `load` on processors for which the injected code does not exist.

use crate::attach::refusals::{refused, Target};
use mallard_measure::error::Failure;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A recorder that a process has loaded.
pub struct Loaded {
    /// The socket that ends the recording when it is closed.
    pub socket: OwnedFd,
    /// The longest time for which a thread of the process was stopped.
    pub longest_stop: Duration,
    /// The ticks that the thread needed to load the recorder.
    pub ticks: u64,
}

/// Rejects all processes.
pub fn load(_: &Target, _: &Path, _: &File, _: &AtomicBool) -> Result<Loaded, Failure> {
    let what = "a running process can be recorded on x86-64 only".to_string();
    Err(refused(what, "record it from its start: mallard record -- PROG ARGS"))
}

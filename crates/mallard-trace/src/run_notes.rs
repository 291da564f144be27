//! What the command that recorded notes about the run: the program, its figures, the machine, and the cost of
//! recording.

use crate::system_text::{from_json, to_json};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::ops::Deref;
use std::path::Path;

/// A text of the system, such as a path or an argument, which need not be UTF-8.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemText(pub OsString);

impl Deref for SystemText {
    type Target = OsStr;

    fn deref(&self) -> &OsStr {
        &self.0
    }
}

impl<T: Into<OsString>> From<T> for SystemText {
    fn from(text: T) -> SystemText {
        SystemText(text.into())
    }
}

impl Serialize for SystemText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        to_json(&self.0).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SystemText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        from_json(&value)
            .map(SystemText)
            .ok_or_else(|| serde::de::Error::custom("a text is no text"))
    }
}

/// Declares the notes. A note that a trace does not have is `None`, and is not written.
macro_rules! notes {
    ($($(#[$doc:meta])* $name:ident: $type:ty,)*) => {
        /// Notes about the recorded run. A trace lacks those that its recorder, or the program that it was
        /// imported from, did not know.
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct RunNotes {
            $($(#[$doc])* #[serde(skip_serializing_if = "Option::is_none")] pub $name: Option<$type>,)*
        }
    };
}

notes! {
    /// The function by which the program allocates instead of malloc.
    allocates_by: String,
    /// The words of the command line. Of an imported trace, the whole line as one word.
    arguments: Vec<SystemText>,
    /// The number of processors that the program could use.
    cores: u64,
    /// The name of the processor.
    cpu: String,
    /// The variables of the environment.
    environment: BTreeMap<String, SystemText>,
    /// The folder in which the program was started.
    folder: SystemText,
    /// What `--follow` named: "fork", "exec".
    follow: Vec<String>,
    /// The number of forked processes that ran on, and were not recorded.
    forked: u64,
    /// The name of the host.
    host: String,
    /// The program whose file the trace was imported from, with its version.
    imported_from: String,
    /// The release of the kernel.
    kernel: String,
    /// What the imported file lacks: constants of [`crate::manifest::lack`].
    lacks: Vec<String>,
    /// The shell command that gave a server its work.
    load: String,
    /// The time for which the load was repeated, in seconds.
    load_seconds: f64,
    /// How often the load ran.
    loads: u64,
    /// Page faults for which the kernel read a disk.
    major_faults: u64,
    /// Other page faults.
    minor_faults: u64,
    /// The time of a page fault, in ns.
    ns_per_fault: f64,
    /// The mean time of a call of free, in ns; 0 if none was timed.
    ns_per_free: f64,
    /// The peak of the resident memory, in bytes.
    peak_rss: u64,
    /// The file of the program.
    program: SystemText,
    /// CPU time of the recorded processes, in ns.
    recorded_cpu_ns: u64,
    /// The time that the recorder takes for an event, in ns.
    recording_ns_per_event: f64,
    /// What `--anonymize` has removed.
    redacted: Vec<String>,
    /// The number of pages of the ring that the recorder has written.
    ring_pages: u64,
    /// How the program ended, as `wait` returns it.
    status: i32,
    /// The file that was stdin of the program.
    stdin: SystemText,
    /// Why the recording stopped before the program ended.
    stopped: String,
    /// CPU time in the kernel, in ns.
    system_ns: u64,
    /// The resolution of the times of an imported trace, in ns.
    time_step_ns: u64,
    /// CPU time of processes that were not recorded, in ns.
    unrecorded_ns: u64,
    /// The number of events that were seen after the recording had stopped.
    unwritten: u64,
    /// CPU time outside the kernel, in ns.
    user_ns: u64,
    /// How often a thread waited for room in the ring.
    waits: u64,
    /// Wall time, in ns.
    wall_ns: u64,
    /// Warnings about the program.
    warnings: Vec<String>,
    /// The recorded part of the run: "10s..70s".
    window: String,
}

impl RunNotes {
    /// CPU time of the program and of the processes that it waited for, in ns.
    pub fn cpu_ns(&self) -> Option<f64> {
        Some((self.user_ns? + self.system_ns?) as f64)
    }

    /// The notes without those that might say whose program was recorded, and where. Of the path of the
    /// program, the name of the file stays. A new note has to be named here, so that somebody decides.
    pub fn redacted(self) -> RunNotes {
        let file = |path: SystemText| Path::new(&path.0).file_name().unwrap_or_default().into();
        let removed = ["paths", "arguments", "environment", "host"];
        RunNotes {
            allocates_by: None,
            arguments: None,
            cores: self.cores,
            cpu: self.cpu,
            environment: None,
            folder: None,
            follow: None,
            forked: self.forked,
            host: None,
            imported_from: self.imported_from,
            kernel: self.kernel,
            lacks: self.lacks,
            load: None,
            load_seconds: self.load_seconds,
            loads: self.loads,
            major_faults: self.major_faults,
            minor_faults: self.minor_faults,
            ns_per_fault: self.ns_per_fault,
            ns_per_free: self.ns_per_free,
            peak_rss: self.peak_rss,
            program: self.program.map(file),
            recorded_cpu_ns: self.recorded_cpu_ns,
            recording_ns_per_event: self.recording_ns_per_event,
            redacted: Some(removed.map(String::from).to_vec()),
            ring_pages: self.ring_pages,
            status: self.status,
            stdin: None,
            stopped: self.stopped,
            system_ns: self.system_ns,
            time_step_ns: self.time_step_ns,
            unrecorded_ns: self.unrecorded_ns,
            unwritten: self.unwritten,
            user_ns: self.user_ns,
            waits: self.waits,
            wall_ns: self.wall_ns,
            warnings: None,
            window: self.window,
        }
    }
}

//! Defines the notes of `mallard record` about a run: the program, its figures, the machine, and
//! the cost of recording.

use crate::system_text::{from_json, to_json};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::ops::Deref;
use std::path::Path;

/// A text from the operating system, such as a path or an argument. It need not be UTF-8.
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

/// Declares the notes. Each has a function that returns what remains of the note in a redacted
/// trace. If a trace does not have a note, its value is `None`, and it is not written.
macro_rules! notes {
    ($($(#[$doc:meta])* $name:ident: $type:ty => $redact:ident,)*) => {
        /// Notes about the recorded run. A trace lacks the notes that its recorder, or the program
        /// from which it was imported, did not supply.
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct RunNotes {
            $($(#[$doc])* #[serde(skip_serializing_if = "Option::is_none")] pub $name: Option<$type>,)*
        }

        impl RunNotes {
            /// Returns the notes without those that might reveal who recorded the program or where
            /// the program was recorded.
            pub fn redacted(self) -> RunNotes {
                let names = ["paths", "arguments", "environment", "host"];
                let redacted = Some(names.map(String::from).to_vec());
                RunNotes { redacted, ..RunNotes { $($name: self.$name.and_then($redact),)* } }
            }
        }
    };
}

notes! {
    /// The function that the program calls for allocations in place of malloc.
    allocates_by: String => removed,
    /// The words of the command line. In an imported trace, the whole line is one word.
    arguments: Vec<SystemText> => removed,
    /// The age of the process in seconds when the recording began. Blocks that were allocated
    /// earlier appear only in frees.
    attached_after: f64 => kept,
    /// The number of processors that the program could use.
    cores: u64 => kept,
    /// The name of the processor.
    cpu: String => kept,
    /// The variables of the environment.
    environment: BTreeMap<String, SystemText> => removed,
    /// The directory in which the program was started.
    folder: SystemText => removed,
    /// The values of the option `--follow`: "fork", "exec".
    follow: Vec<String> => removed,
    /// The number of forked processes that continued to run, and were not recorded.
    forked: u64 => kept,
    /// The name of the host.
    host: String => removed,
    /// The name and version of the program that wrote the imported file.
    imported_from: String => kept,
    /// The kernel release.
    kernel: String => kept,
    /// What the imported file lacks: constants of [`crate::manifest::lack`].
    lacks: Vec<String> => kept,
    /// The shell command that sent requests to a recorded server.
    load: String => removed,
    /// The time for which the load command was repeated, in seconds.
    load_seconds: f64 => kept,
    /// How often the load command ran.
    loads: u64 => kept,
    /// The number of page faults for which the kernel read from a disk.
    major_faults: u64 => kept,
    /// The number of other page faults.
    minor_faults: u64 => kept,
    /// The mean time of a page fault, in ns.
    ns_per_fault: f64 => kept,
    /// The mean time of a call of free, in ns; 0 if no call was timed.
    ns_per_free: f64 => kept,
    /// Peak RSS, in bytes.
    peak_rss: u64 => kept,
    /// The executable file of the program. A redacted trace has only the file name.
    program: SystemText => file_name,
    /// CPU time of the recorded processes, in ns.
    recorded_cpu_ns: u64 => kept,
    /// The time that the recorder uses for each event, in ns.
    recording_ns_per_event: f64 => kept,
    /// What `--anonymize` has removed.
    redacted: Vec<String> => kept,
    /// The number of pages of the ring buffer that the recorder has written to.
    ring_pages: u64 => kept,
    /// The exit status of the program, as `wait` returns it.
    status: i32 => kept,
    /// The file that was the stdin of the program.
    stdin: SystemText => removed,
    /// Why the recording stopped before the program exited.
    stopped: String => kept,
    /// CPU time in the kernel, in ns.
    system_ns: u64 => kept,
    /// The resolution of the times of an imported trace, in ns.
    time_step_ns: u64 => kept,
    /// CPU time of processes that were not recorded, in ns.
    unrecorded_ns: u64 => kept,
    /// The number of events after the end of the recording, which are not in the trace.
    unwritten: u64 => kept,
    /// CPU time outside the kernel, in ns.
    user_ns: u64 => kept,
    /// How often a thread waited for space in the ring buffer.
    waits: u64 => kept,
    /// Wall time, in ns.
    wall_ns: u64 => kept,
    /// Warnings about the program.
    warnings: Vec<String> => removed,
    /// The recorded part of the run: "10s..70s".
    window: String => kept,
}

impl RunNotes {
    /// Returns the CPU time of the program and of the processes that it waited for, in ns.
    pub fn cpu_ns(&self) -> Option<f64> {
        Some((self.user_ns? + self.system_ns?) as f64)
    }
}

/// Leaves a note unchanged.
fn kept<T>(note: T) -> Option<T> {
    Some(note)
}

/// Removes a note.
fn removed<T>(_: T) -> Option<T> {
    None
}

/// Removes the directory from a path, and returns the file name.
fn file_name(path: SystemText) -> Option<SystemText> {
    Some(Path::new(&path.0).file_name().unwrap_or_default().into())
}

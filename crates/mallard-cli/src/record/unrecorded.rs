//! Measures the CPU time of processes that were not recorded. The shares of malloc in the CPU time are
//! those of the recorded processes only.

use super::{program, Follow};
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// The system keeps this number of characters of the name of a program.
const NAME_MAX: usize = 15;

/// The CPU time of the recorded processes.
pub struct RecordedTime {
    /// The device and inode of the file that the system loads for the program.
    file: Option<(u64, u64)>,
    follows_exec: bool,
    /// The name of each process, as the system has it, when it executed the recorded program. Only
    /// the name can still be read when a process has ended.
    names: BTreeMap<u32, String>,
    /// The CPU time of each process in nanoseconds, by process id.
    times: BTreeMap<u32, u64>,
    /// The processes that execute a program that is not recorded.
    left: BTreeSet<u32>,
}

impl RecordedTime {
    /// The times of a program that `process` is about to execute. `follow` tells which other processes
    /// are recorded.
    pub fn new(process: u32, path: &Path, follow: &[Follow]) -> RecordedTime {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        RecordedTime {
            names: BTreeMap::from([(process, name.chars().take(NAME_MAX).collect())]),
            file: identity(&program::loaded(path)),
            follows_exec: follow.contains(&Follow::Exec),
            times: BTreeMap::new(),
            left: BTreeSet::new(),
        }
    }

    /// Reads the CPU time of a recorded process, unless the process has executed a program that is not
    /// recorded. The CPU time of a process that has ended can be read until its parent waits for it.
    pub fn look(&mut self, process: u32) {
        let of = |what: &str| format!("/proc/{process}/{what}");
        let file = identity(Path::new(&of("exe")));
        let name = fs::read_to_string(of("comm")).unwrap_or_default().trim_end().to_string();
        let has_left = match (file, self.file) {
            (Some(file), Some(of_program)) => file != of_program,
            // The process has ended, and has no file any more.
            _ => self.names.get(&process).is_some_and(|before| *before != name),
        };
        if has_left {
            self.left.insert(process);
        } else {
            self.names.insert(process, name);
        }
        if let Some(ns) = cpu_ns(process).filter(|_| !self.left.contains(&process)) {
            self.times.insert(process, ns);
        }
    }

    /// The CPU time that no recorded process took, of all the CPU time of the program and of the
    /// processes that it waited for. Of children of a fork, the time after their last `look` counts as
    /// not recorded. If executed programs are recorded, there is no such time.
    pub fn missing(&self, all_ns: u64) -> u64 {
        match self.follows_exec {
            true => 0,
            false => all_ns.saturating_sub(self.times.values().sum()),
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}

/// The CPU time of all threads that the process has or had.
fn cpu_ns(process: u32) -> Option<u64> {
    let clock = clock_getcpuclockid(Pid::from_raw(process as i32)).ok()?;
    Some(Duration::from(clock_gettime(clock).ok()?).as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_process_counts_until_it_executes_another_program() {
        let own = std::process::id();
        let mut same = RecordedTime::new(own, &std::env::current_exe().unwrap(), &[]);
        same.look(own);
        assert!(same.times[&own] > 0 && same.missing(u64::MAX) < u64::MAX);
        // This process executes another file than /bin/sh.
        let mut other = RecordedTime::new(own, Path::new("/bin/sh"), &[]);
        other.look(own);
        assert_eq!(other.missing(7), 7);
        let followed = RecordedTime::new(own, Path::new("/bin/sh"), &[Follow::Fork, Follow::Exec]);
        assert_eq!(followed.missing(7), 0);
    }

    #[test]
    fn an_exec_shortly_before_the_end_is_seen_by_the_name() {
        for (path, is_seen) in [("/usr/bin/true", false), ("/usr/bin/env", true)] {
            let mut child = std::process::Command::new("true").spawn().unwrap();
            let mut time = RecordedTime::new(child.id(), Path::new(path), &[]);
            let stat = format!("/proc/{}/stat", child.id());
            while !fs::read_to_string(&stat).unwrap().contains(") Z ") {
                std::thread::yield_now();
            }
            time.look(child.id());
            assert_eq!(time.missing(1 << 40) == 1 << 40, is_seen, "{path}");
            child.wait().unwrap();
        }
    }

    #[test]
    fn the_time_of_a_process_that_nobody_has_waited_for_is_read_after_its_end() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let stat = format!("/proc/{}/stat", child.id());
        while !fs::read_to_string(&stat).unwrap().contains(") Z ") {
            std::thread::yield_now();
        }
        assert!(cpu_ns(child.id()).is_some_and(|ns| ns > 0));
        child.wait().unwrap();
    }
}

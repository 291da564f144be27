//! Measures the CPU time of processes that were not recorded. The shares of malloc in the CPU time
//! are relative to the recorded processes only.

use mallard_measure::process::proc::{self, Stat};
use mallard_measure::process::program;
use mallard_trace::format::{op, Record};
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// The maximum time from the last event of a process to its end that counts as recorded if the
/// system did not report the CPU time, as a share of the time before. In that time, a process
/// executes another program, or releases its memory.
const END_MAX: f64 = 0.1;

/// How often the start of the first program is looked for. The program is already executed, but the
/// kernel may still set up its memory.
const TRIES: usize = 100;

/// The CPU time of the recorded processes.
pub struct RecordedTime {
    /// The process id of the first program.
    first: u32,
    /// The device and inode of the file that the system loads for the first program, until they are
    /// compared with the file of its process.
    file: Option<(u64, u64)>,
    /// Whether processes that recorded processes fork are recorded as well.
    follows_forks: bool,
    /// The ticks of the stream's clock per nanosecond.
    ticks_per_ns: f64,
    /// The addresses of the arguments of each recorded program, by which programs are recognised.
    /// Each exec chooses another address, and the child of a fork has the same address as its
    /// parent.
    images: BTreeSet<u64>,
    /// The running processes, by process id.
    processes: BTreeMap<u32, Process>,
    /// The CPU time of the processes that have ended, in nanoseconds.
    ended_ns: u64,
}

/// A process that has recorded events.
#[derive(Default)]
struct Process {
    /// The name that the system gave the process when it executed a recorded program. Only the name
    /// can still be read when a process has ended.
    name: Vec<u8>,
    /// The CPU time in nanoseconds that is known to belong to a recorded program, and the time when
    /// it was read. If it was never read, 0 and the time when the process began.
    cpu_ns: u64,
    looked: u64,
    /// The time of the last known event.
    last: u64,
    /// Whether `cpu_ns` is the CPU time until the end of the process.
    is_final: bool,
    /// Whether the process executes a recorded program whose address in `images` is not yet known.
    is_new: bool,
    /// Whether the process executes a program that is not recorded.
    has_left: bool,
}

/// The first events of a process, or of a program that a process executes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Events {
    /// The times of the first and the last of these events, on the clock of the stream. 0 without
    /// events.
    first: u64,
    last: u64,
    /// Whether the recorder was loaded by the program, and not inherited by a fork.
    is_program: bool,
}

impl Events {
    /// Adds some events.
    pub fn add(&mut self, records: impl Iterator<Item = Record>) {
        for record in records {
            self.first = if self.first == 0 { record.t } else { self.first.min(record.t) };
            self.last = self.last.max(record.t);
            self.is_program |= record.op() == op::MODULE;
        }
    }
}

impl RecordedTime {
    /// Makes the times of a program that `process` executes. `follows_forks` tells whether
    /// forked processes are recorded, and `clock_hz` is the number of ticks per second.
    pub fn new(process: u32, path: &Path, follows_forks: bool, clock_hz: u64) -> RecordedTime {
        let name = proc::name_of(path.file_name().unwrap_or_default());
        let first = Process { name, is_new: true, ..Process::default() };
        let mut all = RecordedTime {
            first: process,
            file: identity(&program::loaded(path)),
            follows_forks,
            ticks_per_ns: clock_hz as f64 / 1e9,
            images: BTreeSet::new(),
            processes: BTreeMap::from([(process, first)]),
            ended_ns: 0,
        };
        for _ in 0..TRIES {
            all.look(process, 0);
            match all.processes[&process].is_new {
                true => std::thread::yield_now(),
                false => break,
            }
        }
        all
    }

    /// Adds a process, or a recorded program that a known process executes. The process or program
    /// has begun after the time `passed`.
    pub fn begin(&mut self, process: u32, events: &Events, passed: u64) {
        // A program has no events while it is loaded, but the child of a fork has one when it
        // begins.
        let looked = if events.is_program { passed } else { events.first };
        let known = self.processes.entry(process);
        let of = known.or_insert_with(|| Process { looked, ..Process::default() });
        of.last = of.last.max(events.last);
        of.is_new |= events.is_program;
        of.has_left = false;
    }

    /// Records the time of an event of a process that may have ended.
    pub fn saw(&mut self, process: u32, event: u64) {
        if let Some(of) = self.processes.get_mut(&process) {
            of.last = of.last.max(event);
        }
    }

    /// Reads the CPU time of a recorded process at the time `now`, unless the process has executed
    /// a program that is not recorded. The CPU time of a process that has ended can be read until
    /// its parent waits for it.
    pub fn look(&mut self, process: u32, now: u64) {
        let Some(of) = self.processes.get_mut(&process) else { return };
        let Some(stat) = Stat::of(process) else { return };
        match image(&stat) {
            Some(image) if of.is_new => {
                of.is_new = false;
                let file = self.file.take();
                let is_it = |file| identity(&proc::executable(process)) == Some(file);
                if file.is_none_or(is_it) {
                    self.images.insert(image);
                }
                of.has_left = !self.images.contains(&image);
            }
            Some(image) => of.has_left |= !self.images.contains(&image),
            // The process has exited, or this command has no permission to examine it.
            None => of.has_left |= !of.name.is_empty() && of.name != stat.name,
        }
        if of.has_left {
            return;
        }
        let is_zombie = stat.is_zombie();
        of.name = stat.name;
        if let Some(ns) = cpu_ns(process) {
            (of.cpu_ns, of.looked, of.is_final) = (ns, now, is_zombie);
        }
    }

    /// Records that a process is no longer found at the time `now`. CPU time that the system did
    /// not report is estimated from the times of the events, as if the process had not waited.
    pub fn end(&mut self, process: u32, now: u64) {
        let Some(of) = self.processes.remove(&process) else { return };
        let ns = |ticks: u64| ticks as f64 / self.ticks_per_ns;
        let until_event = of.cpu_ns as f64 + ns(of.last.saturating_sub(of.looked));
        let rest = ns(now.saturating_sub(of.last.max(of.looked)));
        let most = if of.has_left { 0.0 } else { END_MAX * until_event };
        self.ended_ns += match of.is_final {
            true => of.cpu_ns,
            false => (until_event + rest.min(most)) as u64,
        };
    }

    /// Returns the CPU time that no recorded process used, out of all CPU time of the program and
    /// of the processes that it waited for.
    pub fn missing(&self, all_ns: u64) -> u64 {
        let running: u64 = self.processes.values().map(|of| of.cpu_ns).sum();
        all_ns.saturating_sub(self.ended_ns + running)
    }

    /// Returns how many processes that the program has forked are running now without being
    /// recorded. Examines all processes of the system.
    pub fn forked(&self) -> u64 {
        if self.follows_forks {
            return 0;
        }
        let first = Stat::of(self.first).filter(|_| self.images.is_empty());
        let is_forked = |process: &u32| {
            let Some(stat) = Stat::of(*process) else { return false };
            // The first program may have ended before its address was read.
            let is_alike = first.as_ref().is_some_and(|first| start(&stat) >= start(first))
                && self
                    .file
                    .is_some_and(|file| identity(&proc::executable(*process)) == Some(file));
            let is_child = image(&stat).is_some_and(|image| self.images.contains(&image));
            !self.processes.contains_key(process) && (is_child || is_alike)
        };
        proc::processes().iter().filter(|process| is_forked(process)).count() as u64
    }
}

/// Returns when the process began, in ticks of the system, of which a second has 100.
fn start(stat: &Stat) -> Option<u64> {
    stat.field(22)
}

/// Returns the address of the program's arguments. `None` if the process has exited, or this
/// command has no permission to examine it.
fn image(stat: &Stat) -> Option<u64> {
    stat.field(48).filter(|&place| place != 0)
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}

/// Returns the CPU time of all threads that the process has or had.
fn cpu_ns(process: u32) -> Option<u64> {
    let clock = clock_getcpuclockid(Pid::from_raw(process as i32)).ok()?;
    Some(Duration::from(clock_gettime(clock).ok()?).as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HZ: u64 = 1_000_000_000;

    fn wait_for_end(process: u32) {
        while !Stat::of(process).unwrap().is_zombie() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn the_cpu_time_of_a_process_counts_until_it_executes_another_program() {
        let own = std::process::id();
        let mut same = RecordedTime::new(own, &std::env::current_exe().unwrap(), false, HZ);
        same.look(own, 1);
        assert!(same.processes[&own].cpu_ns > 0 && same.missing(u64::MAX) < u64::MAX);
        // This process executes another file than /bin/sh.
        for follows_forks in [false, true] {
            let mut other = RecordedTime::new(own, Path::new("/bin/sh"), follows_forks, HZ);
            other.look(own, 1);
            assert_eq!(other.missing(7), 7);
            // The recorder was loaded into the program that the process executes now.
            let program = Events { is_program: true, ..Events::default() };
            other.begin(own, &program, 0);
            other.look(own, 1);
            assert_eq!(other.missing(7), 0);
        }
    }

    #[test]
    fn an_exec_of_the_same_file_counts_as_another_program() {
        let script = "read x; exec sh -c 'read x; :'";
        let mut child = std::process::Command::new("sh")
            .args(["-c", script])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut time = RecordedTime::new(child.id(), Path::new("/bin/sh"), false, HZ);
        time.look(child.id(), 1);
        assert!(!time.processes[&child.id()].has_left);
        let before = image(&Stat::of(child.id()).unwrap());
        let mut stdin = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut stdin, b"go\n").unwrap();
        while image(&Stat::of(child.id()).unwrap()).is_none_or(|now| Some(now) == before) {
            std::thread::yield_now();
        }
        time.look(child.id(), 1);
        assert!(time.processes[&child.id()].has_left);
        drop(stdin);
        child.wait().unwrap();
    }

    #[test]
    fn an_exited_process_counts_until_shortly_after_its_last_event() {
        let mut time = RecordedTime::new(0, Path::new("none"), false, HZ);
        let fork = Events { first: 500, last: 1500, is_program: false };
        time.begin(u32::MAX, &fork, 100);
        time.saw(u32::MAX, 2500);
        time.end(u32::MAX, 2600);
        assert_eq!(time.missing(10_000), 10_000 - 2100);
        // A program is loaded before its first event. The rest is so long that it may belong to
        // another program.
        time.begin(u32::MAX, &Events { is_program: true, ..fork }, 100);
        time.saw(u32::MAX, 2100);
        time.end(u32::MAX, 10_000);
        assert_eq!(time.missing(10_000), 10_000 - 2100 - 2200);
    }

    #[test]
    fn unrecorded_forked_processes_are_found() {
        let script = "exec 3<&0; (read x <&3; :) & wait";
        let mut child = std::process::Command::new("sh")
            .args(["-c", script])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let (id, path) = (child.id(), Path::new("/bin/sh"));
        let time = |follows_forks| RecordedTime::new(id, path, follows_forks, HZ);
        let (alone, both) = (time(false), time(true));
        while alone.forked() == 0 {
            std::thread::yield_now();
        }
        assert_eq!((alone.forked(), both.forked()), (1, 0));
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    #[test]
    fn a_forked_process_is_found_although_its_parent_exited_before_the_search() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "exec 3<&0; (read x <&3; :) & exit"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        wait_for_end(child.id());
        let time = RecordedTime::new(child.id(), Path::new("/bin/sh"), false, HZ);
        // Other tests start this program, too.
        assert!(time.images.is_empty() && time.forked() >= 1);
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    #[test]
    fn an_exec_shortly_before_the_exit_is_detected_by_the_process_name() {
        for (path, is_seen) in [("/usr/bin/true", false), ("/usr/bin/env", true)] {
            let mut child = std::process::Command::new("true").spawn().unwrap();
            wait_for_end(child.id());
            let mut time = RecordedTime::new(child.id(), Path::new(path), false, HZ);
            time.look(child.id(), 1);
            assert_eq!(time.missing(1 << 40) == 1 << 40, is_seen, "{path}");
            child.wait().unwrap();
        }
    }

    #[test]
    fn the_cpu_time_of_a_zombie_process_is_read_after_its_exit() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        wait_for_end(child.id());
        assert!(cpu_ns(child.id()).is_some_and(|ns| ns > 0));
        child.wait().unwrap();
    }
}

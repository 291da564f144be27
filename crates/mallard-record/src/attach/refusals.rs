//! Finds out why a process cannot be recorded, before anything is changed in it.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code))] // `load` uses the rest

use mallard_measure::error::status::{CANNOT_RECORD, NOT_FOUND};
use mallard_measure::error::Failure;
use mallard_measure::process::proc::{self, Process, Stat};
use nix::unistd::geteuid;
use object::elf;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The flag in /proc/PID/stat that marks threads of the kernel.
const KERNEL_THREAD: u64 = 0x0020_0000;
/// The index of the field in /proc/PID/stat that contains the flags.
const FLAGS: usize = 9;

const NOT_CHANGED: &str = "the process runs on, and nothing was changed in it";

/// A process that passed all checks before the recorder is loaded.
pub struct Target {
    /// The id of the process in the PID namespace of this command.
    pub process: u32,
    /// The id of the process in its innermost PID namespace.
    pub pid_there: u32,
    /// Whether the process is in the PID namespace of this command.
    pub is_in_own_pids: bool,
    /// The name of the process, such as redis-server. It may differ from the name of its file.
    pub name: String,
    /// The path of the file that the process executes.
    pub path: PathBuf,
    /// Whether the process finds the files of this command by their paths, and may read them.
    pub sees_files: bool,
    /// Whether the process has a system call filter (seccomp).
    pub has_filter: bool,
    /// The time for which the process has run, in seconds.
    pub age: f64,
}

/// Makes the error for a process that cannot be recorded. `help` tells the user what to type.
pub fn refused(what: String, help: impl Into<String>) -> Failure {
    Failure::new(what, NOT_CHANGED, help).with_status(CANNOT_RECORD)
}

/// Checks whether a process can be recorded. `recorder` is the library that the process must load.
pub fn check(process: u32, recorder: &Path) -> Result<Target, Failure> {
    let stat = Stat::of(process).ok_or_else(|| no_process(process))?;
    let name = String::from_utf8_lossy(&stat.name).into_owned();
    let shown = format!("process {process} ({name})");
    let status = |field| proc::status(Process::Id(process), field).unwrap_or_default();
    if process == std::process::id() {
        return Err(refused(
            format!("process {process} is mallard itself"),
            "name another process: pgrep -a NAME",
        ));
    }
    if stat.field(FLAGS).is_some_and(|flags| flags & KERNEL_THREAD != 0) {
        return Err(refused(
            format!("{shown} is a thread of the kernel, which calls no malloc"),
            "name a program: pgrep -a NAME",
        ));
    }
    if stat.is_zombie() {
        let parent = status("PPid:");
        let what = format!("{shown} has ended: it is a zombie until process {parent} waits for it");
        return Err(Failure::new(
            what,
            "nothing was recorded",
            "name another process: pgrep -a NAME",
        )
        .with_status(CANNOT_RECORD));
    }
    let tracer = status("TracerPid:");
    if !["", "0"].contains(&tracer.as_str()) {
        let tracer_name =
            tracer.parse().ok().and_then(Stat::of).map_or(String::new(), |stat| {
                format!(" ({})", String::from_utf8_lossy(&stat.name))
            });
        return Err(refused(
            format!("{shown} is traced by process {tracer}{tracer_name}, and one process can trace it at a time"),
            format!("end that process, or let it detach: ps -p {tracer}"),
        ));
    }
    let uids: Vec<u32> =
        status("Uid:").split_whitespace().filter_map(|id| id.parse().ok()).collect();
    if !geteuid().is_root() && uids.iter().take(3).any(|&id| id != geteuid().as_raw()) {
        let owner = uids.first().copied().unwrap_or(0);
        return Err(refused(
            format!("{shown} belongs to another user ({owner})"),
            format!("sudo mallard record --pid {process}"),
        ));
    }
    if status("State:").starts_with(['T', 't']) {
        return Err(refused(
            format!("{shown} is stopped by a signal"),
            format!("kill -CONT {process}, and try again"),
        ));
    }
    let path = std::fs::read_link(proc::executable(process))
        .map_err(|error| not_permitted(process, &shown, &error))?;
    check_program(process, &shown)?;
    check_modules(process, &shown)?;
    if status("Seccomp:") == "1" {
        return Err(filtered(process, "permits only read, write and exit"));
    }
    let pids: Vec<u32> =
        status("NSpid:").split_whitespace().filter_map(|id| id.parse().ok()).collect();
    Ok(Target {
        process,
        pid_there: pids.last().copied().unwrap_or(process),
        is_in_own_pids: is_in_own(process, "pid"),
        name,
        path,
        sees_files: sees_files(process, uids.get(1).copied(), recorder),
        has_filter: status("Seccomp:") == "2",
        age: age(&stat),
    })
}

/// Makes the error for a process whose system call filter forbids a necessary call.
pub fn filtered(process: u32, what: &str) -> Failure {
    refused(
        format!("process {process} has a system call filter (seccomp) that {what}"),
        "record it from its start, before it installs the filter: mallard record -- PROG ARGS",
    )
}

fn no_process(process: u32) -> Failure {
    Failure::new(
        format!("there is no process {process}"),
        "nothing was recorded",
        "pgrep -a NAME lists processes with their IDs",
    )
    .with_status(NOT_FOUND)
}

/// Makes the error for a process that this command has no permission to examine or trace.
pub fn not_permitted(process: u32, shown: &str, error: &std::io::Error) -> Failure {
    let as_root = format!("sudo mallard record --pid {process}");
    let (why, help) = match proc::trace_restriction() {
        Some(3) => (
            "no process may trace another one until the next boot (kernel.yama.ptrace_scope is 3)",
            "record it from its start: mallard record -- PROG ARGS".to_string(),
        ),
        Some(2) if !geteuid().is_root() => {
            ("only root may trace processes (kernel.yama.ptrace_scope is 2)", as_root)
        }
        Some(1) if !geteuid().is_root() => (
            "a process may trace only those that it has started (kernel.yama.ptrace_scope is 1)",
            format!("{as_root}, or sudo sysctl kernel.yama.ptrace_scope=0"),
        ),
        _ if !geteuid().is_root() => ("the system does not permit it", as_root),
        _ => (
            "the system does not permit it, not even to root",
            "grant the capability CAP_SYS_PTRACE, as docker run --cap-add SYS_PTRACE does"
                .to_string(),
        ),
    };
    let error = error.to_string().to_lowercase();
    refused(format!("cannot trace {shown}: {why} ({error})"), help)
}

/// Rejects programs that are not for x86-64.
fn check_program(process: u32, shown: &str) -> Result<(), Failure> {
    let mut head = [0; 20];
    let read =
        File::open(proc::executable(process)).and_then(|mut file| file.read_exact(&mut head));
    let is_64 = head[4] == elf::ELFCLASS64;
    let machine = u16::from_le_bytes([head[18], head[19]]);
    if read.is_err() || (is_64 && machine == elf::EM_X86_64) {
        return Ok(()); // what cannot be read is refused later
    }
    let what = if is_64 { "is not a program for x86-64" } else { "is a 32-bit program" };
    Err(refused(
        format!("{shown} {what}, and the recorder is for x86-64"),
        "use a 64-bit build of the program",
    ))
}

/// Rejects processes that do not use glibc, and processes that are already recorded.
fn check_modules(process: u32, shown: &str) -> Result<(), Failure> {
    let mappings = proc::mappings(process);
    let has = |part: &str| {
        let part = part.as_bytes();
        mappings.iter().any(|mapping| mapping.name.windows(part.len()).any(|name| name == part))
    };
    if has("/memfd:mallard-ring") {
        return Err(refused(
            format!("{shown} is recorded already"),
            format!("wait until the other mallard record ends: pgrep -af 'mallard record' lists it; or end {process} and record it again"),
        ));
    }
    if has("/ld-musl-") || has("/libc.musl-") {
        return Err(refused(
            format!("{shown} uses the C library musl, and the recorder needs glibc"),
            "use a build for glibc",
        ));
    }
    if !has("/libc.so.6") && !has("/libc-2.") {
        return Err(refused(
            format!("{shown} is linked statically, or uses another C library than glibc: it cannot load the recorder"),
            "link it dynamically, or wrap single allocators in mallard::traced",
        ));
    }
    Ok(())
}

fn is_in_own(process: u32, kind: &str) -> bool {
    let of = |process| proc::namespace(process, kind);
    of(Process::Id(process)) == of(Process::This)
}

/// Returns whether the process finds a file by its path and has permission to read the file.
fn sees_files(process: u32, user: Option<u32>, file: &Path) -> bool {
    let identity = |path: &Path| std::fs::metadata(path).ok().map(|of| (of.dev(), of.ino()));
    let same_root = identity(&proc::root(process)) == identity(Path::new("/"));
    let is_readable = |path: &Path| {
        std::fs::metadata(path).is_ok_and(|of| {
            let needed = if of.is_dir() { 0o001 } else { 0o004 };
            of.permissions().mode() & needed != 0
        })
    };
    let is_same_user = user == Some(geteuid().as_raw());
    is_in_own(process, "mnt") && same_root && (is_same_user || file.ancestors().all(is_readable))
}

/// Returns the time for which a process has run, in seconds.
fn age(stat: &Stat) -> f64 {
    use nix::time::{clock_gettime, ClockId};
    let ticks =
        nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK).ok().flatten().unwrap_or(100);
    let now = clock_gettime(ClockId::CLOCK_BOOTTIME);
    let now = now.map_or(0.0, |now| std::time::Duration::from(now).as_secs_f64());
    (now - stat.field(22).unwrap_or(0) as f64 / ticks as f64).max(0.0)
}

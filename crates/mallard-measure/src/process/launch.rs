//! Starts the program, forwards signals to the program, and waits for its end.

use crate::error::status::{CANNOT_RECORD, MALLARD_FAILED, NOT_FOUND};
use crate::error::Failure;
use crate::output::shell::quoted_path;
use crate::process::preload::{joined, preloadable};
use crate::process::proc;
use crate::process::starter::{self, Program};
use nix::libc;
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::iterator::SignalsInfo;
use signal_hook::low_level::siginfo::Cause;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// The signals that ask a program to terminate.
const ENDS: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

/// How a program ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// The status as `wait` returns it.
    pub status: i32,
    /// User CPU time of the program, and of the processes that it waited for, in nanoseconds.
    pub user_ns: u64,
    /// System CPU time of the same processes, in nanoseconds.
    pub system_ns: u64,
    /// The peak of the resident memory, in bytes.
    pub peak_rss: u64,
    /// Page faults that needed no disk access.
    pub minor_faults: u64,
    /// Page faults for which the kernel read from a disk.
    pub major_faults: u64,
}

impl Ended {
    /// Returns the status as a shell shows it, which is 128 + n if signal n ended the program.
    pub fn exit_code(&self) -> u8 {
        match self.signal() {
            Some(signal) => 128 + signal as u8,
            None => libc::WEXITSTATUS(self.status) as u8,
        }
    }

    /// Returns the signal that ended the program. `None` if the program exited.
    pub fn signal(&self) -> Option<i32> {
        libc::WIFSIGNALED(self.status).then(|| libc::WTERMSIG(self.status))
    }
}

/// Where the output of the program goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Out {
    /// To the stdout and stderr of this process.
    #[default]
    Same,
    /// Both stdout and stderr go to the stderr of this process.
    Stderr,
    /// The output is discarded.
    Nowhere,
}

/// The stdin, stdout and stderr of the program, if they differ from those of this process.
#[derive(Debug, Default)]
pub struct Streams {
    /// A file for stdin.
    pub stdin: Option<PathBuf>,
    /// Where the output goes.
    pub out: Out,
}

/// Returns the file to which stdin of this process is redirected. `None` if stdin is not a regular
/// file.
pub fn stdin_file() -> Option<PathBuf> {
    let stdin = proc::stdin();
    let of = std::fs::metadata(&stdin).ok().filter(|of| of.is_file())?;
    let name = std::fs::read_link(&stdin).ok()?;
    let is_it = |named: std::fs::Metadata| (named.dev(), named.ino()) == (of.dev(), of.ino());
    // If the file was deleted, its old name is useless, so the path in /proc is used.
    let has_name = std::fs::metadata(&name).is_ok_and(is_it);
    Some(if has_name { name } else { stdin })
}

/// The opened files that `Streams` names.
struct Files {
    stdin: Option<File>,
    out: Out,
    null: File,
}

impl Streams {
    fn open(&self, path: &Path) -> Result<Files, Failure> {
        let open = |file: &PathBuf| {
            File::open(file).map_err(|e| {
                let shown = file.display();
                let what = format!("cannot read {shown}: {}", e.to_string().to_lowercase());
                Failure::new(
                    what,
                    "the program was not started",
                    format!("ls -l {}", quoted_path(file)),
                )
                .with_status(MALLARD_FAILED)
            })
        };
        let stdin = self.stdin.as_ref().map(open).transpose()?;
        let null = File::options().write(true).open("/dev/null").map_err(|e| refused(path, &e))?;
        Ok(Files { stdin, out: self.out, null })
    }
}

impl Files {
    /// Returns the stdin, stdout and stderr of the program. `own` has the descriptors of this
    /// process, which are used for each stream that `Streams` does not replace.
    fn instead_of<'a>(&'a self, own: [BorrowedFd<'a>; 3]) -> [BorrowedFd<'a>; 3] {
        let stdin = self.stdin.as_ref().map_or(own[0], |file| file.as_fd());
        match self.out {
            Out::Same => [stdin, own[1], own[2]],
            Out::Stderr => [stdin, own[2], own[2]],
            Out::Nowhere => [stdin, self.null.as_fd(), self.null.as_fd()],
        }
    }
}

/// A running program.
pub struct Running {
    process: Pid,
    /// A descriptor that becomes readable when the program ends. `None` if the kernel is older than
    /// 5.3.
    end: Option<OwnedFd>,
    signals: SignalsInfo<WithOrigin>,
    /// A flag that is set when the program has ended. While the flag is set, SIGINT and similar
    /// signals end this process.
    has_ended: Arc<AtomicBool>,
    /// The signal that asked the program to terminate. `None` if no such signal arrived.
    pub interrupted_by: Option<i32>,
}

impl Running {
    /// Starts a program with the recorder preloaded before all libraries that the user preloads.
    pub fn start(
        path: &Path,
        name: &OsStr,
        arguments: &[OsString],
        recorder: &Path,
        ring: &str,
        streams: &Streams,
    ) -> Result<Running, Failure> {
        let own = preloadable(recorder).into();
        let preload = joined([own].into_iter().chain(std::env::var_os("LD_PRELOAD")));
        let variables =
            [("LD_PRELOAD".into(), Some(preload)), ("MALLARD_RING".into(), Some(ring.into()))];
        Running::start_with(path, name, arguments, &variables, streams)
    }

    /// Starts a program with some environment variables set, or removed (`None`).
    pub fn start_with(
        path: &Path,
        name: &OsStr,
        arguments: &[OsString],
        variables: &[(OsString, Option<OsString>)],
        streams: &Streams,
    ) -> Result<Running, Failure> {
        let signals = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH];
        let signals = SignalsInfo::<WithOrigin>::new(signals).map_err(|e| refused(path, &e))?;
        let has_ended = Arc::new(AtomicBool::new(false));
        for signal in ENDS {
            signal_hook::flag::register_conditional_default(signal, has_ended.clone())
                .map_err(|e| refused(path, &e))?;
        }
        let files = streams.open(path)?;
        let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
        let own = [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()];
        let process = starter::start(&Program {
            path,
            words: std::iter::once(name).chain(arguments.iter().map(OsString::as_os_str)).collect(),
            variables,
            streams: files.instead_of(own),
            is_measured: false,
        })
        .map_err(|e| refused(path, &e))?;
        let end = end_descriptor(process);
        Ok(Running { process, end, signals, has_ended, interrupted_by: None })
    }

    /// Returns a flag that is set when the program has ended. While the flag is set, SIGINT,
    /// SIGTERM and similar signals end this process.
    pub fn ends_by_signals(&self) -> Arc<AtomicBool> {
        self.has_ended.clone()
    }

    /// Returns the process id.
    pub fn process(&self) -> u32 {
        self.process.as_raw() as u32
    }

    /// Waits until the program ends, but at most `limit`, and returns whether the program has
    /// ended. Forwards signals that arrive meanwhile. Until `reap` is called, the CPU time of the
    /// program can still be read.
    pub fn wait(&mut self, limit: Duration) -> io::Result<bool> {
        use nix::sys::wait::{waitid, Id, WaitPidFlag, WaitStatus};
        self.sleep(limit);
        for signal in self.signals.pending() {
            // The terminal sends SIGINT, SIGQUIT and others to the program as well as to this
            // process. Only signals that another process sent to this process alone are forwarded.
            let is_from_user = matches!(signal.cause, Cause::Sent(_));
            if ENDS.contains(&signal.signal) {
                self.interrupted_by = Some(signal.signal);
            }
            if let (true, Ok(signal)) = (is_from_user, Signal::try_from(signal.signal)) {
                let _ = kill(self.process, signal); // the program may have ended
            }
        }
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        Ok(waitid(Id::Pid(self.process), flags)? != WaitStatus::StillAlive)
    }

    /// Returns how the program ended. Call it only after `wait` has returned true.
    pub fn reap(&self) -> io::Result<Ended> {
        let ended = reap(self.process)?;
        self.has_ended.store(true, Ordering::Relaxed);
        Ok(ended)
    }

    fn sleep(&self, limit: Duration) {
        use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
        let Some(end) = &self.end else { return std::thread::sleep(limit) };
        let timeout = PollTimeout::try_from(limit).unwrap_or(PollTimeout::MAX);
        let _ = poll(&mut [PollFd::new(end.as_fd(), PollFlags::POLLIN)], timeout);
        // A signal may have interrupted the wait.
    }
}

/// Waits for the end of a child, and returns how it ended.
#[allow(unsafe_code)]
pub fn reap(process: Pid) -> io::Result<Ended> {
    let mut status = 0;
    // SAFETY: all fields of `rusage` may be 0.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are valid, and no other code waits for this child.
    if unsafe { libc::wait4(process.as_raw(), &mut status, 0, &mut usage) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Ended {
        status,
        user_ns: nanoseconds(usage.ru_utime),
        system_ns: nanoseconds(usage.ru_stime),
        peak_rss: usage.ru_maxrss as u64 * 1024,
        minor_faults: usage.ru_minflt as u64,
        major_faults: usage.ru_majflt as u64,
    })
}

/// Returns the error for a program that the kernel does not start.
pub fn refused(path: &Path, error: &io::Error) -> Failure {
    let (shown, pasted) = (path.display(), quoted_path(path));
    let (status, help) = match error.raw_os_error() {
        Some(libc::ENOENT) => {
            (NOT_FOUND, format!("readelf -l {pasted}: is its interpreter there?"))
        }
        Some(libc::EACCES | libc::EPERM) => {
            (CANNOT_RECORD, format!("ls -l {pasted}; a file system may forbid programs: mount"))
        }
        Some(libc::EMFILE | libc::ENFILE) => {
            (MALLARD_FAILED, "ulimit -n: mallard needs a few more open files".to_string())
        }
        Some(libc::EAGAIN | libc::ENOMEM) => {
            (MALLARD_FAILED, "ulimit -a: more processes or memory must be allowed".to_string())
        }
        Some(libc::E2BIG) => (MALLARD_FAILED, "use shorter arguments, or fewer".to_string()),
        _ => (CANNOT_RECORD, format!("file {pasted}")),
    };
    let what = format!("{shown} cannot be started: {}", error.to_string().to_lowercase());
    Failure::new(what, "the program did not run", help).with_status(status)
}

/// Returns a descriptor that becomes readable when the process ends. `None` if the kernel is older
/// than 5.3.
#[allow(unsafe_code)]
pub fn end_descriptor(process: Pid) -> Option<OwnedFd> {
    // SAFETY: the call has no pointers. It returns a new descriptor or a negative number.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, process.as_raw(), 0) };
    // SAFETY: the descriptor is new and has no other owner.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

fn nanoseconds(time: libc::timeval) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000
}

//! Starts a process, reads its output, and waits for its end or kills the process. `Stop` lists the
//! reasons why a run was not measured.

use super::orphans;
use crate::error::status::MALLARD_FAILED;
use crate::error::Failure;
use crate::output::shell::quoted_path;
use crate::process::launch::{end_descriptor, reap, refused, Ended};
use crate::process::proc;
use crate::process::starter::{self, Program};
use nix::fcntl::{fcntl, FcntlArg, OFlag};
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::signal::{killpg, Signal};
use nix::sys::wait::{waitid, Id, WaitPidFlag, WaitStatus};
use nix::unistd::{pipe2, Pid};
use std::collections::hash_map::DefaultHasher;
use std::ffi::OsString;
use std::fs::File;
use std::hash::Hasher;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The number of bytes at the beginning of the output that are stored, to show differences.
const KEPT_BYTES: usize = 1 << 20;
/// The number of bytes at the end of stderr that are stored, for messages.
const ERRORS_BYTES: usize = 4096;
/// The number of characters of stderr's last line that are shown. Messages of mallocs have up to
/// 300.
const LINE_CHARACTERS: usize = 500;
/// How long the mappings of a process are searched for the library of its allocator.
const WATCH: Duration = Duration::from_millis(500);

/// What to start, and how.
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// The path of the program.
    pub path: PathBuf,
    /// The name and the arguments of the program.
    pub words: Vec<OsString>,
    /// Environment variables to set, or to remove (`None`).
    pub variables: Vec<(OsString, Option<OsString>)>,
    /// The file for stdin. `None` means /dev/null.
    pub stdin: Option<PathBuf>,
    /// Whether stdout and stderr are read. If not, they are discarded.
    pub captures: bool,
    /// The time that processes which the program leaves running may continue. If `None`, other
    /// processes are only killed if they are in the program's process group.
    pub orphans: Option<Duration>,
    /// A library that the process should have mapped. The mappings of the process are searched for
    /// it while the process runs.
    pub library: Option<PathBuf>,
}

/// The output of a process.
#[derive(Clone, Default)]
pub struct Output {
    hash: DefaultHasher,
    /// The number of bytes.
    pub bytes: u64,
    /// The first `KEPT_BYTES` bytes.
    pub begin: Vec<u8>,
    /// The last bytes of the text on stderr.
    pub errors: Vec<u8>,
}

impl Output {
    /// Adds a piece of stdout.
    pub fn add(&mut self, piece: &[u8]) {
        self.hash.write(piece);
        self.bytes += piece.len() as u64;
        let room = KEPT_BYTES - self.begin.len();
        self.begin.extend_from_slice(&piece[..piece.len().min(room)]);
    }

    fn add_error(&mut self, piece: &[u8]) {
        self.errors.extend_from_slice(piece);
        let surplus = self.errors.len().saturating_sub(ERRORS_BYTES);
        self.errors.drain(..surplus);
    }

    /// Returns whether another output has the same length and hash.
    pub fn is_same(&self, other: &Output) -> bool {
        self.bytes == other.bytes && self.hash.finish() == other.hash.finish()
    }

    /// Returns the last line of stderr that is not empty. A very long line is cut at its end.
    pub fn last_error(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.errors);
        let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
        let line = line.trim();
        Some(match line.char_indices().nth(LINE_CHARACTERS) {
            Some((end, _)) => format!("{}...", &line[..end]),
            None => line.to_string(),
        })
    }
}

/// Whether the library of `Start::library` was found in the mappings of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The library is mapped.
    Yes,
    /// The process ran for `WATCH` without the library.
    No,
    /// The process exited too soon, this command has no permission to examine the process, or
    /// `Start::library` is `None`.
    Unknown,
}

/// The reason why a wait ended.
pub enum End {
    /// The process has ended, after this wall time.
    Ended(Ended, Duration),
    /// The process exceeded its time limit and was killed.
    TooLong,
    /// The user interrupted mallard, and the process was killed.
    Interrupted,
}

/// The reason why a run was not measured.
pub enum Stop {
    /// The user interrupted mallard.
    Interrupted,
    /// The program exceeded its time limit and was killed.
    TooLong,
    /// The program, or the load of a server, failed in this way.
    Broken(String),
    /// The load command of a server exceeded its time limit and was killed. The text describes how.
    LoadHangs(String),
    /// Mallard, the setup command or the start of the program failed.
    Failed(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        Stop::Failed(failure)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        let what = format!("cannot wait for the program: {}", error.to_string().to_lowercase());
        let state = "the measurement was stopped";
        Stop::Failed(
            Failure::new(what, state, "the same command again").with_status(MALLARD_FAILED),
        )
    }
}

/// A running process. If the value is dropped, the process and its process group are killed.
pub struct Child {
    process: Pid,
    end: Option<OwnedFd>,
    pipes: [Option<File>; 2],
    /// The time of the start.
    pub begin: Instant,
    is_reaped: bool,
    library: Option<PathBuf>,
    orphans: Option<Duration>,
    /// The names of the processes that this process left running. These processes were killed.
    pub left: Vec<String>,
    /// The output so far.
    pub output: Output,
    /// Whether the library was seen.
    pub seen: Seen,
}

impl Child {
    /// Starts a process in a separate process group.
    pub fn start(start: &Start) -> Result<Child, Failure> {
        let failed = |e: io::Error| refused(&start.path, &e);
        let null = File::options().read(true).write(true).open("/dev/null").map_err(failed)?;
        let stdin = match &start.stdin {
            Some(path) => Some(File::open(path).map_err(|e| unreadable(path, &e))?),
            None => None,
        };
        let pipe = || pipe2(OFlag::O_CLOEXEC).map_err(|e| failed(e.into()));
        let pipes = if start.captures { vec![pipe()?, pipe()?] } else { Vec::new() };
        let sink = |index: usize| pipes.get(index).map_or(null.as_fd(), |(_, write)| write.as_fd());
        let begin = Instant::now();
        let process = starter::start(&Program {
            path: &start.path,
            words: start.words.iter().map(OsString::as_os_str).collect(),
            variables: &start.variables,
            streams: [stdin.as_ref().unwrap_or(&null).as_fd(), sink(0), sink(1)],
            is_measured: true,
        })
        .map_err(failed)?;
        let mut read = pipes.into_iter().map(|(read, _)| File::from(read));
        let started = Child {
            process,
            end: end_descriptor(process),
            pipes: [read.next(), read.next()],
            begin,
            is_reaped: false,
            library: start.library.clone(),
            orphans: start.orphans,
            left: Vec::new(),
            output: Output::default(),
            seen: Seen::Unknown,
        };
        for pipe in started.pipes.iter().flatten() {
            fcntl(pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(|e| failed(e.into()))?;
        }
        Ok(started)
    }

    /// Waits for the end of the process. The process may run for at most `limit`, counted from its
    /// start.
    pub fn wait(&mut self, limit: Duration, interrupted: &AtomicBool) -> io::Result<End> {
        loop {
            let rest = limit.saturating_sub(self.begin.elapsed());
            let pause = if self.is_watched() {
                Duration::from_millis(1)
            } else {
                Duration::from_millis(200)
            };
            if self.poll(rest.min(pause))? {
                let wall = self.begin.elapsed();
                if let Some(grace) = self.orphans {
                    self.left = orphans::names(self.process, grace);
                }
                return Ok(End::Ended(self.finish()?, wall));
            }
            self.watch();
            let is_interrupted = interrupted.load(Ordering::Relaxed);
            if is_interrupted || rest.is_zero() {
                self.finish()?;
                return Ok(if is_interrupted { End::Interrupted } else { End::TooLong });
            }
        }
    }

    /// Waits at most `pause` for the end of the process, and reads the output meanwhile. Returns
    /// whether the process has ended.
    pub fn poll(&mut self, pause: Duration) -> io::Result<bool> {
        // Without a pidfd, the exit of the process does not wake `poll`, so each wait lasts at most
        // a millisecond.
        let pause = if self.end.is_some() { pause } else { pause.min(Duration::from_millis(1)) };
        let end = self.end.as_ref().map(AsFd::as_fd);
        let pipes = self.pipes.iter().flatten().map(AsFd::as_fd);
        let mut wanted: Vec<PollFd> = end.into_iter().chain(pipes).map(readable).collect();
        let pause = pause.as_nanos().div_ceil(1_000_000) as u16;
        let _ = poll(&mut wanted, PollTimeout::from(pause)); // a signal may end the wait early
        self.read();
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        Ok(waitid(Id::Pid(self.process), flags)? != WaitStatus::StillAlive)
    }

    /// Sends a signal to the process group.
    pub fn signal(&self, signal: Signal) {
        let _ = killpg(self.process, signal); // the group may have ended
    }

    /// Kills the remaining processes of the process group, and reads the remaining output. Returns
    /// how the process ended.
    pub fn finish(&mut self) -> io::Result<Ended> {
        // The id of the group is not reused before `reap`, so the signal reaches no other group.
        self.signal(Signal::SIGKILL);
        if self.orphans.is_some() {
            orphans::kill_all(self.process);
        }
        let ended = reap(self.process)?;
        self.is_reaped = true;
        self.read();
        Ok(ended)
    }

    fn is_watched(&self) -> bool {
        self.library.is_some() && self.seen == Seen::Unknown
    }

    /// Searches the mappings of the process for the library.
    pub fn watch(&mut self) {
        let Some(library) = self.library.as_ref().filter(|_| self.seen == Seen::Unknown) else {
            return;
        };
        let file = library.canonicalize().unwrap_or_default();
        if proc::has_mapped(self.process.as_raw() as u32, &file, None) {
            self.seen = Seen::Yes;
        } else if self.begin.elapsed() > WATCH {
            self.seen = Seen::No;
        }
    }

    /// Reads all data that is now available in the pipes.
    fn read(&mut self) {
        let mut buffer = [0; 64 << 10];
        for (index, place) in self.pipes.iter_mut().enumerate() {
            let Some(pipe) = place else { continue };
            loop {
                match pipe.read(&mut buffer) {
                    Ok(0) => {
                        *place = None;
                        break;
                    }
                    Ok(bytes) if index == 0 => self.output.add(&buffer[..bytes]),
                    Ok(bytes) => self.output.add_error(&buffer[..bytes]),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(_) => break, // nothing more to read now
                }
            }
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.is_reaped {
            let _ = self.finish();
        }
    }
}

fn readable(fd: BorrowedFd) -> PollFd {
    PollFd::new(fd, PollFlags::POLLIN)
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    let shown = path.display();
    let error = error.to_string().to_lowercase();
    let what = format!("cannot read {shown}, which --stdin names: {error}");
    Failure::new(what, "the program did not run", format!("ls -l {}", quoted_path(path)))
}

/// Describes how a process failed: `ended with status 3` or `was ended by signal 9 (SIGKILL)`.
/// `None` if the process succeeded.
pub fn failure(status: i32) -> Option<String> {
    let how = ending(status, &Output::default());
    match status {
        0 => None,
        _ if nix::libc::WIFSIGNALED(status) => Some(format!("was {how}")),
        _ => Some(format!("ended with {how}")),
    }
}

/// Describes in words how a process ended.
pub fn ending(status: i32, output: &Output) -> String {
    use std::os::unix::process::ExitStatusExt;
    let status = std::process::ExitStatus::from_raw(status);
    let how = match (status.signal(), status.code()) {
        (Some(signal), _) => match Signal::try_from(signal) {
            Ok(name) => format!("ended by signal {signal} ({name})"),
            Err(_) => format!("ended by signal {signal}"),
        },
        (None, code) => format!("status {}", code.unwrap_or(-1)),
    };
    match output.last_error() {
        Some(line) => format!("{how}: {line}"),
        None => how,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(script: &str, library: Option<&str>) -> Child {
        let words = ["sh", "-c", script].map(OsString::from).to_vec();
        let (path, stdin, variables) = ("/bin/sh".into(), None, Vec::new());
        let library = library.map(PathBuf::from);
        Child::start(&Start {
            path,
            words,
            variables,
            stdin,
            captures: true,
            orphans: None,
            library,
        })
        .unwrap()
    }

    fn wait(child: &mut Child, seconds: u64) -> End {
        child.wait(Duration::from_secs(seconds), &AtomicBool::new(false)).unwrap()
    }

    #[test]
    fn all_output_of_a_child_process_is_read() {
        let mut child = started(
            "i=0; while [ $i -lt 20000 ]; do echo $i; i=$((i+1)); done; echo no >&2; exit 3",
            None,
        );
        let End::Ended(ended, _) = wait(&mut child, 60) else { panic!("it did not end") };
        assert_eq!(ended.exit_code(), 3);
        assert_eq!(child.output.bytes, 10 * 2 + 90 * 3 + 900 * 4 + 9000 * 5 + 10000 * 6);
        assert!(child.output.begin.ends_with(b"\n19999\n"));
        assert_eq!(child.output.last_error().unwrap(), "no");
    }

    #[test]
    fn the_message_of_a_crashing_malloc_is_complete_or_marked_as_truncated() {
        let last_error = |line: &str| {
            let mut output = Output::default();
            output.add_error(line.as_bytes());
            output.last_error().unwrap()
        };
        let message = "x".repeat(300);
        assert_eq!(last_error(&message), message);
        assert_eq!(last_error(&"x".repeat(900)), "x".repeat(LINE_CHARACTERS) + "...");
    }

    #[test]
    fn a_process_that_runs_for_too_long_is_killed_with_its_children() {
        let mut child = started("sleep 1000 & echo $!; wait", None);
        assert!(matches!(wait(&mut child, 1), End::TooLong));
        let text = String::from_utf8_lossy(&child.output.begin).into_owned();
        let grandchild = PathBuf::from(format!("/proc/{}/stat", text.trim()));
        let is_gone =
            || std::fs::read_to_string(&grandchild).map_or(true, |stat| stat.contains(") Z "));
        let begin = Instant::now();
        while !is_gone() {
            assert!(begin.elapsed() < Duration::from_secs(60), "it runs on");
        }
    }

    #[test]
    fn a_preloaded_library_that_the_process_does_not_load_is_reported() {
        let mut child = started("sleep 1.2; :", Some("/proc/self/exe"));
        assert!(matches!(wait(&mut child, 60), End::Ended(..)));
        assert_eq!(child.seen, Seen::No);
    }

    #[test]
    fn an_interruption_kills_the_process() {
        let mut child = started("sleep 1000", None);
        let ended = child.wait(Duration::from_secs(60), &AtomicBool::new(true)).unwrap();
        assert!(matches!(ended, End::Interrupted));
    }
}

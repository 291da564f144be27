//! Lets a process load the recorder.
#![allow(unsafe_code)] // one system call has no wrapper

use crate::attach::code;
use crate::attach::modules::{self, is_recorder, Functions, Memory, Module};
use crate::attach::refusals::{filtered, not_permitted, refused, Target};
use crate::attach::request::{
    self, Data, Entry, Late, Operation, BYTES, OPERATION_BYTES, OPERATION_RESULT, PAGE, PATH_ROOM,
};
use crate::attach::seccomp;
use crate::attach::tracee::{checked, NotStopped, Tracee, Urgent};
use crate::attach::waiting::{self, Waiting, SYSTEM_CALL};
use mallard_measure::error::status::CANNOT_RECORD;
use mallard_measure::error::Failure;
use mallard_measure::output::shell::quoted_path;
use mallard_measure::process::proc;
use nix::libc;
use nix::sys::socket::{sendmsg, ControlMessage, MsgFlags};
use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// If no thread calls a trigger for this time, a waiting thread has to load the recorder.
const UNTIL_WAITING: Duration = Duration::from_millis(200);
/// The maximum time of the search for a safe point.
const UNTIL_FAILURE: Duration = Duration::from_secs(10);
/// The maximum time to load the library.
const UNTIL_LOADED: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(1);

/// Values that `mallard_record_attach` returns (`attach_status` in
/// `src/record/attach_request.hpp`).
const BUSY: u64 = 2;
const PRELOADED: u64 = 3;
const NOT_LOADED: u64 = u64::MAX;

/// A recorder that a process has loaded.
pub struct Loaded {
    /// The socket that ends the recording when it is closed.
    pub socket: OwnedFd,
    /// The longest time for which a thread of the process was stopped.
    pub longest_stop: Duration,
    /// The ticks that the thread needed to load the recorder.
    pub ticks: u64,
}

/// The memory and the modules of a process, and the functions that the injected code calls.
struct View<'a> {
    target: &'a Target,
    memory: Memory,
    modules: Vec<Module>,
    functions: Functions,
    waiting: Waiting,
}

/// The data that are computed before a thread is stopped, so that the stop is short.
struct Plan {
    /// The memory that an earlier recording has mapped.
    scratch: Option<u64>,
    /// The entries to change, with offsets in the code instead of addresses.
    entries: Vec<Entry>,
    read_only: Vec<Range<u64>>,
}

/// The changes that the stopped thread has made in the process.
struct Changed {
    scratch: u64,
    entries: Vec<Entry>,
    read_only: Vec<Range<u64>>,
    /// Two connected sockets of the process.
    sockets: [i32; 2],
    /// A file for the library, if the process does not find the library by its path.
    library: Option<i32>,
}

/// Loads the recorder into a process, which then records into the file of a ring. Gives up when
/// `stop` is set. One thread makes all calls of ptrace, because the system requires that. When that
/// thread ends, the system stops tracing the process.
pub fn load(
    target: &Target,
    recorder: &Path,
    ring: &File,
    stop: &AtomicBool,
) -> Result<Loaded, Failure> {
    std::thread::scope(|scope| {
        let loading = scope.spawn(|| load_here(target, recorder, ring, stop));
        loading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn load_here(
    target: &Target,
    recorder: &Path,
    ring: &File,
    stop: &AtomicBool,
) -> Result<Loaded, Failure> {
    let view = View::of(target)?;
    let mut stops = Duration::ZERO;
    let plan = view.plan(recorder)?;
    let changed = view.with_thread(&mut stops, |tracee| view.change(tracee, plan))?;
    let result = view.prepare(&changed, recorder, ring).and_then(|socket| {
        view.wait(&changed, &mut stops, stop)?;
        Ok(socket)
    });
    if result.is_err() || view.field(&changed, request::RESULT) == Some(NOT_LOADED) {
        view.undo(&changed, &mut stops);
    }
    let socket = result?;
    let status = view.field(&changed, request::RESULT).unwrap_or(NOT_LOADED);
    if status != 0 {
        return Err(view.not_loaded(&changed, status, recorder));
    }
    let ticks = view.field(&changed, request::TICKS).unwrap_or(0);
    Ok(Loaded { socket, longest_stop: stops, ticks })
}

/// Makes the error for a system call that failed in the process.
fn failed(target: &Target, what: &str, error: &io::Error) -> Failure {
    let process = target.process;
    if error.raw_os_error() == Some(libc::ESRCH) || proc::threads(process).is_empty() {
        return ended(process);
    }
    refused(
        format!("process {process} cannot {what}: {}", error.to_string().to_lowercase()),
        format!("ls -l /proc/{process}/exe; a limit or a sandbox may forbid it: cat /proc/{process}/limits"),
    )
}

/// Makes the error for a process that has ended while the recorder was being loaded.
fn ended(process: u32) -> Failure {
    Failure::new(
        format!("process {process} ended before the recording began"),
        "nothing was recorded",
        "record it from its start: mallard record -- PROG ARGS",
    )
    .with_status(CANNOT_RECORD)
}

impl View<'_> {
    /// Reads the process. Waits for the dynamic linker, if the process has just been started.
    fn of(target: &Target) -> Result<View<'_>, Failure> {
        let process = target.process;
        let shown = format!("process {process}");
        let memory =
            Memory::open(process).map_err(|error| not_permitted(process, &shown, &error))?;
        let begin = Instant::now();
        let modules = loop {
            match modules::modules(process, &memory) {
                Ok(Some(modules)) => break modules,
                _ if proc::threads(process).is_empty() => return Err(ended(process)),
                _ if begin.elapsed() < UNTIL_FAILURE / 10 => std::thread::sleep(PAUSE),
                Err(error) => return Err(failed(target, "be read", &error)),
                Ok(None) => {
                    let what = format!("{shown} has no list of its libraries");
                    return Err(refused(what, format!("try again, or see gdb -p {process}")));
                }
            }
        };
        let functions = modules::functions(&modules, &memory);
        let functions = functions.map_err(|error| failed(target, "be read", &error))?;
        let waiting = functions
            .as_ref()
            .and_then(|functions| Waiting::new(&modules, &memory, functions.is_malloc_of_libc));
        let (Some(functions), Some(waiting)) = (functions, waiting) else {
            let what = format!("{shown} has no dlopen or no malloc in its libraries");
            return Err(refused(what, "record it from its start: mallard record -- PROG ARGS"));
        };
        Ok(View { target, memory, modules, functions, waiting })
    }

    /// Stops a thread of the process while `action` runs. Tries waiting threads first, because a
    /// waiting thread stops immediately. Sets `longest` to the duration of the stop if that is
    /// longer.
    fn with_thread<T>(
        &self,
        longest: &mut Duration,
        action: impl FnOnce(&mut Tracee) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let process = self.target.process;
        let mut threads = proc::threads(process);
        threads.sort_by_cached_key(|&thread| match proc::state_of_thread(process, thread) {
            Some('S') => 0,
            Some('R') => 1,
            _ => 2,
        });
        let mut is_busy = false;
        let _urgent = Urgent::begin();
        for thread in threads {
            match Tracee::stop(process, thread, self.waiting.system_call_at) {
                Ok(mut tracee) => {
                    let result = action(&mut tracee);
                    *longest = (*longest).max(tracee.stopped_for());
                    return result;
                }
                Err(NotStopped::Ended) => {}
                Err(NotStopped::Busy) => is_busy = true,
                Err(NotStopped::Refused(error)) => {
                    return Err(not_permitted(process, &format!("process {process}"), &error));
                }
            }
        }
        match is_busy {
            true => Err(refused(
                format!("no thread of process {process} stops: all wait for a device, or a signal has stopped them"),
                format!("ps -L -o tid,stat,wchan -p {process}"),
            )),
            false => Err(ended(process)),
        }
    }

    /// Reads all data that can be read while the process runs.
    fn plan(&self, recorder: &Path) -> Result<Plan, Failure> {
        let fails = |error: io::Error| failed(self.target, "be read", &error);
        let (entries, read_only) =
            modules::entries(&self.modules, &self.memory, &self.functions).map_err(fails)?;
        if self.target.sees_files && recorder.as_os_str().len() >= PATH_ROOM.len() {
            let what = format!("the path of the recorder is too long: {}", recorder.display());
            return Err(refused(what, "install Mallard in a directory with a shorter path"));
        }
        Ok(Plan { scratch: self.earlier_scratch(), entries, read_only })
    }

    /// Maps memory in the process, makes a pair of sockets, and changes the entries. No thread
    /// loads the recorder yet, because the code still calls the real functions.
    fn change(&self, tracee: &mut Tracee, plan: Plan) -> Result<Changed, Failure> {
        if self.target.has_filter {
            self.check_filters(tracee)?;
        }
        let Plan { scratch, mut entries, read_only } = plan;
        let fails = |what: &'static str| move |error: io::Error| failed(self.target, what, &error);
        let scratch = match scratch {
            Some(scratch) => scratch,
            None => self.map(tracee).map_err(fails("map memory"))?,
        };
        entries.iter_mut().for_each(|entry| entry.now += scratch);
        let data = scratch + PAGE as u64;
        let page = Data {
            scratch,
            pid_there: self.target.pid_there,
            pid: self.target.process,
            command: if self.target.is_in_own_pids { std::process::id() } else { 0 },
            real: &self.functions.real,
            dlopen: self.functions.dlopen,
            dlsym: self.functions.dlsym,
            dlerror: self.functions.dlerror,
            errno: self.functions.errno,
            flags: self.functions.flags,
            entries: &entries,
        }
        .page();
        self.memory.write(data, &page).map_err(fails("be written"))?;
        let kind = (libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC) as u64;
        let at = data + request::SOCKETS as u64;
        let mut operations = vec![
            Operation::Call(libc::SYS_socketpair, [libc::AF_UNIX as u64, kind, 0, at]),
            match self.target.sees_files {
                true => Operation::Call(libc::SYS_getpid, [0; 4]),
                false => {
                    let name = data + request::COPY_NAME as u64;
                    Operation::Call(libc::SYS_memfd_create, [name, libc::MFD_CLOEXEC.into(), 0, 0])
                }
            },
        ];
        operations.extend(self.stores(entries.iter().copied(), &read_only));
        self.make(tracee, scratch, &operations).map_err(fails("change its entries"))?;
        self.result(scratch, 0).map_err(fails("make a pair of sockets"))?;
        let file = self.result(scratch, 1).map_err(fails("receive the recorder"))? as i32;
        let both = self.memory.word(at).map_err(fails("be read"))?;
        Ok(Changed {
            scratch,
            entries,
            read_only,
            sockets: [both as u32 as i32, (both >> 32) as i32],
            library: (!self.target.sees_files).then_some(file),
        })
    }

    /// Sends the ring and the library's path to the process. From then on, a thread may load the
    /// recorder. Returns the socket of this command.
    fn prepare(&self, changed: &Changed, recorder: &Path, ring: &File) -> Result<OwnedFd, Failure> {
        let &Changed { scratch, sockets: [peer, socket], library, .. } = changed;
        let fails = |what: &'static str| move |error: io::Error| failed(self.target, what, &error);
        let own = take(self.target.process, peer).map_err(fails("hand over a socket"))?;
        send(&own, ring).map_err(fails("receive the ring"))?;
        let mut path = recorder.as_os_str().as_bytes().to_vec();
        if let Some(file) = library {
            // The file is open only in the process, so it is opened by its path in /proc.
            let to = proc::file_of(self.target.process, file);
            std::fs::read(recorder)
                .and_then(|bytes| File::options().write(true).open(to)?.write_all(&bytes))
                .map_err(fails("receive the recorder"))?;
            path = format!("/proc/self/fd/{file}").into_bytes();
        }
        let data = scratch + PAGE as u64;
        let late = Late { path: &path, socket, peer, library: library.unwrap_or(-1) };
        for (at, bytes) in late.fields() {
            self.memory.write(data + at as u64, &bytes).map_err(fails("be written"))?;
        }
        let state = data + request::STATE as u64;
        self.memory.write(state, &request::WAITING.to_ne_bytes()).map_err(fails("be written"))?;
        Ok(own)
    }

    /// Restores the entries, and closes the descriptors of the process. No thread loads the
    /// recorder any more. If no thread can be stopped, the entries stay changed, but the code calls
    /// the real functions.
    fn undo(&self, changed: &Changed, longest: &mut Duration) {
        let state = changed.scratch + (PAGE + request::STATE) as u64;
        let close = Entry { at: state, before: request::WAITING, now: request::CLOSED };
        let fails = |error: io::Error| failed(self.target, "change its entries", &error);
        let mut make = |operations: &[Operation]| {
            self.with_thread(longest, |tracee| {
                self.make(tracee, changed.scratch, operations).map_err(fails)
            })
        };
        if self.field(changed, request::STATE) == Some(request::WAITING) {
            let _ = make(&[Operation::Store(close)]);
        }
        if ![Some(request::CLOSED), Some(request::DONE)]
            .contains(&self.field(changed, request::STATE))
        {
            return; // a thread has come, and the recorder ends when it finds the socket closed
        }
        let restored = changed.entries.iter().map(|&Entry { at, before, now }| Entry {
            at,
            before: now,
            now: before,
        });
        let mut operations = self.stores(restored, &changed.read_only);
        let [peer, socket] = changed.sockets;
        operations.extend(
            [Some(peer), Some(socket), changed.library]
                .into_iter()
                .flatten()
                .map(|descriptor| Operation::Call(libc::SYS_close, [descriptor as u64, 0, 0, 0])),
        );
        let _ = make(&operations);
        let _ = self.memory.write(state, &request::DONE.to_ne_bytes());
    }

    /// Rejects a process whose filters forbid a needed system call, because a filter may kill the
    /// process.
    fn check_filters(&self, tracee: &Tracee) -> Result<(), Failure> {
        let process = self.target.process;
        let filters = tracee.filters().map_err(|error| {
            refused(
                format!(
                    "process {process} has a system call filter (seccomp), which only root can read ({})",
                    error.to_string().to_lowercase()
                ),
                format!("sudo mallard record --pid {process}, which tells whether the filter permits it"),
            )
        })?;
        match seccomp::forbidden(&filters) {
            Some(call) => Err(filtered(process, &format!("forbids {call}"))),
            None => Ok(()),
        }
    }

    /// Returns the memory that an earlier recording has mapped. `None` if there was no such
    /// recording.
    fn earlier_scratch(&self) -> Option<u64> {
        let recorder = self.modules.iter().rev().find(|module| is_recorder(&module.name))?;
        let at = recorder.symbols(&self.memory).ok()?.address("mallard_record_scratch")?;
        let scratch = self.memory.word(at).ok().filter(|&scratch| scratch != 0)?;
        let has_code = self.memory.bytes(scratch, code::bytes().len()).ok()? == code::bytes();
        let state = self.memory.word(scratch + (PAGE + request::STATE) as u64).ok()?;
        (has_code && state == request::DONE).then_some(scratch)
    }

    fn map(&self, tracee: &mut Tracee) -> io::Result<u64> {
        let rights = (libc::PROT_READ | libc::PROT_WRITE) as u64;
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
        let all = [0, BYTES as u64, rights, flags, u64::MAX, 0];
        let scratch = tracee.system_call(libc::SYS_mmap, all)?;
        self.memory.write(scratch, code::bytes())?;
        let rights = (libc::PROT_READ | libc::PROT_EXEC) as u64;
        tracee.system_call(libc::SYS_mprotect, [scratch, PAGE as u64, rights, 0, 0, 0])?;
        Ok(scratch)
    }

    /// Returns the operations that change entries. The process changes each entry by one atomic
    /// instruction, and only if the entry has the expected value.
    fn stores(
        &self,
        entries: impl Iterator<Item = Entry>,
        read_only: &[Range<u64>],
    ) -> Vec<Operation> {
        let mappings = proc::mappings(self.target.process);
        let is_writable = |at: u64| {
            mappings.iter().any(|mapping| mapping.range.contains(&at) && mapping.is_writable)
        };
        // The dynamic linker still relocates modules whose pages are writable.
        let protected: Vec<_> =
            read_only.iter().filter(|range| !is_writable(range.start)).collect();
        let protect = |rights: i32| {
            let call = move |range: &&Range<u64>| {
                let arguments = [range.start, range.end - range.start, rights as u64, 0];
                Operation::Call(libc::SYS_mprotect, arguments)
            };
            protected.iter().map(call).collect::<Vec<_>>()
        };
        let is_ready = |entry: &Entry| {
            !read_only.iter().any(|range| range.contains(&entry.at))
                || protected.iter().any(|range| range.contains(&entry.at))
        };
        let mut operations = protect(libc::PROT_READ | libc::PROT_WRITE);
        operations.extend(entries.filter(is_ready).map(Operation::Store));
        operations.extend(protect(libc::PROT_READ));
        operations
    }

    /// Makes the stopped thread execute operations.
    fn make(&self, tracee: &mut Tracee, scratch: u64, operations: &[Operation]) -> io::Result<()> {
        let table = scratch + request::TABLE as u64;
        self.memory.write(table, &request::table(operations))?;
        tracee.make(scratch, table)
    }

    /// Returns the result of an operation that was a system call.
    fn result(&self, scratch: u64, operation: usize) -> io::Result<u64> {
        let at = request::TABLE + operation * OPERATION_BYTES + OPERATION_RESULT;
        checked(self.memory.word(scratch + at as u64)? as i64)
    }

    fn field(&self, changed: &Changed, field: usize) -> Option<u64> {
        self.memory.word(changed.scratch + (PAGE + field) as u64).ok()
    }

    /// Waits until a thread has loaded the recorder.
    fn wait(
        &self,
        changed: &Changed,
        longest: &mut Duration,
        stop: &AtomicBool,
    ) -> Result<(), Failure> {
        let process = self.target.process;
        let begin = Instant::now();
        let mut tried = UNTIL_WAITING;
        loop {
            let state = self.field(changed, request::STATE);
            match state {
                Some(request::DONE) => return Ok(()),
                None => return Err(ended(process)),
                _ if proc::threads(process).is_empty() => return Err(ended(process)),
                Some(request::WAITING) if stop.load(Ordering::Relaxed) => {
                    return Err(interrupted());
                }
                Some(request::WAITING) if begin.elapsed() > UNTIL_FAILURE => {
                    return Err(self.no_safe_point());
                }
                Some(request::WAITING) if begin.elapsed() > tried => {
                    self.use_waiting_thread(changed, longest);
                    tried = begin.elapsed() + UNTIL_WAITING;
                }
                _ if begin.elapsed() > UNTIL_LOADED => return Err(self.hangs()),
                _ => {}
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Lets a thread that waits in a system call load the recorder, if there is one.
    fn use_waiting_thread(&self, changed: &Changed, longest: &mut Duration) {
        let process = self.target.process;
        for thread in waiting::candidates(process, self.functions.is_malloc_of_libc) {
            let _urgent = Urgent::begin();
            let stopped = Tracee::stop(process, thread, self.waiting.system_call_at);
            let Ok(mut tracee) = stopped else { continue };
            let may_load = self.waiting.may_load(process, &tracee, &self.memory);
            if may_load {
                let registers = &mut tracee.registers;
                // The thread has to restart its system call afterwards.
                let again = [registers.rip - SYSTEM_CALL.len() as u64, registers.orig_rax];
                let to = changed.scratch + (PAGE + request::AGAIN_RIP) as u64;
                let again: Vec<u8> = again.iter().flat_map(|word| word.to_ne_bytes()).collect();
                if self.memory.write(to, &again).is_ok() {
                    registers.rip = changed.scratch + code::WAIT;
                    registers.orig_rax = u64::MAX;
                }
            }
            *longest = (*longest).max(tracee.stopped_for());
            if may_load {
                return;
            }
        }
    }

    fn no_safe_point(&self) -> Failure {
        let process = self.target.process;
        refused(
            format!(
                "no thread of process {process} reached a safe point within {} s: none called malloc or free, and \
                 none waited in a system call in which it certainly holds no lock",
                UNTIL_FAILURE.as_secs()
            ),
            "try again while the program has work, or record it from its start: mallard record -- PROG ARGS",
        )
    }

    fn hangs(&self) -> Failure {
        let process = self.target.process;
        Failure::new(
            format!("a thread of process {process} has been loading the recorder for {} s", UNTIL_LOADED.as_secs()),
            "the recording has not begun; the thread probably waits for another one that loads a library",
            format!("gdb -p {process} -batch -ex 'thread apply all bt'"),
        )
        .with_status(CANNOT_RECORD)
    }

    /// Makes the error for a recorder that was not loaded, or did not start.
    fn not_loaded(&self, changed: &Changed, status: u64, recorder: &Path) -> Failure {
        let process = self.target.process;
        let (why, help) = match status {
            NOT_LOADED => {
                let text = self.field(changed, request::ERROR).filter(|&at| at != 0);
                let text = text.map_or(String::new(), |at| {
                    format!(": {}", String::from_utf8_lossy(&self.memory.text(at)))
                });
                let help = format!("ldd {}", quoted_path(recorder));
                (format!("could not load the recorder{text}"), help)
            }
            BUSY => (
                "is recorded by another mallard".to_string(),
                "wait until that ends: pgrep -af 'mallard record'".to_string(),
            ),
            PRELOADED => (
                "was started with the recorder: its calls reach that one".to_string(),
                "start it without mallard, or use the first recording".to_string(),
            ),
            _ => (
                format!("has loaded the recorder, which did not start ({status})"),
                format!("cat /proc/{process}/limits: a limit of memory, threads or files may be too low"),
            ),
        };
        refused(format!("process {process} {why}"), help)
    }
}

/// Makes the error for a command that was interrupted while it waited for a safe point.
fn interrupted() -> Failure {
    refused(
        "interrupted before the recording began".to_string(),
        "mallard record --pid PID, to try again",
    )
}

/// Duplicates a descriptor of another process into this process.
fn take(process: u32, descriptor: i32) -> io::Result<OwnedFd> {
    let process = nix::unistd::Pid::from_raw(process as i32);
    let of = mallard_measure::process::launch::end_descriptor(process)
        .ok_or_else(io::Error::last_os_error)?;
    // SAFETY: the call has no pointers. It returns a new descriptor or a negative number.
    let taken = unsafe { libc::syscall(libc::SYS_pidfd_getfd, of.as_raw_fd(), descriptor, 0) };
    match taken {
        // SAFETY: the descriptor is new and has no other owner.
        0.. => Ok(unsafe { OwnedFd::from_raw_fd(taken as i32) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sends the file of the ring through a socket.
fn send(socket: &OwnedFd, ring: &File) -> io::Result<()> {
    let rights = [ring.as_raw_fd()];
    let rights = [ControlMessage::ScmRights(&rights)];
    sendmsg::<()>(
        socket.as_raw_fd(),
        &[IoSlice::new(b"r")],
        &rights,
        MsgFlags::MSG_NOSIGNAL,
        None,
    )?;
    Ok(())
}

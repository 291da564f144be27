//! A thread of another process that is stopped by ptrace, and makes system calls for this command.
#![allow(unsafe_code)] // ptrace has pointers

use crate::attach::code;
use crate::attach::seccomp::Instruction;
use mallard_measure::process::proc;
use nix::libc::{self, c_int, c_long, c_void, user_regs_struct};
use std::io;
use std::time::{Duration, Instant};

/// Requests that libc does not name.
const GET_SIGNAL_MASK: u32 = 0x420a;
const SET_SIGNAL_MASK: u32 = 0x420b;
const GET_SECCOMP_FILTER: u32 = 0x420c;

/// How often a thread that must stop is looked at.
const PAUSE: Duration = Duration::from_micros(50);
/// A thread that the kernel does not stop for so long is left alone.
const PATIENCE: Duration = Duration::from_secs(2);

/// Signals that a fault of the thread raises. They cannot wait.
const FAULTS: [i32; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP];

/// What a system call returns that a signal or a stop has interrupted, and that the kernel would make
/// again: ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND, ERESTART_RESTARTBLOCK.
const RESTARTED: [i64; 4] = [-512, -513, -514, -516];

/// Why a thread did not stop.
#[derive(Debug)]
pub enum NotStopped {
    /// The thread or its process has ended.
    Ended,
    /// The thread does not stop now, because it waits for a device, or was stopped by a signal.
    Busy,
    /// The system refuses.
    Refused(io::Error),
}

/// A scope in which this thread runs before all threads that share the processors, if the system permits
/// that: a stopped thread waits for this one.
pub struct Urgent {
    policy: c_int,
    parameters: libc::sched_param,
}

impl Urgent {
    /// Begins the scope.
    pub fn begin() -> Urgent {
        // SAFETY: the pointers are valid, and 0 is the calling thread.
        unsafe {
            let mut before: libc::sched_param = std::mem::zeroed();
            let policy = libc::sched_getscheduler(0);
            libc::sched_getparam(0, &raw mut before);
            let first = libc::sched_param { sched_priority: 1 };
            libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const first);
            Urgent { policy, parameters: before }
        }
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        // SAFETY: the pointer is valid, and 0 is the calling thread.
        unsafe {
            libc::sched_setscheduler(0, self.policy, &raw const self.parameters);
        }
    }
}

/// A stopped thread. When the value is dropped, the thread continues as if nothing had happened.
pub struct Tracee {
    process: u32,
    thread: u32,
    /// The registers with which the thread continues.
    pub registers: user_regs_struct,
    mask: u64,
    /// Where the process has the instruction `syscall`.
    system_call_at: u64,
    stopped: Instant,
}

impl Tracee {
    /// Stops a thread. `system_call_at` is an address of the instruction `syscall` in the process.
    pub fn stop(process: u32, thread: u32, system_call_at: u64) -> Result<Tracee, NotStopped> {
        let refused = |error: io::Error| match error.raw_os_error() {
            Some(libc::ESRCH) => NotStopped::Ended,
            _ => NotStopped::Refused(error),
        };
        request(libc::PTRACE_SEIZE, thread, 0, 0).map_err(refused)?;
        let stopped = Instant::now();
        request(libc::PTRACE_INTERRUPT, thread, 0, 0).map_err(refused)?;
        wait_for_stop(thread)?;
        // SAFETY: all fields are numbers.
        let mut registers: user_regs_struct = unsafe { std::mem::zeroed() };
        let mut mask = 0u64;
        let to = &raw mut registers as usize;
        request(libc::PTRACE_GETREGS, thread, 0, to).map_err(refused)?;
        request(GET_SIGNAL_MASK, thread, 8, &raw mut mask as usize).map_err(refused)?;
        let blocked = FAULTS.iter().fold(u64::MAX, |mask, signal| mask & !(1 << (signal - 1)));
        request(SET_SIGNAL_MASK, thread, 8, &raw const blocked as usize).map_err(refused)?;
        let mut tracee = Tracee { process, thread, registers, mask, system_call_at, stopped };
        tracee.repair_interruption();
        Ok(tracee)
    }

    /// Whether the thread was in a system call that the stop has interrupted.
    pub fn is_in_system_call(&self) -> bool {
        self.registers.orig_rax as i64 >= 0 && RESTARTED.contains(&(self.registers.rax as i64))
    }

    /// Some calls return EINTR to the program after a stop, such as epoll_wait. The thread makes the call
    /// again instead, unless a signal waits that the program may want to see.
    fn repair_interruption(&mut self) {
        let call = self.registers.orig_rax as i64;
        let is_interrupted = call >= 0 && self.registers.rax as i64 == -i64::from(libc::EINTR);
        if is_interrupted && call != libc::SYS_connect && !self.has_signal() {
            self.registers.rax = RESTARTED[0] as u64;
        }
    }

    /// Whether a signal waits for the thread.
    fn has_signal(&self) -> bool {
        let bits = |name| {
            let text = proc::status_of_thread(self.process, self.thread, name);
            text.and_then(|text| u64::from_str_radix(&text, 16).ok()).unwrap_or(u64::MAX)
        };
        (bits("SigPnd:") | bits("ShdPnd:")) & !self.mask != 0
    }

    /// The thread makes a system call, and this function returns its result.
    pub fn system_call(&mut self, number: c_long, arguments: [u64; 6]) -> io::Result<u64> {
        let [rdi, rsi, rdx, r10, r8, r9] = arguments;
        let registers = user_regs_struct {
            rax: number as u64,
            orig_rax: u64::MAX, // the interrupted call is not made again now
            rip: self.system_call_at,
            rdi,
            rsi,
            rdx,
            r10,
            r8,
            r9,
            ..self.registers
        };
        let result = self.go(libc::PTRACE_SINGLESTEP, registers)?.rax as i64;
        checked(result)
    }

    /// The thread makes the operations of a table, with the code at `code_at`.
    pub fn make(&mut self, code_at: u64, table: u64) -> io::Result<()> {
        let registers = user_regs_struct {
            orig_rax: u64::MAX,
            rip: code_at + code::OPERATIONS,
            rbx: table,
            ..self.registers
        };
        self.go(libc::PTRACE_CONT, registers).map(drop)
    }

    /// The thread continues until it traps, and this function returns its registers.
    fn go(&mut self, how: u32, registers: user_regs_struct) -> io::Result<user_regs_struct> {
        self.write(&registers)?;
        request(how, self.thread, 0, 0)?;
        match wait(self.thread, PATIENCE)? {
            Some(libc::SIGTRAP) => {}
            Some(signal) => {
                return Err(io::Error::other(format!("signal {signal} in the thread")));
            }
            None => return Err(io::ErrorKind::TimedOut.into()),
        }
        let mut after = registers;
        request(libc::PTRACE_GETREGS, self.thread, 0, &raw mut after as usize)?;
        Ok(after)
    }

    fn write(&self, registers: &user_regs_struct) -> io::Result<()> {
        request(libc::PTRACE_SETREGS, self.thread, 0, registers as *const _ as usize).map(drop)
    }

    /// The filters of system calls that the thread has. Only root may read them.
    pub fn filters(&self) -> io::Result<Vec<Vec<Instruction>>> {
        let mut filters = Vec::new();
        loop {
            let read = |to: usize| request(GET_SECCOMP_FILTER, self.thread, filters.len(), to);
            let count = match read(0) {
                Ok(count) => count as usize,
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(filters),
                Err(error) => return Err(error),
            };
            let mut filter = vec![Instruction { code: 0, yes: 0, no: 0, k: 0 }; count];
            read(filter.as_mut_ptr() as usize)?;
            filters.push(filter);
        }
    }

    /// For how long the thread has been stopped.
    pub fn stopped_for(&self) -> Duration {
        self.stopped.elapsed()
    }
}

impl Drop for Tracee {
    fn drop(&mut self) {
        // The thread may have ended meanwhile.
        let _ = self.write(&self.registers);
        let _ = request(SET_SIGNAL_MASK, self.thread, 8, &raw const self.mask as usize);
        let _ = request(libc::PTRACE_DETACH, self.thread, 0, 0);
    }
}

/// The result of a system call.
pub fn checked(result: i64) -> io::Result<u64> {
    match result {
        -4095..=-1 => Err(io::Error::from_raw_os_error(-result as i32)),
        _ => Ok(result as u64),
    }
}

/// Waits until a thread stops because of PTRACE_INTERRUPT. A signal that comes first is delivered.
fn wait_for_stop(thread: u32) -> Result<(), NotStopped> {
    let end = |error: io::Error| match error.raw_os_error() {
        Some(libc::ECHILD | libc::ESRCH) => NotStopped::Ended,
        _ => NotStopped::Refused(error),
    };
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        let Some(status) = status(thread, PATIENCE).map_err(end)? else { break };
        let signal = libc::WSTOPSIG(status);
        if !libc::WIFSTOPPED(status) {
            return Err(NotStopped::Ended);
        }
        match (status >> 16, signal) {
            (libc::PTRACE_EVENT_STOP, libc::SIGTRAP) => return Ok(()),
            (libc::PTRACE_EVENT_STOP, _) => {
                // A signal has stopped the process. It stays stopped.
                let _ = request(libc::PTRACE_DETACH, thread, 0, 0);
                return Err(NotStopped::Busy);
            }
            _ => request(libc::PTRACE_CONT, thread, 0, signal as usize).map_err(end)?,
        };
    }
    Err(NotStopped::Busy)
}

/// The signal with which a thread stops. `None` if it does not stop in this time.
fn wait(thread: u32, limit: Duration) -> io::Result<Option<i32>> {
    match status(thread, limit)? {
        Some(status) if libc::WIFSTOPPED(status) => Ok(Some(libc::WSTOPSIG(status))),
        Some(_) => Err(io::Error::from_raw_os_error(libc::ESRCH)),
        None => Ok(None),
    }
}

/// The next status of a thread as `waitpid` returns it. `None` if there is none in this time.
fn status(thread: u32, limit: Duration) -> io::Result<Option<c_int>> {
    let begin = Instant::now();
    loop {
        let mut status = 0;
        // SAFETY: the pointer is valid.
        match unsafe { libc::waitpid(thread as i32, &raw mut status, libc::__WALL | libc::WNOHANG) }
        {
            -1 => return Err(io::Error::last_os_error()),
            0 if begin.elapsed() > limit => return Ok(None),
            0 if begin.elapsed() < PAUSE => std::hint::spin_loop(),
            0 => std::thread::sleep(PAUSE),
            _ => return Ok(Some(status)),
        }
    }
}

fn request(what: u32, thread: u32, address: usize, data: usize) -> io::Result<c_long> {
    let (address, data) = (address as *mut c_void, data as *mut c_void);
    // SAFETY: all callers pass pointers to values that live during the call and have the right size.
    match unsafe { libc::ptrace(what, thread as libc::pid_t, address, data) } {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result),
    }
}

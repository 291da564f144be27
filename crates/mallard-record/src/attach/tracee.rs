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

/// The pause between two checks whether a thread has stopped.
const PAUSE: Duration = Duration::from_micros(50);
/// The maximum time to wait until a thread stops.
const PATIENCE: Duration = Duration::from_secs(2);

/// Signals that an invalid instruction or memory access raises. The kernel cannot delay these
/// signals, so they are not blocked.
const FAULTS: [i32; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP];

/// The results of system calls that a signal or a stop has interrupted, and that the kernel
/// restarts: ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND, ERESTART_RESTARTBLOCK.
const RESTARTED: [i64; 4] = [-512, -513, -514, -516];

/// The reason why a thread did not stop.
#[derive(Debug)]
pub enum NotStopped {
    /// The thread or its process has ended.
    Ended,
    /// The thread does not stop now, because it waits for a device, or was stopped by a signal.
    Busy,
    /// The system does not permit this command to stop the thread.
    Refused(io::Error),
}

/// A scope in which this thread has real-time priority, if the system permits that. The priority
/// shortens the time for which the stopped thread waits for this thread.
pub struct Urgent {
    policy: c_int,
    parameters: libc::sched_param,
}

impl Urgent {
    /// Begins the scope, and gives the calling thread real-time priority.
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
    /// The address of an instruction `syscall` in the process.
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

    /// Returns whether the stop has interrupted a system call of the thread.
    pub fn is_in_system_call(&self) -> bool {
        self.registers.orig_rax as i64 >= 0 && RESTARTED.contains(&(self.registers.rax as i64))
    }

    /// Makes the kernel restart a system call that would return EINTR to the program because of the
    /// stop, such as epoll_wait. Does nothing if a signal is pending, because the program may
    /// expect that the signal interrupts the call.
    fn repair_interruption(&mut self) {
        let call = self.registers.orig_rax as i64;
        let is_interrupted = call >= 0 && self.registers.rax as i64 == -i64::from(libc::EINTR);
        if is_interrupted && call != libc::SYS_connect && !self.has_signal() {
            self.registers.rax = RESTARTED[0] as u64;
        }
    }

    /// Returns whether an unblocked signal is pending for the thread.
    fn has_signal(&self) -> bool {
        let bits = |name| {
            let text = proc::status_of_thread(self.process, self.thread, name);
            text.and_then(|text| u64::from_str_radix(&text, 16).ok()).unwrap_or(u64::MAX)
        };
        (bits("SigPnd:") | bits("ShdPnd:")) & !self.mask != 0
    }

    /// Makes the thread execute a system call, and returns the result of the call.
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

    /// Makes the thread execute the operations of a table, with the code at `code_at`.
    pub fn make(&mut self, code_at: u64, table: u64) -> io::Result<()> {
        let registers = user_regs_struct {
            orig_rax: u64::MAX,
            rip: code_at + code::OPERATIONS,
            rbx: table,
            ..self.registers
        };
        self.go(libc::PTRACE_CONT, registers).map(drop)
    }

    /// Lets the thread run until it traps, and returns the registers of the thread.
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

    /// Returns the system call filters of the thread. Only root may read these filters.
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

    /// Returns the time for which the thread has been stopped.
    pub fn stopped_for(&self) -> Duration {
        self.stopped.elapsed()
    }
}

impl Drop for Tracee {
    fn drop(&mut self) {
        // Ignore errors, because the thread may have ended meanwhile.
        let _ = self.write(&self.registers);
        let _ = request(SET_SIGNAL_MASK, self.thread, 8, &raw const self.mask as usize);
        let _ = request(libc::PTRACE_DETACH, self.thread, 0, 0);
    }
}

/// Converts the return value of a system call into a result or an error.
pub fn checked(result: i64) -> io::Result<u64> {
    match result {
        -4095..=-1 => Err(io::Error::from_raw_os_error(-result as i32)),
        _ => Ok(result as u64),
    }
}

/// Waits until a thread stops because of PTRACE_INTERRUPT. Delivers signals that arrive before the
/// stop.
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
                // A signal has stopped the process. Do not continue the process.
                let _ = request(libc::PTRACE_DETACH, thread, 0, 0);
                return Err(NotStopped::Busy);
            }
            _ => request(libc::PTRACE_CONT, thread, 0, signal as usize).map_err(end)?,
        };
    }
    Err(NotStopped::Busy)
}

/// Waits until a thread stops, and returns the signal that stopped the thread. `None` if the thread
/// does not stop within `limit`.
fn wait(thread: u32, limit: Duration) -> io::Result<Option<i32>> {
    match status(thread, limit)? {
        Some(status) if libc::WIFSTOPPED(status) => Ok(Some(libc::WSTOPSIG(status))),
        Some(_) => Err(io::Error::from_raw_os_error(libc::ESRCH)),
        None => Ok(None),
    }
}

/// Waits for the next status of a thread, and returns the status of `waitpid`. `None` if the status
/// does not change within `limit`.
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
    // SAFETY: all callers pass pointers to values that live during the call and have the right
    // size.
    match unsafe { libc::ptrace(what, thread as libc::pid_t, address, data) } {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result),
    }
}

//! Finds a thread that waits in a system call, and may load the recorder there.
//!
//! The thread must hold no lock of malloc or of the dynamic linker, and must be able to call
//! dlopen:
//! - The thread waits in a system call that neither the malloc of the C library nor the dynamic
//!   linker makes, so the thread is in no function of malloc or of the dynamic linker. The
//!   operation of the futex shows whether the thread waits for a condition variable or for a lock.
//! - A malloc that is not the C library's may sleep while it waits for a lock. If the process has
//!   such a malloc, a thread that sleeps or waits for a futex is not chosen.
//! - The thread is in no signal handler, because a handler may have interrupted any function. The
//!   stack of the thread has no frame that returns to the code by which the C library leaves
//!   handlers.

use crate::attach::modules::{is_libc, Memory, Module};
use crate::attach::tracee::Tracee;
use mallard_measure::process::proc;
use nix::libc;

/// System calls in which a thread waits for something outside of malloc and of the dynamic linker.
const WAITS: [i64; 18] = [
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_pause,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_msgrcv,
    libc::SYS_rt_sigtimedwait,
];
/// System calls by which a malloc that is not the C library's may wait for a lock.
const SLEEPS: [i64; 4] =
    [libc::SYS_nanosleep, libc::SYS_clock_nanosleep, libc::SYS_select, libc::SYS_restart_syscall];

/// The operation of a futex by which condition variables, semaphores and joins of glibc wait. Locks
/// of glibc wait by the operation 0.
const FUTEX_WAIT_BITSET: u64 = 9;
const FUTEX_OPERATION: u64 = 0x7f;

/// The instructions `mov $15, %rax; syscall`, which return from a signal handler.
const RETURN_FROM_HANDLER: [u8; 9] = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];
pub const SYSTEM_CALL: [u8; 2] = [0x0f, 0x05];

/// The number of bytes of a stack that are searched for frames of signal handlers.
const STACK_BYTES_MAX: u64 = 1 << 20;

/// Returns the threads of a process that probably wait in such a system call, according to the
/// state of each thread in /proc.
pub fn candidates(process: u32, is_malloc_of_libc: bool) -> Vec<u32> {
    let waits = |&thread: &u32| {
        let call = proc::system_call_of_thread(process, thread).map(|call| call as i64);
        proc::state_of_thread(process, thread) == Some('S')
            && call.is_some_and(|call| {
                may_wait(call, is_malloc_of_libc)
                    || call == libc::SYS_read
                    || call == libc::SYS_futex && is_malloc_of_libc
            })
    };
    proc::threads(process).into_iter().filter(waits).collect()
}

fn may_wait(call: i64, is_malloc_of_libc: bool) -> bool {
    match SLEEPS.contains(&call) {
        true => is_malloc_of_libc,
        false => WAITS.contains(&call),
    }
}

/// The facts about a process by which `may_load` decides.
pub struct Waiting {
    is_malloc_of_libc: bool,
    /// The addresses of the code in the C library that returns from a signal handler.
    returns: Vec<u64>,
    /// An address of the instruction `syscall`.
    pub system_call_at: u64,
}

impl Waiting {
    /// Searches the code of the C library. `None` if the code has no return from a signal handler.
    pub fn new(modules: &[Module], memory: &Memory, is_malloc_of_libc: bool) -> Option<Waiting> {
        let libc = modules.iter().find(|module| is_libc(module))?;
        let (mut returns, mut system_call_at) = (Vec::new(), None);
        for range in libc.loaded() {
            let Ok(code) = memory.bytes(range.start, (range.end - range.start) as usize) else {
                continue;
            };
            for at in 0..code.len().saturating_sub(RETURN_FROM_HANDLER.len()) {
                if code[at..].starts_with(&RETURN_FROM_HANDLER) {
                    returns.push(range.start + at as u64);
                    // These bytes are certainly an instruction `syscall`.
                    system_call_at = Some(range.start + at as u64 + 7);
                }
            }
        }
        Some(Waiting { is_malloc_of_libc, returns, system_call_at: system_call_at? })
    }

    /// Returns whether the stopped thread may load the recorder.
    pub fn may_load(&self, process: u32, tracee: &Tracee, memory: &Memory) -> bool {
        let registers = &tracee.registers;
        let call = registers.orig_rax as i64;
        let is_wait = match call {
            libc::SYS_futex => {
                self.is_malloc_of_libc && registers.rsi & FUTEX_OPERATION == FUTEX_WAIT_BITSET
            }
            // A thread that reads a file may be in the dynamic linker, which must not be
            // interrupted.
            libc::SYS_read => std::fs::metadata(proc::file_of(process, registers.rdi as i32))
                .is_ok_and(|file| !file.is_file()),
            _ => may_wait(call, self.is_malloc_of_libc),
        };
        let is_call = memory.bytes(registers.rip - 2, 2).is_ok_and(|code| code == SYSTEM_CALL);
        tracee.is_in_system_call()
            && is_wait
            && is_call
            && !self.is_in_handler(process, registers.rsp, memory)
    }

    fn is_in_handler(&self, process: u32, stack: u64, memory: &Memory) -> bool {
        let mappings = proc::mappings(process);
        let Some(mapping) = mappings.iter().find(|mapping| mapping.range.contains(&stack)) else {
            return true;
        };
        let bytes = (mapping.range.end - stack).min(STACK_BYTES_MAX) as usize / 8 * 8;
        let Ok(words) = memory.bytes(stack, bytes) else { return true };
        let is_return = |word: &[u8]| {
            let word = u64::from_ne_bytes(word.try_into().unwrap_or_default());
            self.returns.contains(&word)
        };
        words.chunks_exact(8).any(is_return)
    }
}

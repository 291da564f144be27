//! Lets a process that runs already load the recorder, and detaches the recorder again.
//!
//! [`check`] rejects processes that cannot be recorded, [`load`] lets the process load the recorder, and
//! [`Attached::wait`] waits until the recording has ended.
//!
//! The process loads the recorder itself, in a thread that is at a safe point, because dlopen takes locks
//! and allocates. `load` brings code into the process: `code` is the code, `request` its data. One thread
//! is stopped for that, by ptrace, for about a millisecond (`tracee`). It maps memory, makes a pair of
//! sockets, and changes some entries of the process's modules, so that the next call of malloc, free, calloc
//! or realloc by a module other than the C library runs the code (`modules`). No lock of malloc or of the
//! loader is held there, because the program could call dlopen as well. In a process that does not call
//! these functions, a thread that waits in a system call runs the code (`waiting`).
//!
//! No code of the program is changed, and no thread waits for this command. So the process runs on if this
//! command is killed.
//!
//! `refusals` tells why a process cannot be recorded, `seccomp` whether its filter of system calls permits it,
//! and `attached` ends the recording.

mod attached;
#[cfg(target_arch = "x86_64")]
mod code;
#[cfg(target_arch = "x86_64")]
mod load;
#[cfg(not(target_arch = "x86_64"))]
#[path = "no_load.rs"]
mod load;
#[cfg(target_arch = "x86_64")]
mod modules;
mod refusals;
#[cfg(target_arch = "x86_64")]
mod request;
#[cfg(target_arch = "x86_64")]
mod seccomp;
#[cfg(target_arch = "x86_64")]
mod tracee;
#[cfg(target_arch = "x86_64")]
mod waiting;

pub use attached::{Attached, Interrupt, Outcome};
pub use load::{load, Loaded};
pub use refusals::{check, Target};

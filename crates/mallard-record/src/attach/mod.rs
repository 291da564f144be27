//! Makes a running process load the recorder, and detaches the recorder after the recording.
//!
//! [`check`] rejects processes that cannot be recorded, [`load`] lets the process load the
//! recorder, and [`Attached::wait`] waits until the recording has ended.
//!
//! The process loads the recorder itself, in a thread that is at a safe point, because dlopen locks
//! mutexes and allocates. `load` injects code (`code`) and its data (`request`) into the process.
//! To do this, `load` stops one thread by ptrace for about a millisecond (`tracee`). The thread
//! maps memory, makes a pair of sockets, and changes some entries of the process's modules. The
//! next call of malloc, free, calloc or realloc by a module other than the C library then runs the
//! code (`modules`). Such a call is a safe point, because its caller holds no lock of malloc or of
//! the loader. In a process that does not call these functions, a thread that waits in a system
//! call runs the code (`waiting`).
//!
//! No code of the program is changed, and no thread waits for this command. So the process runs on
//! if this command is killed.
//!
//! `refusals` finds out why a process cannot be recorded, `seccomp` finds out whether the process's
//! system call filter permits the necessary calls, and `attached` ends the recording.

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

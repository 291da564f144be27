//! Finds, starts, measures and ends programs and processes.
//!
//! `program` finds a program and reports what prevents another malloc in it. `starter` starts
//! processes from a small process. `launch` starts a program whose output the user sees, and
//! `child` a process whose output is stored and whose figures are read. `load` sends work to a
//! server, and `orphans` finds the processes that a program leaves running. `installed` finds the
//! libraries and programs of an installation, `preload` makes paths that LD_PRELOAD can contain,
//! and `proc` reads /proc.

pub mod child;
pub mod installed;
pub mod launch;
pub mod load;
pub mod orphans;
pub mod preload;
pub mod proc;
pub mod program;
pub mod starter;

pub use launch::stdin_file;
pub use program::{allocates_by, examine, find as find_program};

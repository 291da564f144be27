//! Programs and processes: how to find, start, measure and end them.
//!
//! `program` finds a program and says what keeps it from another malloc. `starter` starts processes from a
//! small one. `launch` starts a program that the user sees, `child` one whose output is kept and whose
//! figures are read. `load` gives work to a server, and `orphans` finds what a program leaves running.
//! `installed` finds the libraries and programs of an installation, `preload` makes paths that LD_PRELOAD
//! can have, and `proc` reads /proc.

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

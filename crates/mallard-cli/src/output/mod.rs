//! Writes files, and texts about recordings.

pub mod debuginfod;
pub mod file;
pub mod missing;

//! Writes text for the terminal: units, quoted shell words, tables, wrapped lines, and progress.

pub mod columns;
pub mod progress;
pub mod shell;
pub mod terminal;
pub mod units;
pub mod width;

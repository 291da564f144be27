//! Texts for the terminal: units, shell words, tables, lines that fit, and progress.

pub mod columns;
pub mod progress;
pub mod shell;
pub mod terminal;
pub mod units;
pub mod width;

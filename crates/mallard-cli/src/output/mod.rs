//! Prints tables for the reader: in the terminal, as Markdown and as HTML.

pub mod file;
pub mod html;
pub mod markdown;
pub mod page;
pub mod progress;
pub mod terminal;
pub mod units;

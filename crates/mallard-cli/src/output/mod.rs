//! Prints tables for the reader: in the terminal, as Markdown and as HTML.

#[cfg(feature = "recordings")]
pub mod file;
#[cfg(feature = "recordings")]
pub mod html;
#[cfg(feature = "recordings")]
pub mod markdown;
#[cfg(feature = "recordings")]
pub mod missing;
#[cfg(feature = "recordings")]
pub mod page;
pub mod progress;
pub mod shell;
pub mod terminal;
pub mod units;

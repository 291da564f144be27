//! The short answers, which docs/performance.md, the chart of the README and the first screen of
//! the HTML page show.

pub mod chart;
mod local;
pub mod losses;
pub mod mallocs;
mod names;
mod page;
mod sentences;
pub mod versus;

pub use page::render;
pub use sentences::sentences;

//! A live view of a program's allocations: which functions hold memory now, and which allocate most.
//!
//! [`Top`] observes a recording ([`mallard_record::session::Observer`]). `figures` computes the figures of
//! one interval. `shown` shows them in a separate thread, so that a slow terminal or pipe does not stop the
//! recorded program: `screen` draws on a terminal, and `lines` writes a line for each interval. `view` is what
//! the user has chosen to see, and changes with each key.
#![deny(missing_docs)]

mod figures;
mod lines;
mod screen;
mod shown;
mod top;
mod view;

pub use figures::Sort;
pub use lines::Format;
pub use screen::can_draw;
pub use top::{Options, Top};

//! A live view of a program's allocations: which functions hold memory now, and which allocate most.
//!
//! [`Top`] observes a recording ([`mallard_record::session::Observer`]). `figures` computes the figures of
//! one interval. `view` is what the user has chosen to see, and changes with each key. `screen` draws the
//! view in a terminal. `lines` writes a line for each interval to a file or a pipe.
#![deny(missing_docs)]

mod figures;
mod lines;
mod screen;
mod top;
mod view;

pub use lines::Format;
pub use screen::can_draw;
pub use top::{Options, Top};
pub use view::Sort;

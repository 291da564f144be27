//! `mallard advise`: which allocator, where, what the allocator gains, and the proof.
//!
//! `evidence` has the types in which everything that is known of a program is collected. `rules` says
//! which plans are worth a play, and `card` makes the advice of the whole, with `code` for each
//! change. `sarif` writes cards for tools of code review.

pub mod card;
mod code;
pub mod evidence;
pub mod rules;
pub mod sarif;

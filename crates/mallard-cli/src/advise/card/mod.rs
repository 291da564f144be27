//! Makes cards, which are the recommendations of `mallard advise`. A card names a change, the place
//! of the change, and the saving. A card also shows how to check the change.
//!
//! `choose` selects the changes, and `advice` decides what the cards recommend. `make` fills the
//! cards, whose data types are in `card`. `words` writes the sentences about changes, `answer`
//! writes the sentences of cards that change nothing, and `phrases` has phrases for both modules.
//! `text` formats a card for the terminal.

mod advice;
mod answer;
#[allow(clippy::module_inception)]
mod card;
mod choose;
mod make;
mod phrases;
mod text;
mod words;

#[cfg(test)]
mod tests;

pub use card::{verdict, Card};
#[cfg(test)]
pub use make::toml;
pub use text::text;

use super::measured::Measured;

/// Makes the cards from the measurement results.
pub fn cards(evidence: &Measured) -> Vec<Card> {
    make::cards(evidence, &advice::decide(evidence))
}

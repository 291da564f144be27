//! The words of cards for functions in C, which has no destructors, no containers and no type parameters.

use super::Card;

/// Words for C++ and Rust, and those for C. Empty words leave a sentence out.
const WORDS: [(&str, &str); 9] = [
    (" Destructors run as before.", ""),
    (", so destructors have to run", ", so they have to be freed as before"),
    (", allocator as a type parameter", ""),
    (", destroyed as before", ", freed as before"),
    (", objects destroyed as before", ", objects freed as before"),
    ("but skips destructors", "but does not call the functions that free"),
    ("destructors do not run: one that closes", "functions that free are not called: what closes"),
    (
        "the allocator must be declared before the containers that use it, and so end after them",
        "the allocator must be made before the first block, and end after the last",
    ),
    (
        "the pool must outlive its objects and the handles to them",
        "the pool must outlive its objects",
    ),
];
/// Sentences that begin with these words are about C++ or Rust alone.
const NOT_FOR_C: [&str; 2] =
    ["each container holds a pointer to its allocator", "for the trial, mallard::guarded around"];

/// A card in the words of C.
pub fn said(mut card: Card) -> Card {
    card.hazards.retain(|text| !NOT_FOR_C.iter().any(|words| text.starts_with(words)));
    let lists = [&mut card.evidence, &mut card.hazards, &mut card.why_not].into_iter().flatten();
    for text in lists.chain(&mut card.strategy_words) {
        *text = WORDS.iter().fold(text.clone(), |text, (from, to)| text.replace(from, to));
    }
    card
}

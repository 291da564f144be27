//! What the lines of a program are about: an allocator, and what it has given.

use crate::ground::Ground;
use crate::line::{broken, Held, Line, Numbers};
use mallard::Growth;

/// New with each allocator.
#[derive(Default)]
pub struct State {
    pub ground: Ground,
    pub named: Numbers,
}

/// `Ok(false)`: this kind of subject does not know the verb.
pub trait Subject {
    fn run(&mut self, verb: &str, name: &str, l: &mut Line, state: &State) -> Held<bool>;
    /// The call must fail as one does for want of memory.
    fn refuses(&mut self, verb: &str, l: &mut Line, state: &State) -> Held<bool>;
    /// The call makes an object whose constructor panics, and whether that arrives.
    fn throws(&mut self, verb: &str, l: &mut Line, state: &State) -> Held<bool>;
    fn expect(&mut self, name: &str, is: &str, l: &mut Line, named: &Numbers) -> Held<bool>;
    fn count(&mut self, name: &str) -> Option<usize>;
    /// Whether all that is in use is as it was left.
    fn verify(&self) -> Held;
}

/// What an allocator's line says of its growth; nothing: its own.
pub fn growth_from(l: &mut Line, usual: Growth, named: &Numbers) -> Held<Option<Growth>> {
    if l.is_empty() {
        return Ok(None);
    }
    let mut growth = usual;
    while !l.is_empty() {
        let word = l.word("a field of growth")?;
        let n = l.number("its value", named)?;
        match word.as_str() {
            "first" => growth.first = n,
            "max" => growth.max = n,
            "num" => growth.num = n,
            "den" => growth.den = n,
            "add" => growth.add = n,
            "limit" => growth.limit = n,
            "fixed" => growth = Growth::fixed(n),
            "none" => growth = Growth::none(n),
            _ => return broken(format!("growth has no {word}")),
        }
    }
    Ok(Some(growth))
}

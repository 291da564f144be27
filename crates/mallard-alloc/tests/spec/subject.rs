//! The allocator that a spec program runs on, and what the program has allocated.

use crate::ground::Ground;
use crate::line::{broken, Held, Line, Numbers};
use mallard::Growth;

/// State that starts anew with each allocator.
#[derive(Default)]
pub struct State {
    pub ground: Ground,
    pub named: Numbers,
}

/// Runs a verb. `Ok(false)` if this kind of subject does not know the verb.
pub trait Subject {
    fn run(&mut self, verb: &str, name: &str, l: &mut Line, state: &State) -> Held<bool>;
    /// The call must fail as without memory.
    fn refuses(&mut self, verb: &str, l: &mut Line, state: &State) -> Held<bool>;
    /// The call makes an object whose constructor panics, and the panic must arrive.
    fn throws(&mut self, verb: &str, l: &mut Line, state: &State) -> Held<bool>;
    fn expect(&mut self, name: &str, is: &str, l: &mut Line, named: &Numbers) -> Held<bool>;
    fn count(&mut self, name: &str) -> Option<usize>;
    /// Whether everything in use is as it was left.
    fn verify(&self) -> Held;
}

/// The growth that an allocator's line asks for, or the allocator's own.
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

//! Defines the interface to the allocator on which a test program of `spec/` runs.

use super::ground::Ground;
use super::line::{broken, Held, Line, Numbers};
use mallard::Growth;

/// State that is reset for each new allocator.
#[derive(Default)]
pub struct State {
    pub ground: Ground,
    pub named: Numbers,
}

/// An allocator under test.
pub trait Subject {
    /// Runs the call `verb` of a line. Returns `Ok(false)` if this kind of allocator has no such
    /// call.
    fn run(&mut self, verb: &str, name: &str, l: &mut Line, state: &State) -> Held<bool>;
    /// Runs the call `verb`, which must fail as if there were no memory.
    fn refuses(&mut self, verb: &str, l: &mut Line, state: &State) -> Held<bool>;
    /// Makes an object whose constructor panics, and checks that the panic reaches the caller.
    fn throws(&mut self, verb: &str, l: &mut Line, state: &State) -> Held<bool>;
    fn expect(&mut self, name: &str, is: &str, l: &mut Line, named: &Numbers) -> Held<bool>;
    fn count(&mut self, name: &str) -> Option<usize>;
    /// Checks that everything in use has the content that the program wrote.
    fn verify(&self) -> Held;
}

/// Returns the growth that a line requests. Fields that the line does not name have the values of
/// `usual`. `None` if the line names no field.
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

//! The 14 strategies that John Lakos compared ("Local ('arena') memory allocators", ACCU 2017).

use std::fmt;
use std::str::FromStr;

/// The allocator of a strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allocator {
    /// The malloc of the process.
    Heap,
    /// An arena.
    Arena,
    /// A multipool.
    Multipool,
    /// A multipool that gets its memory from an arena.
    MultipoolOverArena,
}

/// A strategy, which consists of an allocator, the way in which the program calls the allocator,
/// and the way in which blocks are freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strategy(u8);

use Allocator::{Arena, Heap, Multipool, MultipoolOverArena};

/// The properties of each strategy from AS1 on: its allocator, whether calls go through an abstract
/// base class, and whether wink-out frees the memory of all blocks together.
const TABLE: [(Allocator, bool, bool); 14] = [
    (Heap, false, false),
    (Heap, true, false),
    (Arena, false, false),
    (Arena, false, true),
    (Arena, true, false),
    (Arena, true, true),
    (Multipool, false, false),
    (Multipool, false, true),
    (Multipool, true, false),
    (Multipool, true, true),
    (MultipoolOverArena, false, false),
    (MultipoolOverArena, false, true),
    (MultipoolOverArena, true, false),
    (MultipoolOverArena, true, true),
];

impl Strategy {
    /// Returns the strategy with a number from 1 to 14, or `None` for other numbers.
    pub fn new(number: usize) -> Option<Strategy> {
        (1..=TABLE.len()).contains(&number).then_some(Strategy(number as u8))
    }

    /// Returns all strategies, AS1 first.
    pub fn all() -> impl Iterator<Item = Strategy> {
        (1..=TABLE.len()).filter_map(Strategy::new)
    }

    /// Returns the number of the strategy, from 1 to 14.
    pub fn number(self) -> usize {
        usize::from(self.0)
    }

    fn row(self) -> (Allocator, bool, bool) {
        TABLE[self.number() - 1]
    }

    /// Returns the allocator of the strategy.
    pub fn allocator(self) -> Allocator {
        self.row().0
    }

    /// Returns whether the program calls the allocator through an abstract base class, by virtual
    /// calls.
    pub fn is_virtual(self) -> bool {
        self.row().1
    }

    /// Returns whether the memory of all blocks is freed together, without a free for each block.
    pub fn winks_out(self) -> bool {
        self.row().2
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "AS{}", self.0)
    }
}

impl FromStr for Strategy {
    type Err = ();

    fn from_str(text: &str) -> Result<Strategy, ()> {
        let number = text.strip_prefix("AS").or_else(|| text.strip_prefix("as")).ok_or(())?;
        number.parse().ok().and_then(Strategy::new).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_strategies_equals_the_one_published_by_lakos() {
        let numbers = |chosen: &dyn Fn(Strategy) -> bool| -> Vec<usize> {
            Strategy::all().filter(|&s| chosen(s)).map(Strategy::number).collect()
        };
        assert_eq!(numbers(&Strategy::is_virtual), [2, 5, 6, 9, 10, 13, 14]);
        assert_eq!(numbers(&Strategy::winks_out), [4, 6, 8, 10, 12, 14]);
        assert_eq!(numbers(&|s| s.allocator() == Heap), [1, 2]);
        assert_eq!(numbers(&|s| s.allocator() == Arena), [3, 4, 5, 6]);
        assert_eq!(numbers(&|s| s.allocator() == Multipool), [7, 8, 9, 10]);
        assert_eq!(numbers(&|s| s.allocator() == MultipoolOverArena), [11, 12, 13, 14]);
    }

    #[test]
    fn names_of_strategies_are_parsed_and_printed() {
        for strategy in Strategy::all() {
            assert_eq!(strategy.to_string().parse(), Ok(strategy));
        }
        for wrong in ["AS0", "AS15", "AS", "7", "AS1.5", "", "AS-1"] {
            assert_eq!(wrong.parse::<Strategy>(), Err(()), "{wrong}");
        }
    }
}

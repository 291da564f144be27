//! Counts the blocks that outlive instances, by call stack.

use super::candidates::Candidates;
use crate::hash::NumberMap;

/// Blocks that outlived an instance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Escaped {
    pub blocks: u64,
    pub bytes: u64,
    /// How many of the blocks another thread freed.
    pub foreign: u64,
}

impl Escaped {
    pub fn add(&mut self, other: &Escaped) {
        self.blocks += other.blocks;
        self.bytes += other.bytes;
        self.foreign += other.foreign;
    }
}

/// The escaped blocks of each candidate and call stack.
#[derive(Default)]
pub(super) struct Escapes {
    /// Blocks that escaped from all candidates on their call stack except the `n` outermost. Key:
    /// the call stack and `n`.
    from: NumberMap<u64, Escaped>,
    /// Blocks that escaped from a candidate, but not from some candidate inside it. Key: the call
    /// stack and a candidate from which the blocks escaped.
    odd: NumberMap<u64, Escaped>,
}

/// The call stack begins at this bit of a key.
const SHIFT: u32 = 16;

impl Escapes {
    /// Counts a block whose call stack `node` has the candidates in `list`. The block has not escaped
    /// from the candidates in `owners`, since their instances are still open.
    #[inline]
    pub fn add(&mut self, node: u32, list: &[u16], owners: &[u16], size: u64, is_foreign: bool) {
        if owners.len() == list.len() {
            return;
        }
        let escaped = Escaped { blocks: 1, bytes: size, foreign: is_foreign.into() };
        let key = |low: u64| u64::from(node) << SHIFT | low;
        if list.starts_with(owners) {
            self.from.entry(key(owners.len() as u64)).or_default().add(&escaped);
            return;
        }
        for &candidate in list.iter().filter(|candidate| !owners.contains(candidate)) {
            self.odd.entry(key(u64::from(candidate))).or_default().add(&escaped);
        }
    }

    /// Calls `visit` with a candidate, a call stack, and the blocks of the call stack that escaped from
    /// the candidate; a pair may be visited more than once, each time with some of its blocks.
    pub fn visit(&self, candidates: &Candidates, mut visit: impl FnMut(u16, u32, &Escaped)) {
        let mut keys: Vec<u64> = self.from.keys().copied().collect();
        keys.sort_unstable();
        for key in keys {
            let (node, kept) = ((key >> SHIFT) as u32, (key & 0xffff) as usize);
            let list = candidates.on(node as i32);
            for &candidate in &list[kept.min(list.len())..] {
                visit(candidate, node, &self.from[&key]);
            }
        }
        let mut keys: Vec<u64> = self.odd.keys().copied().collect();
        keys.sort_unstable();
        for key in keys {
            visit(key as u16, (key >> SHIFT) as u32, &self.odd[&key]);
        }
    }
}

//! Counts the blocks of each rule by size, and computes the peak of the bytes in use.

use crate::error::Result;
use crate::format::SIZE_MAX;
use crate::trace::Trace;
use crate::walk::{walk, Block, Cause, Limits, Live, Visitor};
use std::collections::BTreeMap;

/// Sizes are rounded up to multiples of this many bytes.
const STEP: u64 = 16;

/// The recorded blocks that a rule selects.
#[derive(Debug, Clone, Default)]
pub(super) struct Blocks {
    /// Number of blocks by size, rounded up to a multiple of 16 bytes.
    sizes: BTreeMap<u64, f64>,
    /// Number of blocks.
    pub blocks: f64,
    /// Bytes of all blocks.
    pub bytes: f64,
    live: f64,
    /// The peak of the bytes in use.
    pub peak: f64,
}

impl Blocks {
    /// Returns the most frequent size.
    pub fn most_frequent(&self) -> Option<u64> {
        let more = |a: &(&u64, &f64), b: &(&u64, &f64)| a.1.total_cmp(b.1);
        self.sizes.iter().max_by(more).map(|(&size, _)| size)
    }

    /// Returns the smallest size such that a given share (0 to 1) of all blocks is not larger.
    pub fn covering(&self, share: f64) -> Option<u64> {
        let mut sum = 0.0;
        let reaches = |of: &(&u64, &f64)| {
            sum += of.1;
            sum >= share * self.blocks
        };
        let last = self.sizes.keys().last().copied();
        self.sizes.iter().find(reaches).map(|(&size, _)| size).or(last)
    }

    fn change(&mut self, bytes: f64) {
        self.live += bytes;
        self.peak = self.peak.max(self.live);
    }
}

/// Counts the blocks of each rule. `rules` is the number of rules, and `rule_of` returns the rule
/// of a call stack.
pub(super) fn read(
    trace: &Trace,
    rules: usize,
    rule_of: &dyn Fn(i32) -> Option<usize>,
) -> Result<Vec<Blocks>> {
    let mut reader = Reader { rule_of, rules: vec![Blocks::default(); rules] };
    walk(trace, Limits::default(), &mut reader)?;
    Ok(reader.rules)
}

struct Reader<'a> {
    rule_of: &'a dyn Fn(i32) -> Option<usize>,
    rules: Vec<Blocks>,
}

impl Reader<'_> {
    fn of(&mut self, block: &Block) -> Option<&mut Blocks> {
        let rule = (self.rule_of)(block.node as i32).filter(|_| !block.is_traced)?;
        self.rules.get_mut(rule)
    }
}

impl Visitor for Reader<'_> {
    fn before(&mut self, _: i64, _: &Live) {}

    fn begin(&mut self, block: &Block) {
        let weight = f64::from(block.weight);
        if let Some(of) = self.of(block) {
            of.blocks += weight;
            of.bytes += block.bytes();
            *of.sizes.entry(block.size.clamp(1, SIZE_MAX).next_multiple_of(STEP)).or_default() +=
                weight;
            of.change(block.bytes());
        }
    }

    fn resize(&mut self, _: i64, block: &Block, from: u64) {
        if let Some(of) = self.of(block) {
            of.change(block.bytes() - f64::from(block.weight) * from as f64);
        }
    }

    fn end(&mut self, _: i64, block: &Block, _: Cause) {
        if let Some(of) = self.of(block) {
            of.change(-block.bytes());
        }
    }

    fn recount(&mut self, live: &Live) {
        self.rules.iter_mut().for_each(|of| of.live = 0.0);
        for block in live.iter() {
            if let Some(of) = self.of(block) {
                of.live += block.bytes();
            }
        }
    }
}

//! Defines the result of compiling an op stream, with its figures.

use super::validity::Validity;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A compiled op stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Compiled {
    /// The path of the op stream.
    pub path: PathBuf,
    /// The number of the compiled process in the trace.
    pub process: i32,
    /// Number of threads.
    pub threads: u32,
    /// Number of ops.
    pub ops: u64,
    /// Number of ops that call an allocator.
    pub calls: u64,
    /// Number of slots that the ops use.
    pub slots: u64,
    /// The number of targets (allocators), including the malloc of the process.
    pub targets: u32,
    /// The peak of the requested bytes in use.
    pub live_peak: u64,
    /// The maximum number of blocks in use at the same time.
    pub blocks_peak: u64,
    /// The number of calls that a program with this plan would make through an abstract base class.
    pub virtual_calls: u64,
    /// The number of dependencies between threads: waits, and starts of threads.
    pub edges: u64,
    /// What each rule of the plan does, in the order of the plan.
    pub rules: Vec<RuleResult>,
    /// The reasons why the replay may differ from the recorded program.
    pub validity: Vec<Validity>,
    /// The checksum of the file. The same trace, plan and options give the same checksum.
    pub checksum: u64,
}

/// The effects of a plan's rule in a replay.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RuleResult {
    /// The number of instances of the region, or 1 for a rule without a region.
    pub instances: u64,
    /// Instances that were still open at the end of the recording.
    pub unfinished: u64,
    /// Blocks that the rule allocates.
    pub blocks: u64,
    /// Bytes of the blocks that the rule allocates, including growth by realloc.
    pub bytes: u64,
    /// Blocks that outlived their instance, including blocks that were never freed.
    pub escapes: u64,
    /// Number of escaped blocks that were freed by a thread other than the thread of the region.
    pub foreign_escapes: u64,
    /// The name of a function that allocated an escaped block.
    pub escape_from: Option<String>,
    /// The number of frees that are left out of the op stream because wink-out replaces them.
    pub winked_out: u64,
    /// Distribution of the peak of the bytes in use, over the instances.
    pub peaks: Spread,
    /// Distribution of the allocated bytes, over the instances.
    pub totals: Spread,
    /// The number of targets (allocators) of the rule.
    pub targets: u32,
    /// Whether several threads use the same instance.
    pub is_shared: bool,
    /// Calls that a program with this plan would make through an abstract base class.
    pub virtual_calls: u64,
}

/// The distribution of a figure over the instances of a rule: how often each value occurs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spread {
    counts: BTreeMap<u64, u64>,
}

impl Spread {
    /// Adds the value of an instance.
    pub(super) fn add(&mut self, value: u64) {
        *self.counts.entry(value).or_default() += 1;
    }

    /// Returns the smallest value that at least this share of the instances does not exceed.
    /// Returns 0 if there are no instances.
    pub fn quantile(&self, share: f64) -> u64 {
        let all: u64 = self.counts.values().sum();
        let wanted = (share * all as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let reaches = |&(_, &count): &(&u64, &u64)| {
            seen += count;
            seen >= wanted
        };
        self.counts.iter().find(reaches).map_or(0, |(&value, _)| value)
    }

    /// Returns the median, or 0 if there are no instances.
    pub fn median(&self) -> u64 {
        self.quantile(0.5)
    }

    /// Returns the largest value, or 0 if there are no instances.
    pub fn max(&self) -> u64 {
        self.counts.last_key_value().map_or(0, |(&value, _)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_a_distribution_are_computed() {
        let mut spread = Spread::default();
        assert_eq!((spread.median(), spread.max()), (0, 0));
        for value in [5, 1, 9, 5, 7] {
            spread.add(value);
        }
        assert_eq!((spread.median(), spread.max()), (5, 9));
        assert_eq!((spread.quantile(0.0), spread.quantile(0.2), spread.quantile(0.21)), (1, 1, 5));
    }
}

//! Finds the functions that hold the most bytes, for the sentences of the report.

use mallard_trace::names::{is_wrapper, short};
use mallard_trace::trace::Stacks;
use mallard_trace::SiteRow;
use std::collections::HashMap;

/// The bytes that belong to one function, summed over its sites.
#[derive(Clone, Copy, Default)]
struct Sums {
    at_peak: i64,
    never_freed: i64,
}

/// The sums of each function. A site belongs to its innermost function that is not an allocation
/// wrapper.
pub struct Holders {
    sums: HashMap<String, Sums>,
}

impl Holders {
    /// Sums up sites by function.
    pub fn of(sites: &[SiteRow], stacks: &Stacks) -> Holders {
        let mut leaves = Leaves { stacks, named: HashMap::new() };
        let mut sums: HashMap<&str, Sums> = HashMap::new();
        for site in sites {
            let Some(leaf) = leaves.of(site.stack) else { continue };
            let of_leaf = sums.entry(leaf).or_default();
            of_leaf.at_peak += site.at_peak_bytes;
            of_leaf.never_freed += site.live_bytes;
        }
        // Functions that differ only in their arguments share one short name.
        let mut by_name: HashMap<String, Sums> = HashMap::new();
        for (leaf, of_leaf) in sums {
            let of_name = by_name.entry(short(leaf)).or_default();
            of_name.at_peak += of_leaf.at_peak;
            of_name.never_freed += of_leaf.never_freed;
        }
        Holders { sums: by_name }
    }

    /// Returns the function that held the most bytes at the peak of the program, and those bytes.
    pub fn at_peak(&self) -> Option<(&str, i64)> {
        self.most(|sums| sums.at_peak)
    }

    /// Returns the function that allocated the most bytes that were never freed, and those bytes.
    pub fn never_freed(&self) -> Option<(&str, i64)> {
        self.most(|sums| sums.never_freed)
    }

    fn most(&self, of: impl Fn(&Sums) -> i64) -> Option<(&str, i64)> {
        let all = self.sums.iter().map(|(name, sums)| (name.as_str(), of(sums)));
        let all = all.filter(|&(_, bytes)| bytes > 0);
        all.max_by_key(|&(name, bytes)| (bytes, std::cmp::Reverse(name)))
    }
}

/// A search for the function to which a site belongs.
struct Leaves<'a> {
    stacks: &'a Stacks,
    /// For each frame, the innermost function that is not an allocation wrapper.
    named: HashMap<u32, Option<&'a str>>,
}

impl<'a> Leaves<'a> {
    fn of(&mut self, stack: i32) -> Option<&'a str> {
        let (_, innermost) = self.stacks.split(stack)?;
        let mut at = stack;
        while let Some((outer, frame)) = self.stacks.split(at) {
            if let Some(name) = self.name(frame) {
                return Some(name);
            }
            at = outer;
        }
        Some(self.stacks.functions_at(innermost).first()?.function)
    }

    fn name(&mut self, frame: u32) -> Option<&'a str> {
        let stacks = self.stacks;
        *self.named.entry(frame).or_insert_with(|| {
            let functions = stacks.functions_at(frame);
            functions.iter().map(|info| info.function).find(|name| !is_wrapper(name))
        })
    }
}

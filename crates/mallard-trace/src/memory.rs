//! Divides a program's resident memory into parts, and finds the largest part.

use serde::{Deserialize, Serialize};

/// Declares the parts of the resident memory, and the code that handles all parts in the same way.
macro_rules! parts {
    ($($(#[doc = $doc:literal])* $part:ident,)*) => {
        /// The parts of the resident memory of a process at one moment, in bytes. The sum of all
        /// other members is `resident`.
        ///
        /// The heap is all mappings that have ever held a block from malloc or a related function.
        /// The resident bytes of the heap are divided into `live`, `rounding`, `fragmented` and
        /// `kept`.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct Parts {
            $($(#[doc = $doc])* pub $part: i64,)*
        }

        /// The parts of the resident memory at several moments, summed over processes. Each list
        /// has one number for each moment. All lists are empty if the trace does not have the
        /// parts, because an older version made the trace or because only some of the blocks were
        /// recorded.
        ///
        /// Forked children are left out, since their heaps contain blocks of the parent.
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct Split {
            $($(#[doc = $doc])* pub $part: Vec<i64>,)*
        }

        impl Split {
            /// Makes lists of zeros for a number of moments.
            pub(crate) fn new(moments: usize) -> Split {
                Split { $($part: vec![0; moments],)* }
            }

            /// Sets the parts at the moment with the index `at`.
            pub(crate) fn set(&mut self, at: usize, parts: &Parts) {
                $(self.$part[at] = parts.$part;)*
            }
        }

        impl Parts {
            /// The name and the field of each part of the memory: first `resident`, then the others
            /// in the order in which a plot stacks them. The tables have columns of these names.
            pub(crate) const MEMBERS: [(&str, fn(&mut Parts) -> &mut i64); 8] =
                [$((stringify!($part), |parts| &mut parts.$part),)*];

            fn zip(&self, other: &Parts, f: impl Fn(i64, i64) -> i64) -> Parts {
                Parts { $($part: f(self.$part, other.$part),)* }
            }
        }
    };
}

parts! {
    /// All resident bytes.
    resident,
    /// Resident bytes that the program requested in live blocks, without the bytes in `rounding`.
    live,
    /// Bytes that malloc adds to live blocks: headers, and the unused end of a size class. These
    /// bytes are computed from the rounding rule of the malloc, since no other source reports them.
    rounding,
    /// Free bytes on pages with a live block.
    fragmented,
    /// Heap pages without a live block. They are freed memory that malloc has not returned to the
    /// system, or metadata of the malloc.
    kept,
    /// Memory backed by files, such as code and constants, and shared memory.
    code,
    /// Memory that belongs neither to a file nor to the heap: stacks, and variables of modules.
    stacks,
    /// The memory that the recorder uses in the program: its ring buffer of events, its code and
    /// its data.
    recorder,
}

impl Split {
    /// Returns whether the trace lacks the parts of the memory.
    pub fn is_empty(&self) -> bool {
        self.resident.is_empty()
    }
}

impl Parts {
    /// Returns the parts with their names, in the order in which a plot stacks them.
    pub fn named(mut self) -> [(&'static str, i64); 7] {
        std::array::from_fn(|index| {
            let (name, member) = Parts::MEMBERS[index + 1];
            (name, *member(&mut self))
        })
    }

    /// Adds the parts of another process.
    pub fn plus(&self, other: &Parts) -> Parts {
        self.zip(other, |a, b| a.saturating_add(b))
    }

    /// Subtracts the parts of another moment.
    pub(crate) fn minus(&self, other: &Parts) -> Parts {
        self.zip(other, |a, b| a.saturating_sub(b))
    }
}

/// The parts of the resident memory at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Moment {
    /// The moment, in nanoseconds since the stream was opened.
    pub t_ns: i64,
    /// The parts of the resident memory, summed over all processes.
    #[serde(flatten)]
    pub parts: Parts,
}

/// The largest part of the resident memory, as the cause of its size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// Unknown, because the trace does not have the parts of the memory.
    #[default]
    Unknown,
    /// Live bytes. Less than half of them belong to sites that only grow.
    Used,
    /// Live bytes. At least half of them belong to sites that only grow.
    Growing,
    /// Bytes that the malloc adds to live blocks.
    Rounding,
    /// Free bytes on pages with a live block.
    Fragmented,
    /// Pages without a live block.
    Kept,
    /// Memory backed by files.
    Code,
    /// Stacks, and variables of modules.
    Stacks,
}

/// A site whose live bytes only grow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Growing {
    /// The call stack of the site: a node of the table `stacks`.
    pub stack: i32,
    /// Bytes in use at the end.
    pub live_bytes: i64,
    /// Blocks in use at the end.
    pub live_allocs: i64,
    /// The minimum of the bytes in use during the first eighth of the run.
    pub first_bytes: i64,
}

/// Summarizes what the resident memory of a program consisted of.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemorySummary {
    /// The rounding rule from which `rounding` was computed: `glibc`, or `classes` for a malloc
    /// with size classes.
    pub rounding: String,
    /// The number of moments with known parts. 0 if the trace does not have the parts.
    pub moments: u64,
    /// The moment with the maximum of resident bytes.
    pub peak: Moment,
    /// The last moment with known parts.
    pub end: Moment,
    /// The mean over the recording. `t_ns` is the end of the recording.
    pub mean: Moment,
    /// The largest part of the mean, apart from the recorder.
    pub cause: Cause,
    /// The share of the cause in the resident memory without the recorder, from 0 to 1.
    pub share: f64,
    /// The sites whose live bytes only grow, the largest first. At most 100.
    pub growing: Vec<Growing>,
    /// The number of sites whose live bytes only grow.
    pub growing_sites: u64,
    /// The live bytes at the end in sites whose live bytes only grow.
    pub growing_bytes: i64,
}

impl MemorySummary {
    /// Sets `cause` and `share`. `live_bytes` are the bytes that the program had in use at the end.
    pub(crate) fn find_cause(&mut self, live_bytes: i64) {
        let parts = &self.mean.parts;
        let causes = [
            (parts.live, Cause::Used),
            (parts.rounding, Cause::Rounding),
            (parts.fragmented, Cause::Fragmented),
            (parts.kept, Cause::Kept),
            (parts.code, Cause::Code),
            (parts.stacks, Cause::Stacks),
        ];
        let program = parts.resident.saturating_sub(parts.recorder);
        if self.moments == 0 || program <= 0 {
            return;
        }
        let (bytes, cause) = causes.into_iter().max_by_key(|&(bytes, _)| bytes).expect("causes");
        self.share = bytes as f64 / program as f64;
        let grows = self.growing_bytes > 0 && self.growing_bytes >= live_bytes / 2;
        self.cause = if cause == Cause::Used && grows { Cause::Growing } else { cause };
    }

    /// Returns a sentence that describes the cause, or `None` if the cause is unknown.
    pub fn sentence(&self) -> Option<String> {
        let share = format!("{:.0} %", self.share * 100.0);
        let what = match self.cause {
            Cause::Unknown => return None,
            Cause::Used => format!("{share} of the resident memory is live blocks: used"),
            Cause::Growing => {
                let sites = match self.growing_sites {
                    1 => "1 call stack that only grows".to_string(),
                    sites => format!("{sites} call stacks that only grow"),
                };
                format!("{share} of the resident memory is live blocks, most of them of {sites}: a leak, or a cache without a limit")
            }
            Cause::Rounding => {
                format!("{share} of the resident memory is added to blocks: headers and rounding")
            }
            Cause::Fragmented => format!(
                "{share} of the resident memory is free space on pages with live blocks: fragmentation"
            ),
            Cause::Kept => format!(
                "{share} of the resident memory is heap without live blocks: kept by the allocator"
            ),
            Cause::Code => format!("{share} of the resident memory is files: code and constants"),
            Cause::Stacks => {
                format!("{share} of the resident memory is stacks and variables of modules")
            }
        };
        Some(what)
    }
}

/// Accumulates the parts of all processes over time. The caller adds moments in time order, each
/// with the parts of one process.
#[derive(Default)]
pub(crate) struct Sums {
    /// The latest parts of each process that has not exited.
    last: Vec<(u32, Parts)>,
    total: Parts,
    ns: i64,
    peak: Moment,
    end: Moment,
    moments: u64,
    /// The integral over time (bytes times nanoseconds) of each part except `resident`. `weight` is
    /// the total number of nanoseconds.
    weighted: [f64; 7],
    weight: f64,
}

impl Sums {
    /// Adds the parts of one process at one moment.
    pub fn add(&mut self, t_ns: i64, process: u32, parts: &Parts) {
        self.pass(t_ns);
        self.moments += 1;
        let index = self.last.iter().position(|&(known, _)| known == process);
        let index = index.unwrap_or_else(|| {
            self.last.push((process, Parts::default()));
            self.last.len() - 1
        });
        let old = std::mem::replace(&mut self.last[index].1, *parts);
        self.total = self.total.minus(&old).plus(parts);
        let now = Moment { t_ns, parts: self.total };
        if self.total.resident > self.peak.parts.resident {
            self.peak = now;
        }
        self.end = now;
    }

    /// Removes a process that has exited.
    pub fn end_process(&mut self, t_ns: i64, process: u32) {
        self.pass(t_ns);
        if let Some(index) = self.last.iter().position(|&(known, _)| known == process) {
            let (_, old) = self.last.swap_remove(index);
            self.total = self.total.minus(&old);
        }
    }

    /// Returns the current parts, summed over all processes.
    pub fn total(&self) -> Parts {
        self.total
    }

    fn pass(&mut self, t_ns: i64) {
        let passed = t_ns.saturating_sub(self.ns).max(0) as f64;
        self.ns = self.ns.max(t_ns);
        if self.total.resident > 0 {
            let parts = self.total.named();
            let sums = self.weighted.iter_mut().zip(parts);
            sums.for_each(|(sum, (_, bytes))| *sum += bytes as f64 * passed);
            self.weight += passed;
        }
    }

    /// Returns the peak, the end and the mean at the time `t_ns`. If no time has passed, the mean
    /// is equal to the end.
    pub fn finish(self, t_ns: i64) -> MemorySummary {
        let mut sums = self;
        sums.pass(t_ns);
        let mut mean = sums.end.parts;
        if sums.weight > 0.0 {
            mean = Parts::default();
            for ((_, member), sum) in Parts::MEMBERS[1..].iter().zip(sums.weighted) {
                *member(&mut mean) = (sum / sums.weight) as i64;
            }
            mean.resident = mean.named().iter().fold(0, |sum, part| sum.saturating_add(part.1));
        }
        MemorySummary {
            moments: sums.moments,
            peak: sums.peak,
            end: sums.end,
            mean: Moment { t_ns: sums.ns, parts: mean },
            ..MemorySummary::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(live: i64, kept: i64) -> Parts {
        Parts { resident: live + kept, live, kept, ..Parts::default() }
    }

    #[test]
    fn peak_final_and_mean_memory_are_sums_over_all_processes() {
        let mut sums = Sums::default();
        sums.add(0, 1, &parts(100, 0));
        sums.add(10, 2, &parts(50, 50));
        sums.add(20, 1, &parts(0, 100));
        sums.end_process(30, 2);
        let summary = sums.finish(40);
        assert_eq!((summary.peak.t_ns, summary.peak.parts), (10, parts(150, 50)));
        assert_eq!(summary.end, Moment { t_ns: 20, parts: parts(50, 150) });
        // The heap has (live, kept) = (100, 0), (150, 50), (50, 150) and (0, 100), for 10 ns each.
        assert_eq!(summary.mean.parts, parts(75, 75));
        assert_eq!(summary.moments, 3);
    }

    #[test]
    fn the_largest_part_of_memory_is_the_cause_and_is_a_leak_if_half_of_it_grows() {
        let summary = |mean: Parts, growing_bytes| {
            let mut summary =
                MemorySummary { moments: 1, growing_bytes, growing_sites: 1, ..Default::default() };
            summary.mean.parts = mean;
            summary.find_cause(100);
            summary
        };
        assert_eq!(summary(parts(60, 40), 0).cause, Cause::Used);
        assert_eq!(summary(parts(60, 40), 49).cause, Cause::Used);
        let leak = summary(parts(60, 40), 50);
        assert_eq!((leak.cause, leak.share), (Cause::Growing, 0.6));
        assert!(leak.sentence().unwrap().contains("1 call stack that only grows"));
        let kept = summary(Parts { recorder: 100, resident: 200, ..parts(10, 90) }, 90);
        assert_eq!((kept.cause, kept.share), (Cause::Kept, 0.9));
        assert_eq!(summary(Parts::default(), 0).cause, Cause::Unknown);
        assert_eq!(MemorySummary::default().sentence(), None);
    }
}

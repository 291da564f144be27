//! The description of a region that was found.

use crate::replay::End;
use serde::{Serialize, Serializer};

/// The limits of a search for regions.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The least share of a region in the time of calls or in the bytes.
    pub least_share: f64,
    /// The greatest number of regions that are returned.
    pub regions: usize,
    /// The greatest number of sampled instances in `Region::lanes`.
    pub lanes: usize,
    /// The greatest number of blocks in use that are followed. Blocks beyond that count as never freed.
    pub blocks: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { least_share: 0.01, regions: 64, lanes: 400, blocks: 14_000_000 }
    }
}

/// The regions of a trace.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Regions {
    /// The regions, the most useful first. Regions without escapes and with many instances come first,
    /// and among these the regions with the largest shares of the time of calls.
    pub all: Vec<Region>,
    /// Time of all calls of the program, in ns.
    pub total_call_ns: f64,
    /// All bytes that the program allocated.
    pub total_bytes: f64,
    /// Notes for the reader, as sentences.
    pub notes: Vec<String>,
}

/// A function, with the blocks that its thread allocates while the function runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Region {
    /// The name by which a rule of a plan selects exactly this region.
    pub function: String,
    /// The short form of the name.
    pub shown: String,
    /// The source file.
    pub file: Option<String>,
    /// The line in the function from which most bytes are allocated.
    pub line: Option<u32>,
    /// The file of the program or library.
    pub module: String,
    /// A node of the table `stacks` whose innermost frame is the function.
    pub node: u32,
    /// What ends an instance.
    #[serde(serialize_with = "word")]
    pub ends: End,
    /// Number of instances.
    pub instances: u64,
    /// Number of instances whose end was not seen.
    pub unfinished: u64,
    /// Number of threads that have instances.
    pub threads: u32,
    /// The number of different sequences of sizes that instances allocate, counted up to 1000.
    pub inputs: u64,
    /// Number of blocks.
    pub blocks: u64,
    /// Bytes of the blocks.
    pub bytes: u64,
    /// Calls of malloc's family that allocate, resize or free the blocks.
    pub calls: u64,
    /// Time of these calls in ns, estimated from the calls that were timed.
    pub call_ns: f64,
    /// CPU time of the threads during their instances in ns; `None` if it is unknown.
    pub cpu_ns: Option<f64>,
    /// How long an instance takes, in ns: quantiles over the instances.
    pub duration_ns: Quantiles,
    /// The peak of the bytes in use: its quantiles over the instances.
    pub peak: Quantiles,
    /// The bytes that an instance allocates: their quantiles over the instances.
    pub total: Quantiles,
    /// U of the instances: bytes at the peak / bytes allocated.
    pub utilisation: f64,
    /// V: the entropy of the size classes, in bits.
    pub variation_bits: f64,
    /// Number of different sizes that blocks had.
    pub sizes: u32,
    /// The share of the blocks that have the most frequent size.
    pub one_size_share: f64,
    /// Blocks that outlive their instance, including blocks that are never freed.
    pub escapes: u64,
    /// Bytes of the blocks that escape.
    pub escape_bytes: u64,
    /// How many of the escaped blocks another thread freed.
    pub foreign_escapes: u64,
    /// Blocks that another thread frees, before or after the end of their instance.
    pub foreign_frees: u64,
    /// The sites with the most escaped blocks: at most five.
    pub escape_sites: Vec<EscapeSite>,
    /// An upper limit of the time that wink-out can save in frees and destructors, in ns: the sum over
    /// all instances of the time from the first to the last of the final frees, without the work of the
    /// recorder.
    pub teardown_ns: f64,
    /// The number of final frees of all instances: wink-out would leave these frees out.
    pub final_frees: u64,
    /// The functions that together free over half of the blocks that are freed, in a short form.
    /// Destructors are such functions. Empty if that takes more than three functions or one without a
    /// name, if the trace does not tell, and for a marked region.
    pub freed_by: Vec<String>,
    /// Some of the instances, chosen at random, in the order of time.
    pub lanes: Vec<Lane>,
}

/// Writes an end as the word that a plan uses for it.
fn word<S: Serializer>(end: &End, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(end.word())
}

/// Three quantiles of a number over instances.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Quantiles {
    /// The median.
    pub p50: f64,
    /// The 90th percentile.
    pub p90: f64,
    /// The largest value.
    pub max: f64,
}

/// A site whose blocks outlive an instance of a region.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct EscapeSite {
    /// The call stack: a node of the table `stacks`.
    pub node: u32,
    /// The innermost function that does more than pass an allocation on.
    pub function: String,
    /// Blocks that escape.
    pub blocks: u64,
    /// Bytes of the blocks that escape.
    pub bytes: u64,
}

/// An instance of a region.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Lane {
    /// The thread: its number in the table `threads`.
    pub thread: i32,
    /// The first allocation, in ns since the stream was opened.
    pub t0: i64,
    /// The last event of the instance.
    pub t1: i64,
    /// Number of blocks.
    pub blocks: u64,
    /// Bytes of the blocks.
    pub bytes: u64,
    /// Blocks that outlive the instance.
    pub escapes: u64,
    /// The time of the final frees, in ns: see [`Region::teardown_ns`].
    pub teardown_ns: f64,
}

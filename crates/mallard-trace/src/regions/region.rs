//! Defines the data of a region that the search has found.

use crate::replay::End;
use serde::{Serialize, Serializer};

/// The limits of a search for regions.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The minimum share of the time in malloc and free, or of the allocated bytes, that a region
    /// must have.
    pub least_share: f64,
    /// The maximum number of regions that are returned.
    pub regions: usize,
    /// The maximum number of sampled instances in `Region::lanes`.
    pub lanes: usize,
    /// The maximum number of blocks in use that are tracked. Additional blocks count as never
    /// freed.
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
    /// The regions, the most useful first. Regions without escapes and with many instances come
    /// first, sorted by their share of the time in malloc and free.
    pub all: Vec<Region>,
    /// Time of all calls of malloc and free in the program, in ns.
    pub total_call_ns: f64,
    /// All bytes that the program allocated.
    pub total_bytes: f64,
    /// Notes for the user, as sentences.
    pub notes: Vec<String>,
}

/// A function and the blocks that its thread allocates while the function runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Region {
    /// The name by which a rule of a plan selects exactly this region.
    pub function: String,
    /// The short form of the name.
    pub shown: String,
    /// The source file of the function.
    pub file: Option<String>,
    /// The line in the function from which most bytes are allocated.
    pub line: Option<u32>,
    /// The path of the program or library.
    pub module: String,
    /// A node of the table `stacks` whose innermost frame is the function.
    pub node: u32,
    /// What ends an instance of the region.
    #[serde(serialize_with = "word")]
    pub ends: End,
    /// Number of instances.
    pub instances: u64,
    /// The number of instances that were still open at the end of the recording.
    pub unfinished: u64,
    /// Number of threads that have instances.
    pub threads: u32,
    /// The number of different sequences of sizes that instances allocate, counted up to 1000.
    pub inputs: u64,
    /// Number of blocks.
    pub blocks: u64,
    /// Bytes of the blocks.
    pub bytes: u64,
    /// Calls of malloc and related functions that allocate, resize or free the blocks.
    pub calls: u64,
    /// Time of these calls in ns, estimated from the calls that were timed.
    pub call_ns: f64,
    /// The CPU time in ns that the threads used during the instances. `None` if the time is
    /// unknown.
    pub cpu_ns: Option<f64>,
    /// Duration of an instance in ns, as quantiles over the instances.
    pub duration_ns: Quantiles,
    /// Peak of the bytes in use in an instance, as quantiles over the instances.
    pub peak: Quantiles,
    /// Bytes that an instance allocates, as quantiles over the instances.
    pub total: Quantiles,
    /// The measure U over the instances: bytes at the peak / bytes allocated.
    pub utilisation: f64,
    /// The measure V: the entropy of the size classes, in bits.
    pub variation_bits: f64,
    /// Number of different sizes that blocks had.
    pub sizes: u32,
    /// The share of the blocks that have the most frequent size.
    pub one_size_share: f64,
    /// The number of blocks that escape (outlive their instance), including blocks that are never
    /// freed.
    pub escapes: u64,
    /// The number of bytes in blocks that escape.
    pub escape_bytes: u64,
    /// Number of escaped blocks that another thread freed.
    pub foreign_escapes: u64,
    /// Blocks that another thread frees, before or after the end of their instance.
    pub foreign_frees: u64,
    /// The sites that allocate the most escaped blocks. At most five.
    pub escape_sites: Vec<EscapeSite>,
    /// The maximum time in ns that wink-out can save in frees and destructors. For each instance,
    /// this is the time from the first to the last of the final frees, without the time that the
    /// recorder used. The figure is the sum over all instances.
    pub teardown_ns: f64,
    /// The number of final frees in all instances. With wink-out, which frees the memory of an
    /// instance as a whole, the program would not make these frees.
    pub final_frees: u64,
    /// The short names of the functions, such as destructors, that together free more than half of
    /// the freed blocks. Empty if there are more than three such functions, if one of them has no
    /// name, if the trace does not have the data, and for a marked region.
    pub freed_by: Vec<String>,
    /// A random sample of the instances, in time order.
    pub lanes: Vec<Lane>,
}

/// Writes an `End` as the word that a plan uses for it.
fn word<S: Serializer>(end: &End, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(end.word())
}

/// Three quantiles of a figure over the instances.
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
    /// The innermost function that is not an allocation wrapper.
    pub function: String,
    /// Number of blocks that escape.
    pub blocks: u64,
    /// Bytes of the blocks that escape.
    pub bytes: u64,
}

/// An instance of a region.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Lane {
    /// The thread, as in the column `tid` of the table `threads`.
    pub thread: i32,
    /// The time of the first allocation, in ns since the stream was opened.
    pub t0: i64,
    /// The time of the last event of the instance.
    pub t1: i64,
    /// Number of blocks.
    pub blocks: u64,
    /// Bytes of the blocks.
    pub bytes: u64,
    /// Number of blocks that outlive the instance.
    pub escapes: u64,
    /// The duration of the final frees in ns, as defined at [`Region::teardown_ns`].
    pub teardown_ns: f64,
}

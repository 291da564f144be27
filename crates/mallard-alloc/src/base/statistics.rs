//! Statistics of an allocator, which are computed when they are requested.

use core::fmt;

/// The kind of address that a pointer is for an allocator. `classify` returns this value.
///
/// ```
/// use mallard::{ObjectPool, Validity};
/// let pool: ObjectPool<u64> = ObjectPool::new();
/// let number = pool.make(7);
/// assert_eq!(pool.classify((&raw const *number).cast()), Validity::Valid);
/// assert_eq!(pool.classify((&raw const pool).cast()), Validity::Miss);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validity {
    /// The address is in none of the allocator's chunks.
    Miss,
    /// The address is the first byte of a block in use.
    Valid,
    /// The address is in a chunk, but is not the first byte of a block in use.
    Invalid,
}

/// Statistics of an allocator. They are computed on request, so no hot path counts anything for
/// them.
///
/// ```
/// let arena = mallard::Arena::new();
/// arena.alloc([0; 100]);
/// let s = arena.statistics();
/// assert_eq!((s.chunks, s.bytes_live), (1, 400));
/// assert!(s.to_string().starts_with("blocks_live"));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Statistics {
    /// Number of blocks in use. 0 for an arena, which does not count its blocks.
    pub blocks_live: usize,
    /// Bytes in use.
    pub bytes_live: usize,
    /// Bytes of chunks that are not in use.
    pub bytes_idle: usize,
    /// Bytes that the allocator holds from the source, including idle bytes and bookkeeping.
    pub bytes_taken: usize,
    /// Number of chunks that the allocator holds.
    pub chunks: usize,
    /// Number of chunk requests (growth steps) since the allocator was made.
    pub growths: usize,
    /// Number of times that an empty cache was refilled, since construction. For an arena, the
    /// number of times that the arena continued in another chunk.
    pub refills: usize,
    /// Number of times that a full cache returned some of its blocks, since construction.
    pub flushes: usize,
}

impl Statistics {
    pub(crate) const ZERO: Self = Self {
        blocks_live: 0,
        bytes_live: 0,
        bytes_idle: 0,
        bytes_taken: 0,
        chunks: 0,
        growths: 0,
        refills: 0,
        flushes: 0,
    };

    /// Returns each field with its name, in the order in which the C++ library prints them.
    pub fn fields(&self) -> [(&'static str, usize); 8] {
        [
            ("blocks_live", self.blocks_live),
            ("bytes_live", self.bytes_live),
            ("bytes_idle", self.bytes_idle),
            ("bytes_taken", self.bytes_taken),
            ("chunks", self.chunks),
            ("growths", self.growths),
            ("refills", self.refills),
            ("flushes", self.flushes),
        ]
    }

    /// Writes one JSON object on one line.
    ///
    /// ```
    /// let mut json = String::new();
    /// mallard::Statistics::default().write_json(&mut json).unwrap();
    /// assert!(json.starts_with(r#"{"blocks_live":0,"#));
    /// ```
    pub fn write_json(&self, to: &mut dyn fmt::Write) -> fmt::Result {
        write_json(&self.fields(), to)
    }
}

/// Writes named figures as one JSON object on one line.
pub(crate) fn write_json<N: fmt::Display>(
    fields: &[(&str, N)],
    to: &mut dyn fmt::Write,
) -> fmt::Result {
    for (i, (name, value)) in fields.iter().enumerate() {
        write!(to, "{}\"{name}\":{value}", if i == 0 { "{" } else { "," })?;
    }
    to.write_str("}")
}

impl core::ops::Add for Statistics {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            blocks_live: self.blocks_live + other.blocks_live,
            bytes_live: self.bytes_live + other.bytes_live,
            bytes_idle: self.bytes_idle + other.bytes_idle,
            bytes_taken: self.bytes_taken + other.bytes_taken,
            chunks: self.chunks + other.chunks,
            growths: self.growths + other.growths,
            refills: self.refills + other.refills,
            flushes: self.flushes + other.flushes,
        }
    }
}

/// Prints one field per line.
impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fields().iter().try_for_each(|(name, value)| writeln!(f, "{name:<12} {value}"))
    }
}

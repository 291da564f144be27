//! What an allocator holds, derived from its cursors and lists when asked.

use core::fmt;

/// What an allocator knows of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validity {
    /// Not in any of its chunks.
    Miss,
    /// The first byte of a block in use.
    Valid,
    /// In its chunks, but inside a block, free, or never given out.
    Invalid,
}

/// What an allocator holds. Nothing is counted on the hot path for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Statistics {
    /// Blocks in use; an arena does not count them: 0.
    pub blocks_live: usize,
    /// Bytes in use.
    pub bytes_live: usize,
    /// Bytes in chunks, not in use.
    pub bytes_idle: usize,
    /// Bytes from the source: live, idle and bookkeeping.
    pub bytes_taken: usize,
    /// Chunks held.
    pub chunks: usize,
    /// Growth steps, ever.
    pub growths: usize,
    /// How often, ever, what is at hand was empty and got something to give.
    pub refills: usize,
    /// How often, ever, what is at hand was full and let go of a part.
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

    /// The fields by name, in the order of the C++ report.
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

    /// One JSON object on one line.
    pub fn write_json(&self, to: &mut dyn fmt::Write) -> fmt::Result {
        for (i, (name, value)) in self.fields().into_iter().enumerate() {
            write!(to, "{}\"{name}\":{value}", if i == 0 { "{" } else { "," })?;
        }
        to.write_str("}")
    }
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

/// A line a field.
impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in self.fields() {
            writeln!(f, "{name:<12} {value}")?;
        }
        Ok(())
    }
}

//! The format of op streams: constants and records, as in `include/mallard/trace/replay_format.h`.
//! `spec/replay_format.md` explains them.

use zerocopy::{FromBytes, Immutable, IntoBytes};

/// The version of the format.
pub const VERSION: u32 = 2;
/// A number that shows the byte order of the writer. On a machine with the other byte order, its
/// bytes are reversed.
pub const BYTE_ORDER: u32 = 0x0102_0304;
/// The first bytes of an op stream.
pub const MAGIC: [u8; 8] = *b"\x89MREPLY\n";
/// Size of the header, in bytes.
pub const HEADER_BYTES: usize = 80;
/// Size of a thread record, in bytes.
pub const THREAD_BYTES: usize = 32;
/// Size of a target record, in bytes.
pub const TARGET_BYTES: usize = 24;
/// Size of an op, in bytes.
pub const OP_BYTES: usize = 16;
/// The lowest bit of the alignment in [`Op::what`]. The bits below hold the size.
pub const ALIGN_SHIFT: u32 = 40;
/// The lowest bit of the kind of op in [`Op::what`].
pub const OP_SHIFT: u32 = 46;
/// The lowest bit of the target in [`Op::what`].
pub const TARGET_SHIFT: u32 = 51;
/// The maximum number of targets (allocators). Targets have indices from 0 to 8191.
pub const TARGETS_MAX: u32 = 8192;
/// The maximum number of slots for each op of a file. A thread also reserves this many slots at a
/// time, because they fill two cache lines, which some processors fetch together.
pub const SLOTS_OF_OP: u32 = 16;
/// The largest size that an op can hold.
pub const SIZE_MAX: u64 = (1 << ALIGN_SHIFT) - 1;

/// The kinds of allocators that a target can be.
pub mod allocator {
    #![allow(missing_docs)] // Documented at enum mallard_replay_allocator.
    pub const MALLOC: u32 = 0;
    pub const ARENA: u32 = 1;
    pub const MULTIPOOL: u32 = 2;
    pub const MULTIPOOL_OVER_ARENA: u32 = 3;
}

/// The kinds of ops.
pub mod op {
    #![allow(missing_docs)] // Documented at enum mallard_replay_op_kind.
    pub const END: u8 = 0;
    pub const OP_MALLOC: u8 = 1;
    pub const OP_CALLOC: u8 = 2;
    pub const OP_ALIGNED: u8 = 3;
    pub const OP_REALLOC: u8 = 4;
    pub const OP_NEW: u8 = 5;
    pub const OP_NEW_ALIGNED: u8 = 6;
    pub const OP_FREE: u8 = 7;
    pub const OP_DELETE: u8 = 8;
    pub const OP_DELETE_ALIGNED: u8 = 9;
    pub const OP_FREE_SIZED: u8 = 10;
    pub const OP_FREE_ALIGNED: u8 = 11;
    pub const OP_FREE_NULL: u8 = 12;
    pub const OP_MALLOC_FAILED: u8 = 13;
    pub const OP_CALLOC_FAILED: u8 = 14;
    pub const OP_ALIGNED_FAILED: u8 = 15;
    pub const OP_REALLOC_FAILED: u8 = 16;
    pub const OPEN: u8 = 18;
    pub const CLOSE: u8 = 19;
    pub const PUBLISH: u8 = 20;
    pub const WAIT: u8 = 21;
    pub const START: u8 = 22;
    pub const PAUSE: u8 = 23;
    pub const REALLOC_FROM: u8 = 24;
}

/// Returns whether an op calls an allocator.
pub fn is_call(op: u8) -> bool {
    (op::OP_MALLOC..=op::OP_REALLOC_FAILED).contains(&op)
}

/// One op. The layout is the same as in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct Op {
    /// Bit fields, from the lowest bit: 40 bits of size, 6 of log2 of the alignment, 5 of op, 13 of
    /// target.
    pub what: u64,
    /// A slot or a thread, depending on the kind of op.
    pub slot: u32,
    /// Nanoseconds from the end of the thread's previous call to this call.
    pub gap: u32,
}

impl Op {
    /// Makes an op for target 0, without alignment and gap.
    pub fn new(op: u8, size: u64, slot: u32) -> Op {
        Op { what: pack(size, 0, op, 0), slot, gap: 0 }
    }

    /// Returns the size in bytes, or a position, or a time. The kind of op determines which.
    pub fn size(&self) -> u64 {
        self.what & SIZE_MAX
    }

    /// Returns log2 of the alignment.
    pub fn align_log2(&self) -> u8 {
        (self.what >> ALIGN_SHIFT & 63) as u8
    }

    /// Returns the kind of op, a constant of [`op`].
    pub fn op(&self) -> u8 {
        (self.what >> OP_SHIFT & 31) as u8
    }

    /// Returns the index of the target.
    pub fn target(&self) -> u16 {
        (self.what >> TARGET_SHIFT & 0x1fff) as u16
    }

    /// Returns the bytes of the op in a file.
    pub fn to_bytes(&self) -> [u8; OP_BYTES] {
        zerocopy::transmute!(*self)
    }

    /// Reads an op from its bytes in a file. The slice has at least 16 bytes.
    pub fn from_bytes(bytes: &[u8]) -> Op {
        Op::read_from_prefix(bytes).expect("the bytes of an op").0
    }
}

/// Packs a size, an alignment, an op and a target into [`Op::what`]. Reduces a larger size to
/// [`SIZE_MAX`].
pub fn pack(size: u64, align_log2: u8, op: u8, target: u16) -> u64 {
    size.min(SIZE_MAX)
        | u64::from(align_log2 & 63) << ALIGN_SHIFT
        | u64::from(op & 31) << OP_SHIFT
        | u64::from(target & 0x1fff) << TARGET_SHIFT
}

/// The totals in the header: all its fields except the constants, the numbers of threads and
/// targets, and the checksum. The layout is the same as in the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, IntoBytes, Immutable)]
#[repr(C)]
pub struct Sums {
    /// Number of slots that the ops use.
    pub slots: u64,
    /// Number of ops of all threads together.
    pub ops: u64,
    /// The peak of the requested bytes in use, in the recorded order.
    pub live_peak: u64,
    /// The maximum number of blocks in use at the same time, in the recorded order.
    pub blocks_peak: u64,
    /// Number of ops that call an allocator.
    pub calls: u64,
}

/// The record of a thread. The layout is the same as in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, IntoBytes, Immutable)]
#[repr(C)]
pub struct Thread {
    /// Offset of the thread's first op in the file, in bytes.
    pub offset: u64,
    /// Number of ops of the thread.
    pub ops: u64,
    /// The number of the thread in the trace.
    pub recorded: u64,
    /// When the thread started, in nanoseconds since the first event of the trace.
    pub start_ns: u64,
}

impl Thread {
    /// Returns the record as the bytes that are written to a file.
    pub fn to_bytes(&self) -> [u8; THREAD_BYTES] {
        zerocopy::transmute!(*self)
    }
}

/// The record of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Target {
    /// The kind of allocator: a constant of [`allocator`].
    pub allocator: u32,
    /// Whether several threads use the same instance.
    pub is_shared: bool,
    /// The size in bytes of the allocator's first chunk, or 0 for the default size.
    pub first_chunk: u64,
    /// The number of the plan's rule, counted from 1. 0 for target 0, which is malloc and has no
    /// rule.
    pub rule: u32,
}

impl Target {
    /// Returns the bytes of the record in a file.
    pub fn to_bytes(&self) -> [u8; TARGET_BYTES] {
        let mut bytes = [0; TARGET_BYTES];
        bytes[..4].copy_from_slice(&self.allocator.to_ne_bytes());
        bytes[4..8].copy_from_slice(&u32::from(self.is_shared).to_ne_bytes());
        bytes[8..16].copy_from_slice(&self.first_chunk.to_ne_bytes());
        bytes[16..20].copy_from_slice(&self.rule.to_ne_bytes());
        bytes
    }
}

/// Returns the bytes of the header. The last eight bytes are the checksum.
pub fn header_bytes(threads: u32, targets: u32, sums: &Sums, checksum: u64) -> [u8; HEADER_BYTES] {
    let counts = [BYTE_ORDER, VERSION, HEADER_BYTES as u32, OP_BYTES as u32, threads, targets];
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..32].copy_from_slice(counts.as_bytes());
    bytes[32..72].copy_from_slice(sums.as_bytes());
    bytes[72..].copy_from_slice(checksum.as_bytes());
    bytes
}

/// Adds a 64-bit word to a checksum, and returns the new checksum.
#[inline]
pub fn mix(checksum: u64, word: u64) -> u64 {
    let product = (checksum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    product ^ product >> 32
}

/// Adds bytes, as 64-bit words, to a checksum. Ignores the remaining bytes of an incomplete word.
pub fn mix_bytes(checksum: u64, bytes: &[u8]) -> u64 {
    let words = bytes.chunks_exact(8).map(|word| crate::format::u64_at(word, 0));
    words.fold(checksum, mix)
}

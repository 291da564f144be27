//! The format of event streams: constants, the header and the records, as in
//! `include/mallard/trace/trace_format.h`. `spec/trace_format.md` explains them.

use zerocopy::{FromBytes, Immutable, IntoBytes};

/// The version of the format.
pub const VERSION: u32 = 1;
/// The first bytes of a stream.
pub const MAGIC: [u8; 8] = *b"\x89MTRACE\n";
/// A number that shows the byte order of the writer. On a machine with the other byte order, its
/// bytes are reversed.
pub const BYTE_ORDER: u32 = 0x0102_0304;
/// Size of the header, in bytes. Newer writers may write a longer header.
pub const HEADER_BYTES: usize = 64;
/// Size of a record, in bytes.
pub const RECORD_BYTES: usize = 32;
/// The lowest bit of the alignment in [`Record::what`]. The lower bits contain the size.
pub const ALIGN_SHIFT: u32 = 40;
/// The lowest bit of the op (the kind of the record) in [`Record::what`].
pub const OP_SHIFT: u32 = 46;
/// The lowest bit of the flags in [`Record::what`].
pub const FLAGS_SHIFT: u32 = 52;
/// The maximum size in bytes that a record can hold. For a larger size, the record has this value
/// and the flag [`flag::SIZE_CUT`].
pub const SIZE_MAX: u64 = (1 << ALIGN_SHIFT) - 1;
/// The maximum length of a text in bytes. A reader treats a stream with a longer text as corrupt.
pub const TEXT_BYTES_MAX: usize = 1 << 16;

/// The number of bytes of a region's name that one record holds.
pub const NAME_PART: usize = 16;

/// The clocks that a stream may use.
pub mod clock {
    /// CLOCK_MONOTONIC, in nanoseconds.
    pub const MONOTONIC: u32 = 1;
    /// The time stamp counter of the processor.
    pub const TSC: u32 = 2;
}

/// The `op` values of records: what each record is about.
pub mod op {
    #![allow(missing_docs)] // Documented at enum mallard_trace_op.
    pub const ALLOCATE: u8 = 1;
    pub const DEALLOCATE: u8 = 2;
    pub const RESET: u8 = 3;
    pub const MALLOC: u8 = 16;
    pub const CALLOC: u8 = 17;
    pub const ALIGNED_ALLOC: u8 = 18;
    pub const MEMALIGN: u8 = 19;
    pub const POSIX_MEMALIGN: u8 = 20;
    pub const VALLOC: u8 = 21;
    pub const PVALLOC: u8 = 22;
    pub const REALLOC_FROM: u8 = 24;
    pub const REALLOC_TO: u8 = 25;
    pub const FREE: u8 = 32;
    pub const FREE_SIZED: u8 = 33;
    pub const FREE_ALIGNED_SIZED: u8 = 34;
    pub const FAMILY_FIRST: u8 = 16;
    pub const FAMILY_LAST: u8 = 47;
    pub const MODULE: u8 = 48;
    pub const PROCESS: u8 = 49;
    pub const PROCESS_END: u8 = 50;
    pub const THREAD_START: u8 = 51;
    pub const THREAD_END: u8 = 52;
    pub const MEMORY: u8 = 53;
    pub const CPU: u8 = 54;
    pub const CHECKPOINT: u8 = 55;
    pub const REGION_BEGIN: u8 = 56;
    pub const REGION_END: u8 = 57;
    pub const REGION_NAME: u8 = 58;
    pub const THREAD: u8 = 60;
    pub const NAME: u8 = 61;
    pub const LOST: u8 = 62;
    pub const END: u8 = 63;
}

/// What a record is about. Readers match on this type without a default case. So if you add a kind,
/// a reader does not compile until it handles the new kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A traced allocator has returned a block.
    TracedAllocation,
    /// A traced allocator has freed a block.
    TracedFree,
    /// A traced allocator has freed all its blocks.
    TracedReset,
    /// A call of malloc or a related function that allocates.
    Allocation,
    /// The first record of a call of realloc, made before the call. It has the block to resize.
    ReallocFrom,
    /// The second record of a call of realloc, made after the call. It has the returned block.
    ReallocTo,
    /// A call of free or a related function.
    Free,
    /// A call of a malloc function that this version of the format does not define.
    UnknownCall,
    /// A mapped part of a module.
    Module,
    /// A process begins.
    Process,
    /// A process has exited.
    ProcessEnd,
    /// A thread begins.
    ThreadStart,
    /// A thread has exited.
    ThreadEnd,
    /// The memory of a process at a moment.
    Memory,
    /// The CPU time of a thread at a moment.
    Cpu,
    /// One moment, both in clock ticks and in nanoseconds.
    Checkpoint,
    /// The program enters a region, by a call of `mallard_region_begin`.
    RegionBegin,
    /// The program leaves a region, by a call of `mallard_region_end`.
    RegionEnd,
    /// The next part of a region's name that is too long for one record.
    RegionName,
    /// A switch to another thread, to which the records that follow belong.
    Thread,
    /// The name of a traced allocator.
    Name,
    /// The number of events that are missing in the stream at this place.
    Lost,
    /// The end of the stream.
    End,
    /// A kind that this version of the format does not define.
    Unknown,
}

impl Kind {
    /// Returns the kind of the records with the number `op`.
    #[inline]
    pub fn of(op: u8) -> Kind {
        match op {
            op::ALLOCATE => Kind::TracedAllocation,
            op::DEALLOCATE => Kind::TracedFree,
            op::RESET => Kind::TracedReset,
            op::MALLOC..=op::PVALLOC => Kind::Allocation,
            op::REALLOC_FROM => Kind::ReallocFrom,
            op::REALLOC_TO => Kind::ReallocTo,
            op::FREE..=op::FREE_ALIGNED_SIZED => Kind::Free,
            op if is_family(op) => Kind::UnknownCall,
            op::MODULE => Kind::Module,
            op::PROCESS => Kind::Process,
            op::PROCESS_END => Kind::ProcessEnd,
            op::THREAD_START => Kind::ThreadStart,
            op::THREAD_END => Kind::ThreadEnd,
            op::MEMORY => Kind::Memory,
            op::CPU => Kind::Cpu,
            op::CHECKPOINT => Kind::Checkpoint,
            op::REGION_BEGIN => Kind::RegionBegin,
            op::REGION_END => Kind::RegionEnd,
            op::REGION_NAME => Kind::RegionName,
            op::THREAD => Kind::Thread,
            op::NAME => Kind::Name,
            op::LOST => Kind::Lost,
            op::END => Kind::End,
            _ => Kind::Unknown,
        }
    }
}

/// The flags of a record.
pub mod flag {
    #![allow(missing_docs)] // Documented at enum mallard_trace_flag.
    pub const SIZE_CUT: u16 = 1;
    pub const DUR_CUT: u16 = 2;
    pub const FROM_NEW: u16 = 4;
    pub const ARRAY: u16 = 8;
    pub const NOTHROW: u16 = 16;
    pub const SIZED: u16 = 32;
    pub const ALIGNED: u16 = 64;
    pub const STACK_CUT: u16 = 128;
    pub const STACK_GAP: u16 = 256;
}

/// The reasons why events are missing.
pub mod loss {
    #![allow(missing_docs)] // Documented at enum mallard_trace_loss.
    pub const UNKNOWN: u32 = 0;
    pub const FULL: u32 = 1;
    pub const NESTED: u32 = 2;
    pub const WRITE: u32 = 3;
}

/// The header of a stream, without the constants (magic, byte order, sizes). The layout is the same
/// as in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct Header {
    /// Ticks of the clock per second.
    pub clock_hz: u64,
    /// The reading of the clock when the stream was opened, in ticks.
    pub start: u64,
    /// The time when the stream was opened, in nanoseconds since 1970.
    pub start_unix: u64,
    /// The clock: a constant of [`clock`].
    pub clock: u32,
    /// Process id.
    pub pid: u32,
    /// 0 if every call is recorded. Otherwise the mean number of allocated bytes between two
    /// sampled allocations.
    pub sample_bytes: u64,
}

impl Header {
    /// Returns the first bytes of a stream: the constants and this header.
    pub fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let constants = [BYTE_ORDER, VERSION, HEADER_BYTES as u32, RECORD_BYTES as u32];
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..24].copy_from_slice(constants.as_bytes());
        bytes[24..].copy_from_slice(self.as_bytes());
        bytes
    }

    /// Reads the fields after the constants. The caller has checked the constants.
    pub(crate) fn from_bytes(bytes: &[u8; HEADER_BYTES]) -> Self {
        Header::read_from_bytes(&bytes[24..]).expect("a header after the constants")
    }
}

/// One record of a stream. The layout is the same as in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct Record {
    /// The time in ticks at which the allocation returned, or at which the free began.
    pub t: u64,
    /// The address of the block.
    pub addr: u64,
    /// Bit fields, the lowest first: 40 bits of size, 6 of log2 of the alignment, 6 of op, 12 of
    /// flags.
    pub what: u64,
    /// A packed call stack, or the number of a traced allocator, depending on the op.
    pub stack: u32,
    /// The duration of the call in ticks; 0 if it was not measured.
    pub dur: u32,
}

impl Record {
    /// Makes a record of the kind `op`. Reduces a size above [`SIZE_MAX`] to [`SIZE_MAX`] and sets
    /// [`flag::SIZE_CUT`].
    pub fn new(op: u8, t: u64, addr: u64, size: u64) -> Self {
        Record { t, addr, what: pack(size, 0, op, 0), stack: 0, dur: 0 }
    }

    /// Returns the size in bytes, or the number of bytes of a text.
    #[inline]
    pub fn size(&self) -> u64 {
        self.what & SIZE_MAX
    }

    /// Returns log2 of the alignment.
    #[inline]
    pub fn align_log2(&self) -> u8 {
        (self.what >> ALIGN_SHIFT & 63) as u8
    }

    /// Returns the number of the record's kind.
    #[inline]
    pub fn op(&self) -> u8 {
        (self.what >> OP_SHIFT & 63) as u8
    }

    /// Returns what the record is about.
    #[inline]
    pub fn kind(&self) -> Kind {
        Kind::of(self.op())
    }

    /// Returns the flags, a combination of the constants in [`flag`].
    #[inline]
    pub fn flags(&self) -> u16 {
        (self.what >> FLAGS_SHIFT & 0xfff) as u16
    }

    /// Returns the number of outermost frames that the call stack shares with that of the previous
    /// event of the thread.
    #[inline]
    pub fn kept(&self) -> usize {
        (self.stack >> 16) as usize
    }

    /// Returns the number of innermost frames that are new. The return addresses of these frames
    /// follow the record.
    #[inline]
    pub fn fresh(&self) -> usize {
        (self.stack & 0xffff) as usize
    }

    /// Returns the bytes of the record in a stream.
    pub fn to_bytes(&self) -> [u8; RECORD_BYTES] {
        zerocopy::transmute!(*self)
    }

    /// Reads a record from its bytes in a stream. The slice has at least 32 bytes.
    #[inline]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Record::read_from_prefix(bytes).expect("the bytes of a record").0
    }

    /// Returns the part of a region's name that a mark record holds: 16 bytes, padded with 0.
    pub fn name_part(&self) -> [u8; NAME_PART] {
        let mut part = [0; NAME_PART];
        part[..8].copy_from_slice(&self.addr.to_ne_bytes());
        part[8..12].copy_from_slice(&self.stack.to_ne_bytes());
        part[12..].copy_from_slice(&self.dur.to_ne_bytes());
        part
    }

    /// Returns the records of a mark. `op` is [`op::REGION_BEGIN`] or [`op::REGION_END`]. Each
    /// record holds a part of the region's name.
    pub fn mark(op: u8, t: u64, name: &str) -> Vec<Record> {
        let parts = name.as_bytes().chunks(NAME_PART);
        let parts = if name.is_empty() { vec![&[][..]] } else { parts.collect() };
        let record = |(index, part): (usize, &&[u8])| {
            let op = if index == 0 { op } else { op::REGION_NAME };
            let mut bytes = [0; NAME_PART];
            bytes[..part.len()].copy_from_slice(part);
            Record {
                addr: u64_at(&bytes, 0),
                stack: u32_at(&bytes, 8),
                dur: u32_at(&bytes, 12),
                ..Record::new(op, t, 0, name.len() as u64)
            }
        };
        parts.iter().enumerate().map(record).collect()
    }

    /// Returns the number of bytes that follow the record and belong to it: a text, or return
    /// addresses. In the stream, padding after these bytes extends them to whole records.
    #[inline]
    pub fn tail_bytes(&self) -> u64 {
        let op = self.op();
        if is_family(op) {
            8 * self.fresh() as u64
        } else if has_text(op) {
            self.size()
        } else {
            0
        }
    }
}

/// Packs a size, an alignment, an op and flags into [`Record::what`]. Reduces a size above
/// [`SIZE_MAX`] to [`SIZE_MAX`], and sets [`flag::SIZE_CUT`].
pub fn pack(size: u64, align_log2: u8, op: u8, flags: u16) -> u64 {
    let cut = if size >= SIZE_MAX { flag::SIZE_CUT } else { 0 };
    size.min(SIZE_MAX)
        | u64::from(align_log2) << ALIGN_SHIFT
        | u64::from(op) << OP_SHIFT
        | u64::from(flags | cut) << FLAGS_SHIFT
}

/// Packs the numbers of shared and new frames into [`Record::stack`], for a call of malloc or a
/// related function.
pub fn pack_stack(kept: u16, fresh: u16) -> u32 {
    u32::from(kept) << 16 | u32::from(fresh)
}

/// Returns whether `op` is a call of malloc or a related function.
#[inline]
pub fn is_family(op: u8) -> bool {
    (op::FAMILY_FIRST..=op::FAMILY_LAST).contains(&op)
}

/// Returns whether `op` marks the begin or the end of a region.
#[inline]
pub fn is_mark(op: u8) -> bool {
    matches!(op, op::REGION_BEGIN | op::REGION_END)
}

/// Returns whether a text follows a record of the kind `op`.
#[inline]
pub fn has_text(op: u8) -> bool {
    use Kind::*;
    match Kind::of(op) {
        Module | Process | ThreadStart | Memory | Name => true,
        TracedAllocation | TracedFree | TracedReset | Allocation | ReallocFrom | ReallocTo
        | Free | UnknownCall | ProcessEnd | ThreadEnd | Cpu | Checkpoint | RegionBegin
        | RegionEnd | RegionName | Thread | Lost | End | Unknown => false,
    }
}

#[inline]
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

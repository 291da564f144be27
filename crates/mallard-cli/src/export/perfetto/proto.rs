//! The messages of a Perfetto trace, with the numbers of those fields that are written. A file is a
//! sequence of packets.
#![allow(missing_docs)] // The names are those of Perfetto's format.

use prost::Message;

/// The IDs of the clock for all timestamps, the clock for heap dumps, and the real-time clock.
pub const CLOCK_BOOT: u32 = 6;
pub const CLOCK_DUMPS: u32 = 4;
pub const CLOCK_REAL: u32 = 1;
/// The IDs of event types.
pub const SLICE_BEGIN: i32 = 1;
pub const SLICE_END: i32 = 2;
pub const COUNTER: i32 = 4;
/// The IDs of counter units.
pub const UNIT_COUNT: i32 = 2;
pub const UNIT_BYTES: i32 = 3;

#[derive(Clone, PartialEq, Message)]
pub struct Packet {
    #[prost(message, optional, tag = "6")]
    pub clocks: Option<ClockSnapshot>,
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    /// The ID of the packet's writer. The packets of one writer are in order.
    #[prost(uint32, optional, tag = "10")]
    pub sequence: Option<u32>,
    #[prost(message, optional, tag = "11")]
    pub event: Option<TrackEvent>,
    /// The value 1 makes readers discard the state from earlier packets of this writer.
    #[prost(uint32, optional, tag = "13")]
    pub sequence_flags: Option<u32>,
    #[prost(message, optional, tag = "37")]
    pub profile: Option<ProfilePacket>,
    #[prost(message, optional, tag = "60")]
    pub track: Option<TrackDescriptor>,
}

/// Readings of several clocks at one moment.
#[derive(Clone, PartialEq, Message)]
pub struct ClockSnapshot {
    #[prost(message, repeated, tag = "1")]
    pub clocks: Vec<Clock>,
    #[prost(int32, optional, tag = "2")]
    pub primary: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Clock {
    #[prost(uint32, optional, tag = "1")]
    pub id: Option<u32>,
    #[prost(uint64, optional, tag = "2")]
    pub timestamp: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct TrackEvent {
    #[prost(int32, optional, tag = "9")]
    pub kind: Option<i32>,
    #[prost(uint64, optional, tag = "11")]
    pub track: Option<u64>,
    #[prost(string, optional, tag = "23")]
    pub name: Option<String>,
    #[prost(int64, optional, tag = "30")]
    pub value: Option<i64>,
}

/// A line in Perfetto's display, for a process, a thread or a counter.
#[derive(Clone, PartialEq, Message)]
pub struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    pub id: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    #[prost(message, optional, tag = "3")]
    pub process: Option<ProcessDescriptor>,
    #[prost(message, optional, tag = "4")]
    pub thread: Option<ThreadDescriptor>,
    #[prost(uint64, optional, tag = "5")]
    pub parent: Option<u64>,
    #[prost(message, optional, tag = "8")]
    pub counter: Option<CounterDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ProcessDescriptor {
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    #[prost(string, optional, tag = "6")]
    pub name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ThreadDescriptor {
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    #[prost(int64, optional, tag = "2")]
    pub tid: Option<i64>,
    #[prost(string, optional, tag = "5")]
    pub name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct CounterDescriptor {
    #[prost(int32, optional, tag = "3")]
    pub unit: Option<i32>,
    #[prost(string, optional, tag = "6")]
    pub unit_name: Option<String>,
}

/// Dumps of the heap, and the tables to which the dumps refer. The IDs in the tables begin with 1.
#[derive(Clone, PartialEq, Message)]
pub struct ProfilePacket {
    #[prost(message, repeated, tag = "1")]
    pub strings: Vec<InternedString>,
    #[prost(message, repeated, tag = "2")]
    pub frames: Vec<Frame>,
    #[prost(message, repeated, tag = "3")]
    pub callstacks: Vec<Callstack>,
    #[prost(message, repeated, tag = "4")]
    pub mappings: Vec<Mapping>,
    #[prost(message, repeated, tag = "5")]
    pub dumps: Vec<Dump>,
    /// Whether the profile continues in the next packet.
    #[prost(bool, optional, tag = "6")]
    pub continued: Option<bool>,
    #[prost(uint64, optional, tag = "7")]
    pub index: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct InternedString {
    #[prost(uint64, optional, tag = "1")]
    pub id: Option<u64>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub bytes: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Frame {
    #[prost(uint64, optional, tag = "1")]
    pub id: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    pub function: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    pub mapping: Option<u64>,
    /// The address of the call, relative to the start of the file.
    #[prost(uint64, optional, tag = "4")]
    pub offset: Option<u64>,
}

/// A call stack, the outermost frame first.
#[derive(Clone, PartialEq, Message)]
pub struct Callstack {
    #[prost(uint64, optional, tag = "1")]
    pub id: Option<u64>,
    #[prost(uint64, repeated, packed = "false", tag = "2")]
    pub frames: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Mapping {
    #[prost(uint64, optional, tag = "1")]
    pub id: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    pub build_id: Option<u64>,
    /// The directory names and the file name of the path, as IDs of strings.
    #[prost(uint64, repeated, packed = "false", tag = "7")]
    pub path: Vec<u64>,
}

/// The heap of a process at one moment.
#[derive(Clone, PartialEq, Message)]
pub struct Dump {
    #[prost(uint64, optional, tag = "1")]
    pub pid: Option<u64>,
    #[prost(message, repeated, tag = "2")]
    pub samples: Vec<HeapSample>,
    #[prost(bool, optional, tag = "3")]
    pub from_startup: Option<bool>,
    #[prost(uint64, optional, tag = "9")]
    pub timestamp: Option<u64>,
    #[prost(string, optional, tag = "11")]
    pub heap: Option<String>,
    #[prost(uint64, optional, tag = "12")]
    pub sampling_interval_bytes: Option<u64>,
}

/// The memory that a call stack allocated and freed.
#[derive(Clone, PartialEq, Message)]
pub struct HeapSample {
    #[prost(uint64, optional, tag = "1")]
    pub callstack: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    pub allocated: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    pub freed: Option<u64>,
    #[prost(uint64, optional, tag = "5")]
    pub allocations: Option<u64>,
    #[prost(uint64, optional, tag = "6")]
    pub frees: Option<u64>,
}

//! Writes a trace of Perfetto, for ui.perfetto.dev: memory over time as counters, the threads with
//! their CPU time, and the heap as call stacks, at the peak and at the end.

mod heap;
mod proto;
mod tracks;

use super::{Options, Result};
use mallard_trace::manifest::Manifest;
use mallard_trace::Trace;
use prost::Message;
use proto::{Clock, ClockSnapshot, Packet, CLOCK_BOOT, CLOCK_DUMPS, CLOCK_REAL};
use std::io::{self, Write};

/// The timestamp at which the program starts. The timestamp is not 0, because readers of the file
/// treat a time of 0 as missing.
const BEGIN_NS: i64 = 1_000_000_000;

/// Writes the trace. Ignores the weight in `options`, because a file for Perfetto has all weights.
pub fn write(trace: &Trace, options: &Options, to: &mut dyn Write) -> Result<()> {
    let mut packets = Packets { to, has_begun: false };
    packets.write(clocks(trace.manifest()))?;
    let processes = tracks::write(trace, &mut packets)?;
    heap::write(trace, options, processes.first_pid(), &mut packets)
}

/// Converts a time of the trace into a timestamp of the file.
fn timestamp(ns: i64) -> u64 {
    (BEGIN_NS.saturating_add(ns)).max(0) as u64
}

/// Returns the packet that describes how the clocks are related.
fn clocks(manifest: &Manifest) -> Packet {
    let begin = timestamp(0);
    let mut readings = vec![(CLOCK_BOOT, begin), (CLOCK_DUMPS, begin)];
    if manifest.stream.start_unix > 0 {
        readings.push((CLOCK_REAL, manifest.stream.start_unix));
    }
    let clock = |(id, timestamp)| Clock { id: Some(id), timestamp: Some(timestamp) };
    let clocks = ClockSnapshot {
        clocks: readings.into_iter().map(clock).collect(),
        primary: Some(CLOCK_BOOT as i32),
    };
    Packet { clocks: Some(clocks), timestamp: Some(begin), ..Packet::default() }
}

/// An output to which packets are written, all with the same writer ID.
struct Packets<'a> {
    to: &'a mut dyn Write,
    has_begun: bool,
}

impl Packets<'_> {
    fn write(&mut self, packet: Packet) -> io::Result<()> {
        let flags = (!self.has_begun).then_some(1);
        self.has_begun = true;
        let packet = Packet { sequence: Some(1), sequence_flags: flags, ..packet };
        // The whole file is one message, and the packets are its field 1 (tag 1 << 3 | 2).
        self.to.write_all(&[0x0a])?;
        self.to.write_all(&packet.encode_length_delimited_to_vec())
    }
}

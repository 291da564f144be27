//! Writes the heap as call stacks. Each call stack has the memory that it allocated and freed until
//! the end, and its live bytes at the peak.

use super::proto::{
    Callstack, Dump, Frame, HeapSample, InternedString, Mapping, Packet, ProfilePacket,
};
use super::{timestamp, Options, Packets, Result};
use crate::export::calls::{Calls, Place};
use mallard_trace::tables::schema::MODULES;
use mallard_trace::trace::FrameInfo;
use mallard_trace::{SiteRow, Trace};
use std::collections::HashMap;

/// The maximum number of call stacks in one packet. Perfetto limits the size of packets.
const PACKET_STACKS: usize = 2000;

/// Writes the heap at the peak and at the end. A site is a sum over all processes, so all sites are
/// written as sites of the first process.
pub(super) fn write(
    trace: &Trace,
    options: &Options,
    pid: i32,
    packets: &mut Packets,
) -> Result<()> {
    let calls = Calls::read(trace, options.is_full)?;
    let functions = calls.functions();
    let modules = trace.table(&MODULES)?;
    let modules: Vec<(String, String)> =
        modules.texts("path")?.into_iter().zip(modules.texts("build_id")?).collect();
    let mut tables = Tables::new(&calls, &modules);
    let (totals, mean) = (&trace.manifest().totals, trace.manifest().stream.sample_bytes);
    let pieces = calls.sites.chunks(PACKET_STACKS);
    let last = pieces.len().saturating_sub(1);
    for (index, sites) in pieces.enumerate() {
        let first = (index * PACKET_STACKS) as u64 + 1;
        for (site, id) in sites.iter().zip(first..) {
            tables.add(id, &calls.places(site, &functions));
        }
        let dump = |heap: &str, ns: i64, sample: fn(u64, &SiteRow) -> HeapSample| Dump {
            pid: Some(pid as u64),
            samples: sites.iter().zip(first..).map(|(site, id)| sample(id, site)).collect(),
            from_startup: Some(true),
            timestamp: Some(timestamp(ns)),
            heap: Some(heap.to_string()),
            sampling_interval_bytes: Some(mean.max(1)),
        };
        let end = totals.duration_ns;
        let profile = ProfilePacket {
            dumps: vec![
                dump("malloc at the peak", totals.sites.peak_t, at_peak),
                dump("malloc", end, at_end),
            ],
            continued: Some(index < last),
            index: Some(index as u64),
            ..std::mem::take(&mut tables.packet)
        };
        let timestamp = Some(timestamp(end));
        packets.write(Packet { timestamp, profile: Some(profile), ..Packet::default() })?;
    }
    Ok(())
}

/// Returns the bytes that a site had in use at the peak of the program.
fn at_peak(callstack: u64, site: &SiteRow) -> HeapSample {
    let allocated = Some(site.at_peak_bytes.max(0) as u64);
    HeapSample { callstack: Some(callstack), allocated, ..HeapSample::default() }
}

/// Returns all that a site allocated and freed.
fn at_end(callstack: u64, site: &SiteRow) -> HeapSample {
    let number = |number: i64| Some(number.max(0) as u64);
    HeapSample {
        callstack: Some(callstack),
        allocated: number(site.bytes),
        freed: number(site.bytes - site.live_bytes),
        allocations: number(site.allocs),
        frees: number(site.allocs - site.live_allocs),
    }
}

/// The tables of a profile. Each packet has only the entries that are new since the previous
/// packet.
struct Tables<'a> {
    calls: &'a Calls,
    modules: &'a [(String, String)],
    packet: ProfilePacket,
    strings: HashMap<Vec<u8>, u64>,
    /// The ids of the mappings by module. The key `None` has the mapping for frames without a
    /// module.
    mappings: HashMap<Option<usize>, u64>,
    /// The ids of the frames in the file. The key is the frame of the trace, and the index of a
    /// function in that frame, counted from the outermost function.
    frames: HashMap<(Option<u32>, usize), u64>,
}

impl<'a> Tables<'a> {
    fn new(calls: &'a Calls, modules: &'a [(String, String)]) -> Self {
        let (packet, strings) = (ProfilePacket::default(), HashMap::new());
        let (mappings, frames) = (HashMap::new(), HashMap::new());
        Tables { calls, modules, packet, strings, mappings, frames }
    }

    /// Adds a call stack. `places` begins with the innermost place.
    fn add(&mut self, id: u64, places: &[Place<'a>]) {
        let mut frames = Vec::new();
        for place in places.iter().rev() {
            for (function, level) in place.functions.iter().rev().zip(0..) {
                frames.push(self.frame(place, function, level));
            }
        }
        self.packet.callstacks.push(Callstack { id: Some(id), frames });
    }

    fn frame(&mut self, place: &Place<'a>, function: &FrameInfo<'a>, level: usize) -> u64 {
        let key = (place.frame, level);
        if let Some(&id) = self.frames.get(&key) {
            return id;
        }
        let id = self.frames.len() as u64 + 1;
        self.frames.insert(key, id);
        let (module, offset) = place.frame.map_or((None, None), |frame| self.calls.place_of(frame));
        let function = self.string(self.calls.name(function).as_bytes());
        let mapping = self.mapping(module);
        let call = offset.unwrap_or(id).wrapping_sub(1);
        self.packet.frames.push(Frame {
            id: Some(id),
            function: Some(function),
            mapping: Some(mapping),
            offset: Some(call),
        });
        id
    }

    fn mapping(&mut self, module: Option<usize>) -> u64 {
        if let Some(&id) = self.mappings.get(&module) {
            return id;
        }
        let id = self.mappings.len() as u64 + 1;
        self.mappings.insert(module, id);
        let known = module.and_then(|module| self.modules.get(module));
        let (path, build_id) = known.map_or(("", ""), |(path, id)| (path.as_str(), id.as_str()));
        let path = path.split('/').filter(|part| !part.is_empty());
        let path = path.map(|part| self.string(part.as_bytes())).collect();
        let build_id = Some(self.string(&bytes_of(build_id)));
        self.packet.mappings.push(Mapping { id: Some(id), build_id, path });
        id
    }

    fn string(&mut self, bytes: &[u8]) -> u64 {
        if let Some(&id) = self.strings.get(bytes) {
            return id;
        }
        let id = self.strings.len() as u64 + 1;
        self.strings.insert(bytes.to_vec(), id);
        self.packet.strings.push(InternedString { id: Some(id), bytes: Some(bytes.to_vec()) });
        id
    }
}

/// Converts a build-id from hexadecimal digits into bytes.
fn bytes_of(digits: &str) -> Vec<u8> {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.as_bytes().chunks(2).map_while(byte).collect()
}

//! Helpers of the tests: files of the repository, event streams made by tests, and random numbers.

pub mod blocks;
pub mod fuzz;
pub mod lives;
pub mod regions;
pub mod replay;
pub mod run;
pub mod simulator;

use mallard_trace::format::{self, clock, op, pack, pack_stack, Header, Record};
use mallard_trace::import::{import, Options};
use mallard_trace::stream::{Compression, Reader, Writer};
use mallard_trace::{Result, Trace};
use std::path::{Path, PathBuf};

/// Returns the root directory of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Reads a text file of the repository.
pub fn repository(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).expect(path)
}

/// Reads the golden event stream.
pub fn golden() -> Vec<u8> {
    std::fs::read(root().join("spec/trace_format.golden")).expect("the golden stream")
}

/// Reads the events of a stream and writes them again.
pub fn rewritten(stream: &[u8], compression: Compression) -> Vec<u8> {
    let mut reader = Reader::new(stream, "a stream to rewrite").unwrap();
    let mut writer = Writer::new(Vec::new(), reader.header(), compression).unwrap();
    while let Some(event) = reader.next_event() {
        let frames: Vec<u64> = event.frames().collect();
        if format::has_text(event.record.op()) {
            writer.text(event.record, &event.text()).unwrap();
        } else if frames.is_empty() {
            writer.record(&event.record).unwrap();
        } else {
            writer.events(&with_frames(event.record, &frames)).unwrap();
        }
    }
    writer.finish(1700).unwrap()
}

/// Returns a header for a clock in nanoseconds that starts at 1,000.
pub fn header() -> Header {
    Header {
        clock_hz: 1_000_000_000,
        start: 1000,
        start_unix: 1_700_000_000_000_000_000,
        clock: clock::MONOTONIC,
        pid: 42,
        sample_bytes: 0,
    }
}

/// A random number generator (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// Makes an event of malloc or a related function. `frames` are the new frames of the call stack.
pub fn call(op: u8, t: u64, addr: u64, size: u64, kept: u16, frames: &[u64]) -> Vec<u8> {
    let record = Record {
        t,
        addr,
        what: pack(size, 4, op, 0),
        stack: pack_stack(kept, frames.len() as u16),
        dur: 0,
    };
    with_frames(record, frames)
}

/// Returns the bytes of a record and of the frames after it.
pub fn with_frames(record: Record, frames: &[u64]) -> Vec<u8> {
    let mut bytes = record.to_bytes().to_vec();
    bytes.extend(frames.iter().flat_map(|frame| frame.to_ne_bytes()));
    bytes.resize(bytes.len().next_multiple_of(format::RECORD_BYTES), 0);
    bytes
}

/// Writes an event stream piece by piece.
pub struct StreamOf(pub Writer<Vec<u8>>);

impl StreamOf {
    pub fn new() -> Self {
        StreamOf::with(&header())
    }

    pub fn with(header: &Header) -> Self {
        StreamOf(Writer::new(Vec::new(), header, Compression::None).unwrap())
    }

    /// Adds the events of a thread.
    pub fn piece(&mut self, thread: u64, events: &[Vec<u8>]) -> &mut Self {
        self.0.piece(thread, 0, &events.concat()).unwrap();
        self
    }

    /// Adds a record with a text.
    pub fn text(
        &mut self,
        op: u8,
        t: u64,
        number: u32,
        addr: u64,
        dur: u32,
        text: &str,
    ) -> &mut Self {
        let record = Record { stack: number, dur, ..Record::new(op, t, addr, 0) };
        self.0.text(record, text).unwrap();
        self
    }

    /// Adds a record about a thread or a process.
    pub fn record(&mut self, op: u8, t: u64, number: u32, addr: u64) -> &mut Self {
        self.0.record(&Record { stack: number, ..Record::new(op, t, addr, 0) }).unwrap();
        self
    }

    pub fn checkpoint(&mut self, t: u64) -> &mut Self {
        self.0.checkpoint(t, t - 1000).unwrap();
        self
    }

    pub fn thread(&mut self, thread: u32, process: u32) -> &mut Self {
        self.text(op::THREAD_START, 1000, thread, 4000 + u64::from(thread), process, "worker")
    }

    pub fn finish(self) -> Vec<u8> {
        self.0.finish(1 << 40).unwrap()
    }
}

/// Makes a trace in a temporary directory.
pub fn trace_of(stream: &[u8]) -> (tempfile::TempDir, Trace) {
    let folder = tempfile::tempdir().unwrap();
    let trace = import_in(folder.path(), stream, &Options::default()).unwrap();
    (folder, trace)
}

/// Writes an event stream to a file in a directory, and imports it there.
pub fn import_in(folder: &Path, stream: &[u8], options: &Options) -> Result<Trace> {
    let path = folder.join("a.stream");
    std::fs::write(&path, stream).unwrap();
    import(&path, &folder.join("a.mallard"), options, &mut |_| ())
}

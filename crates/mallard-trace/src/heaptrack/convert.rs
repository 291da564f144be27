//! Converts the lines of a heaptrack file into an event stream of Mallard.

use super::input::{Fault, Numbers};
use super::modules;
use super::tables::{Code, Kinds, Stacks};
use crate::format::{clock, op, pack, pack_stack, Header, Record, RECORD_BYTES};
use crate::import::Known;
use crate::stream::{Compression, Writer};
use std::fs::File;
use std::io;

/// The resolution of the times in a heaptrack file, in nanoseconds.
pub(super) const STEP_NS: u64 = 10_000_000;
/// The latest format version that this module reads.
pub(super) const VERSION_MAX: u64 = 3;
/// When the program starts, in ticks of the stream's clock.
const START: u64 = STEP_NS;
/// The number of bytes from which collected events are written to the stream.
const PIECE_BYTES: usize = 1 << 16;
/// The maximum number of events between two checkpoints.
const EVENTS_MAX: u64 = 1 << 18;
/// The maximum depth of a call stack in a record.
const DEPTH_MAX: usize = u16::MAX as usize;
/// The maximum length of a path.
const PATH_BYTES_MAX: usize = 4096;
/// The page size that is assumed if the file does not state it.
const PAGE_BYTES: u64 = 4096;

/// The content of a heaptrack file, apart from the events.
#[derive(Default)]
pub(super) struct Read {
    /// The name and version of the program that wrote the file.
    pub writer: String,
    /// The command line of the recorded program.
    pub command: Option<String>,
    /// Peak RSS of the recorded program, in bytes.
    pub peak_rss: Option<u64>,
    /// Whether heaptrack was attached to a running program.
    pub was_attached: bool,
    /// The functions of the file, if heaptrack_interpret has looked up their names. `None` for a
    /// raw file.
    pub known: Option<Known>,
}

/// The state of a conversion.
pub(super) struct Converter {
    stream: Writer<File>,
    /// Whether the process and the thread have been written to the event stream.
    has_begun: bool,
    /// Events that are not yet in the event stream.
    piece: Vec<u8>,
    /// Events since the last checkpoint.
    events: u64,
    t: u64,
    version: Option<u64>,
    executable: String,
    page_bytes: u64,
    read: Read,
    stacks: Stacks,
    code: Code,
    kinds: Kinds,
    /// The call stack of the last allocation, and a buffer for the next call stack.
    last: Vec<u32>,
    path: Vec<u32>,
}

impl Converter {
    /// Begins an event stream in a file.
    pub fn new(file: File) -> io::Result<Converter> {
        let header = Header {
            clock_hz: 1_000_000_000,
            start: START,
            start_unix: 0,
            clock: clock::MONOTONIC,
            pid: 0,
            sample_bytes: 0,
        };
        Ok(Converter {
            stream: Writer::new(file, &header, Compression::Packed)?,
            has_begun: false,
            piece: Vec::new(),
            events: 0,
            t: START,
            version: None,
            executable: String::new(),
            page_bytes: PAGE_BYTES,
            read: Read::default(),
            stacks: Stacks::default(),
            code: Code::default(),
            kinds: Kinds::default(),
            last: Vec::new(),
            path: Vec::new(),
        })
    }

    /// Converts the next line.
    pub fn line(&mut self, line: &[u8]) -> Result<(), Fault> {
        let Some((&mode, rest)) = line.split_first() else { return Ok(()) };
        let numbers = &mut Numbers(rest);
        if self.version.is_none() && mode != b'v' {
            return Err(Fault::Line("the file does not begin with its version".to_string()));
        }
        if !self.has_begun && !matches!(mode, b'v' | b'x' | b'X' | b'#') {
            self.begin()?;
        }
        match mode {
            b'v' => self.version(numbers)?,
            b'+' => self.allocation(numbers)?,
            b'-' => self.free(numbers)?,
            b't' => self.stack(numbers)?,
            b'a' => self.kinds.add(numbers.must()?, numbers.must()?)?,
            b'i' => self.code.add(numbers)?,
            b's' => {
                let text = numbers.text(self.is_sized())?;
                self.code.add_string(text)?;
            }
            b'm' => self.module(numbers)?,
            b'c' => self.time(numbers.must()?)?,
            b'R' => self.memory(numbers.must()?)?,
            b'x' => self.executable = numbers.text(self.is_sized())?,
            b'X' => self.read.command = Some(numbers.text(false)?),
            b'I' => self.page_bytes = numbers.must()?,
            b'A' => self.read.was_attached = true,
            b'S' | b'#' => {}
            _ => return Err(Fault::Line("heaptrack writes no such line".to_string())),
        }
        Ok(())
    }

    /// Writes the single process and the single thread to which all events belong.
    fn begin(&mut self) -> Result<(), Fault> {
        self.has_begun = true;
        let command = self.read.command.as_deref().unwrap_or_default();
        let first = command.split(' ').next().unwrap_or_default();
        let path = if self.executable.is_empty() { first } else { &self.executable };
        let process = Record { stack: 1, ..Record::new(op::PROCESS, START, 0, 0) };
        self.stream.text(process, &format!("start {}", path_of(path)?))?;
        let thread = Record { dur: 1, ..Record::new(op::THREAD_START, START, 0, 0) };
        Ok(self.stream.text(thread, "all threads")?)
    }

    fn version(&mut self, numbers: &mut Numbers) -> Result<(), Fault> {
        let program = numbers.must()?;
        // Files of the first version have no version number.
        let version = numbers.next()?.unwrap_or(1);
        if version > VERSION_MAX {
            return Err(Fault::Newer(version));
        }
        let part = |shift: u32| program >> shift & 0xff;
        self.read.writer = format!("heaptrack {}.{}.{}", part(16), part(8), part(0));
        self.version = Some(version);
        Ok(())
    }

    fn is_sized(&self) -> bool {
        self.version.is_some_and(|version| version >= 3)
    }

    fn stack(&mut self, numbers: &mut Numbers) -> Result<(), Fault> {
        let (code, parent) = (numbers.must()?, numbers.must()?);
        // An interpreted file identifies code by an index. A raw file identifies code by the
        // address of the last byte of the call instruction.
        let is_raw = self.code.is_empty();
        if !is_raw && !self.code.has(code) {
            return Err(Fault::Line(format!("there is no code {code:x} yet")));
        }
        self.stacks.add(if is_raw { code.wrapping_add(1) } else { code }, parent)
    }

    fn module(&mut self, numbers: &mut Numbers) -> Result<(), Fault> {
        let path = if self.is_sized() { numbers.text(true)? } else { numbers.word() };
        let path = match path.as_str() {
            "-" => return Ok(()), // a new list of modules begins
            "x" => self.executable.clone(),
            _ => path,
        };
        let parts = modules::parts(path_of(&path)?, numbers)?;
        self.flush()?;
        for part in parts {
            let record = Record { stack: 1, ..Record::new(op::MODULE, self.t, part.start, 0) };
            self.stream.text(record, &part.text)?;
        }
        Ok(())
    }

    fn allocation(&mut self, numbers: &mut Numbers) -> Result<(), Fault> {
        let first = numbers.must()?;
        let (size, stack, addr) = match (numbers.next()?, numbers.next()?) {
            (Some(stack), Some(addr)) => (first, stack, addr),
            (None, _) => self.kinds.allocate(first)?,
            _ => return Err(Fault::Line("the line has too few numbers".to_string())),
        };
        self.stacks.path(stack, &mut self.path)?;
        if self.path.len() > DEPTH_MAX {
            return Err(Fault::Line("the call stack is too deep".to_string()));
        }
        let same = |(a, b): &(&u32, &u32)| a == b;
        let kept = self.last.iter().zip(&self.path).take_while(same).count();
        let fresh = self.path.len() - kept;
        let what = pack(size, 0, op::MALLOC, 0);
        let counts = pack_stack(kept as u16, fresh as u16);
        self.event(Record { t: self.t, addr, what, stack: counts, dur: 0 });
        for &node in &self.path[kept..] {
            self.piece.extend_from_slice(&self.stacks.address(node).to_ne_bytes());
        }
        self.piece.resize(self.piece.len().next_multiple_of(RECORD_BYTES), 0);
        if !self.path.is_empty() {
            std::mem::swap(&mut self.last, &mut self.path);
        }
        self.flush_if_full()
    }

    fn free(&mut self, numbers: &mut Numbers) -> Result<(), Fault> {
        let number = numbers.must()?;
        let addr = if self.kinds.is_used() { self.kinds.free(number)? } else { number };
        self.event(Record::new(op::FREE, self.t, addr, 0));
        self.flush_if_full()
    }

    fn event(&mut self, record: Record) {
        self.piece.extend_from_slice(&record.to_bytes());
        self.events += 1;
    }

    fn time(&mut self, milliseconds: u64) -> Result<(), Fault> {
        let t = milliseconds.checked_mul(1_000_000).and_then(|ns| ns.checked_add(START));
        let t = t.filter(|&t| t <= i64::MAX as u64);
        let t = t.ok_or_else(|| Fault::Line("the time is too large".to_string()))?;
        self.flush()?;
        self.t = t.max(self.t);
        self.checkpoint()
    }

    fn memory(&mut self, pages: u64) -> Result<(), Fault> {
        let rss = pages.saturating_mul(self.page_bytes);
        self.read.peak_rss = self.read.peak_rss.max(Some(rss));
        self.flush()?;
        let record = Record { stack: 1, ..Record::new(op::MEMORY, self.t, 0, 0) };
        self.stream.text(record, &format!("rss={rss}"))?;
        Ok(())
    }

    fn flush_if_full(&mut self) -> Result<(), Fault> {
        if self.piece.len() >= PIECE_BYTES {
            self.flush()?;
        }
        if self.events >= EVENTS_MAX {
            self.checkpoint()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Fault> {
        if !self.piece.is_empty() {
            self.stream.piece(0, self.t, &self.piece)?;
            self.piece.clear();
        }
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<(), Fault> {
        self.events = 0;
        Ok(self.stream.checkpoint(self.t, self.t - START)?)
    }

    /// Ends the stream. Returns the content of the file apart from the events.
    pub fn finish(mut self) -> Result<Read, Fault> {
        if self.version.is_none() {
            return Err(Fault::Line("the file is empty".to_string()));
        }
        if !self.has_begun {
            self.begin()?;
        }
        self.flush()?;
        self.stream.finish(self.t)?;
        Ok(Read { known: self.code.into_known(), ..self.read })
    }
}

/// Returns the path. Fails if the path is longer than the system allows.
fn path_of(path: &str) -> Result<&str, Fault> {
    if path.len() > PATH_BYTES_MAX {
        return Err(Fault::Line("the path is too long".to_string()));
    }
    Ok(path)
}

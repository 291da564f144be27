//! Reads an event stream. The reader never panics, even if the stream is corrupt.

use super::packed::{self, Unpacker};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{self, op, Header, Record, HEADER_BYTES, RECORD_BYTES, TEXT_BYTES_MAX};
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The size of the read buffer in bytes. The buffer has enough space for the longest event, which
/// has 65,535 return addresses.
const BUFFER_BYTES: usize = 1 << 20;

/// A record, with the text or the return addresses that follow it.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// The record.
    pub record: Record,
    tail: &'a [u8],
}

impl<'a> Event<'a> {
    /// Makes an event from a record and the bytes that follow the record (a text or return
    /// addresses).
    pub(crate) fn new(record: Record, tail: &'a [u8]) -> Event<'a> {
        Event { record, tail }
    }

    /// Returns the text of the record; empty if this kind of record has no text. Bytes that are not
    /// UTF-8 are replaced by U+FFFD.
    pub fn text(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.text_bytes())
    }

    /// Returns the bytes of the record's text; empty if this kind of record has no text.
    pub fn text_bytes(&self) -> &'a [u8] {
        if format::has_text(self.record.op()) {
            self.tail
        } else {
            &[]
        }
    }

    /// Returns the return addresses of the new frames, the outermost first.
    #[inline]
    pub fn frames(&self) -> impl ExactSizeIterator<Item = u64> + 'a {
        let tail = if format::is_family(self.record.op()) { self.tail } else { &[] };
        tail.chunks_exact(8).map(|address| format::u64_at(address, 0))
    }
}

/// How an event stream ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The stream has an end record, which states how many events are missing.
    Complete {
        /// Total number of missing events.
        lost: u64,
    },
    /// The stream has no end record, because the writer was killed or had no disk space. The events
    /// that were read are valid.
    Cut,
    /// The next bytes are invalid. The events that were read may be valid.
    Damaged(String),
}

/// Reads the events of a stream in file order.
///
/// Uses at most 3 MiB of memory, and 3 MiB more for a packed stream, whatever the file contains.
pub struct Reader<R: Read> {
    input: Input<R>,
    buffer: Vec<u8>,
    /// The bytes `buffer[at..filled]` were read from the file, but not returned as events yet.
    at: usize,
    filled: usize,
    header: Header,
    records: u64,
    /// The number of records after which the reader stops, as if the stream was cut there.
    records_max: u64,
    ending: Option<Ending>,
    /// The reason why the input could not be read further.
    fault: Option<Ending>,
}

enum Input<R: Read> {
    Plain(R),
    Packed(Box<Unpacker<io::BufReader<R>>>),
}

impl Reader<File> {
    /// Opens a file. Fails if the file is not readable or has no valid header.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|error| {
            let kind = match error.kind() {
                io::ErrorKind::NotFound => ErrorKind::Missing,
                _ => ErrorKind::System,
            };
            let help = "mallard record -o NAME -- PROGRAM makes a new trace";
            Error::new(
                kind,
                format!("cannot open {}: {error}", path.display()),
                "nothing was read",
                help,
            )
        })?;
        Reader::new(file, &path.display().to_string())
    }
}

impl<R: Read> Reader<R> {
    /// Reads the header. `name` is the name of the input in messages.
    pub fn new(mut input: R, name: &str) -> Result<Self> {
        let mut bytes = [0; HEADER_BYTES];
        let mut fill = |from: usize, to: &mut [u8; HEADER_BYTES]| {
            let read = read_full(&mut input, &mut to[from..]).map_err(|e| unreadable(name, &e))?;
            Ok(from + read)
        };
        let mut read = fill(0, &mut bytes)?;
        // In a packed stream, `packed::MAGIC` precedes the header.
        let is_packed = bytes.starts_with(&packed::MAGIC);
        if is_packed {
            let before = packed::MAGIC.len();
            bytes.copy_within(before..read, 0);
            read = fill(read - before, &mut bytes)?;
        }
        check_constants(&bytes, read, name, is_packed)?;
        let input = if is_packed {
            Input::Packed(Box::new(Unpacker::new(io::BufReader::new(input))))
        } else {
            Input::Plain(input)
        };
        let mut reader = Reader {
            input,
            buffer: vec![0; BUFFER_BYTES],
            at: 0,
            filled: 0,
            header: Header::from_bytes(&bytes),
            records: 0,
            records_max: u64::MAX,
            ending: None,
            fault: None,
        };
        let longer = format::u32_at(&bytes, 16) as usize - HEADER_BYTES;
        if !reader.skip(longer) {
            return Err(damaged(name, "its header is longer than the file"));
        }
        Ok(reader)
    }

    /// Returns this reader with a limit: it stops after a number of records, as if the stream was
    /// cut there.
    pub fn with_records_max(self, records_max: u64) -> Self {
        Reader { records_max, ..self }
    }

    /// Returns the header of the stream.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the number of records read so far, including the records with texts and return
    /// addresses.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Returns how the stream ended, or `None` before [`Reader::next_event`] has returned `None`.
    pub fn ending(&self) -> Option<&Ending> {
        self.ending.as_ref()
    }

    /// Returns the next event, or `None` at the end. Does not return the end record.
    #[inline]
    pub fn next_event(&mut self) -> Option<Event<'_>> {
        if self.ending.is_some() || self.records >= self.records_max || !self.has(RECORD_BYTES) {
            return self.end();
        }
        let record = Record::from_bytes(&self.buffer[self.at..]);
        let tail = record.tail_bytes();
        if record.op() == op::END {
            return self.end_record(&record);
        }
        if tail > TEXT_BYTES_MAX as u64 && format::has_text(record.op()) {
            self.fault = Some(Ending::Damaged(format!("a text of {tail} characters")));
            return self.end();
        }
        let records = 1 + (tail as usize).div_ceil(RECORD_BYTES);
        if records > 1 && !self.has(records * RECORD_BYTES) {
            return self.end();
        }
        let begin = self.at + RECORD_BYTES;
        self.at += records * RECORD_BYTES;
        self.records += records as u64;
        Some(Event { record, tail: &self.buffer[begin..begin + tail as usize] })
    }

    fn end<T>(&mut self) -> Option<T> {
        if self.ending.is_none() {
            self.ending = Some(self.fault.take().unwrap_or(Ending::Cut));
        }
        None
    }

    fn end_record<T>(&mut self, record: &Record) -> Option<T> {
        self.ending = Some(if record.addr == self.records {
            Ending::Complete { lost: record.size() }
        } else {
            let (said, were) = (record.addr, self.records);
            Ending::Damaged(format!("the end names {said} records, but {were} are before it"))
        });
        None
    }

    /// Skips bytes. Returns false if the file has no more bytes to skip.
    fn skip(&mut self, mut bytes: usize) -> bool {
        while bytes > 0 {
            let step = bytes.min(BUFFER_BYTES);
            if !self.has(step) {
                return false;
            }
            self.at += step;
            bytes -= step;
        }
        true
    }

    /// Reads more bytes if the buffer has less than `bytes` unread bytes. Returns whether the
    /// buffer has them now.
    #[inline]
    fn has(&mut self, bytes: usize) -> bool {
        self.filled - self.at >= bytes || self.refill(bytes)
    }

    #[cold]
    fn refill(&mut self, bytes: usize) -> bool {
        self.buffer.copy_within(self.at..self.filled, 0);
        self.filled -= self.at;
        self.at = 0;
        while self.filled < bytes && self.fault.is_none() {
            match self.input.read(&mut self.buffer[self.filled..]) {
                Ok(0) => return false,
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The file ends within a packed block, because the writer was killed.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    self.fault = Some(Ending::Cut);
                }
                Err(error) => self.fault = Some(Ending::Damaged(error.to_string())),
            }
        }
        self.filled >= bytes
    }
}

impl<R: Read> Read for Input<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match self {
            Input::Plain(input) => input.read(to),
            Input::Packed(input) => input.read(to),
        }
    }
}

/// Reads until the slice is full or the input ends. Returns the number of bytes read.
fn read_full(input: &mut impl Read, to: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < to.len() {
        match input.read(&mut to[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Checks the fields of the header that are the same in all streams of this version.
fn check_constants(
    bytes: &[u8; HEADER_BYTES],
    read: usize,
    name: &str,
    is_packed: bool,
) -> Result<()> {
    let known = read.min(8);
    if bytes[..known] != format::MAGIC[..known] || read == 0 && !is_packed {
        return Err(Error::new(
            ErrorKind::Foreign,
            format!("{name} is not an event log of Mallard"),
            "nothing was read",
            "mallard record -o NAME -- PROGRAM makes a trace; mallard import takes its stream",
        ));
    }
    if read < HEADER_BYTES {
        return Err(Error::new(
            ErrorKind::Truncated,
            format!("{name} ends within its header"),
            "it has no events: the program was killed immediately, or the disk was full",
            "record again: mallard record -o NAME -- PROGRAM",
        ));
    }
    let order = format::u32_at(bytes, 8);
    if order == format::BYTE_ORDER.swap_bytes() {
        return Err(Error::new(
            ErrorKind::ByteOrder,
            format!("{name} was written on a machine of the other byte order"),
            "nothing was read",
            "run mallard import on a machine like that on which the program ran",
        ));
    }
    if order != format::BYTE_ORDER {
        return Err(damaged(name, "its byte order is none"));
    }
    let version = format::u32_at(bytes, 12);
    if version > format::VERSION {
        return Err(Error::new(
            ErrorKind::Newer,
            format!(
                "{name} has version {version} of the format, but this command reads {}",
                format::VERSION
            ),
            "nothing was read",
            "use the mallard that recorded it, or a newer one",
        ));
    }
    if version != format::VERSION || format::u32_at(bytes, 20) as usize != RECORD_BYTES {
        return Err(damaged(name, "its header names no version or another size of a record"));
    }
    if (format::u32_at(bytes, 16) as usize) < HEADER_BYTES {
        return Err(damaged(name, "its header names a shorter header"));
    }
    Ok(())
}

fn damaged(name: &str, why: &str) -> Error {
    Error::new(
        ErrorKind::Damaged,
        format!("{name} is corrupt: {why}"),
        "nothing was read",
        "copy the file again, or record again: mallard record -o NAME -- PROGRAM",
    )
}

fn unreadable(name: &str, error: &io::Error) -> Error {
    Error::new(
        ErrorKind::System,
        format!("cannot read {name}: {error}"),
        "nothing was read",
        "check the file and the disk, then run the command again",
    )
}

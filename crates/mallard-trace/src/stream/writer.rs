//! Writes a stream, as the command does while it records.

use crate::format::{op, Header, Record, RECORD_BYTES};
use std::io::{self, BufWriter, Write};

/// How a stream is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// The records as they are.
    None,
    /// Compressed with zstd, level 1.
    Zstd,
}

/// Writes a stream. What is written before [`Writer::flush`] can be read even if the writer is
/// killed afterwards.
pub struct Writer<W: Write> {
    sink: Sink<W>,
    records: u64,
    lost: u64,
}

enum Sink<W: Write> {
    Plain(BufWriter<W>),
    Zstd(zstd::stream::write::Encoder<'static, W>),
}

impl<W: Write> Writer<W> {
    /// Writes the header.
    pub fn new(output: W, header: &Header, compression: Compression) -> io::Result<Self> {
        let mut sink = match compression {
            Compression::None => Sink::Plain(BufWriter::with_capacity(1 << 16, output)),
            Compression::Zstd => Sink::Zstd(zstd::stream::write::Encoder::new(output, 1)?),
        };
        sink.write_all(&header.to_bytes())?;
        Ok(Writer { sink, records: 0, lost: 0 })
    }

    /// Writes one record, which has no text and no call stack. A record of lost events also adds these
    /// events to the number that the end of the stream states.
    pub fn record(&mut self, record: &Record) -> io::Result<()> {
        if record.op() == op::LOST {
            self.lost += record.size();
        }
        self.raw(&record.to_bytes())
    }

    /// Writes whole events of thread `thread`, as they are in a segment of the ring.
    ///
    /// # Panics
    ///
    /// If `records` is no multiple of 32 bytes.
    pub fn piece(&mut self, thread: u64, t: u64, records: &[u8]) -> io::Result<()> {
        self.record(&Record::new(op::THREAD, t, thread, 0))?;
        self.raw(records)
    }

    /// Writes a record and its text. Sets the size of the record to the length of the text.
    pub fn text(&mut self, mut record: Record, text: &str) -> io::Result<()> {
        let size = text.len() as u64;
        record.what = record.what & !crate::format::SIZE_MAX | size;
        self.raw(&record.to_bytes())?;
        let mut tail = text.as_bytes().to_vec();
        tail.resize(tail.len().next_multiple_of(RECORD_BYTES), 0);
        self.raw(&tail)
    }

    /// Says that all events published before `t` are written. `ns` is `t` in nanoseconds since the
    /// stream was opened.
    pub fn checkpoint(&mut self, t: u64, ns: u64) -> io::Result<()> {
        self.record(&Record::new(op::CHECKPOINT, t, ns, 0))
    }

    /// Hands everything to the output, so that a reader of the file finds it.
    pub fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }

    /// Number of lost events in the records written so far.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Records written so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Ends the stream at the time `t`, and returns the output.
    pub fn finish(mut self, t: u64) -> io::Result<W> {
        let end = Record::new(op::END, t, self.records, self.lost);
        self.raw(&end.to_bytes())?;
        match self.sink {
            Sink::Plain(output) => output.into_inner().map_err(|error| error.into_error()),
            Sink::Zstd(encoder) => encoder.finish(),
        }
    }

    fn raw(&mut self, records: &[u8]) -> io::Result<()> {
        assert!(records.len() % RECORD_BYTES == 0, "whole records");
        self.records += (records.len() / RECORD_BYTES) as u64;
        self.sink.write_all(records)
    }
}

impl<W: Write> Write for Sink<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Sink::Plain(output) => output.write(bytes),
            Sink::Zstd(output) => output.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Sink::Plain(output) => output.flush(),
            Sink::Zstd(output) => output.flush(),
        }
    }
}

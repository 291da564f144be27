//! Writes a stream, as the command does while it records.

use super::packed::Packer;
use crate::format::{op, Header, Record, RECORD_BYTES, TEXT_BYTES_MAX};
use std::io::{self, BufWriter, Write};

/// How a stream is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// The records as they are.
    None,
    /// Packed: in a fifth to a tenth of the bytes.
    Packed,
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
    Packed(Packer<W>),
}

impl<W: Write> Writer<W> {
    /// Writes the header.
    pub fn new(output: W, header: &Header, compression: Compression) -> io::Result<Self> {
        let header = header.to_bytes();
        let sink = match compression {
            Compression::None => {
                let mut output = BufWriter::with_capacity(1 << 16, output);
                output.write_all(&header)?;
                Sink::Plain(output)
            }
            Compression::Packed => Sink::Packed(Packer::new(output, &header)?),
        };
        Ok(Writer { sink, records: 0, lost: 0 })
    }

    /// Writes one record, which has no text and no call stack. A record of lost events also adds these
    /// events to the number that the end of the stream states.
    pub fn record(&mut self, record: &Record) -> io::Result<()> {
        if record.op() == op::LOST {
            self.lost += record.size();
        }
        self.events(&record.to_bytes())
    }

    /// Writes whole events of thread `thread`, as they are in a segment of the ring. Panics as
    /// [`Writer::events`] does.
    pub fn piece(&mut self, thread: u64, t: u64, records: &[u8]) -> io::Result<()> {
        self.record(&Record::new(op::THREAD, t, thread, 0))?;
        self.events(records)
    }

    /// Writes a record and its text. Sets the size of the record to the length of the text. Writes the
    /// first [`TEXT_BYTES_MAX`] bytes of a longer text, up to the end of a character.
    pub fn text(&mut self, mut record: Record, text: &str) -> io::Result<()> {
        let mut ends = (0..=text.len().min(TEXT_BYTES_MAX)).rev();
        let end = ends.find(|&end| text.is_char_boundary(end)).unwrap_or(0);
        let text = &text[..end];
        let size = text.len() as u64;
        record.what = record.what & !crate::format::SIZE_MAX | size;
        let mut records = record.to_bytes().to_vec();
        records.extend_from_slice(text.as_bytes());
        records.resize(records.len().next_multiple_of(RECORD_BYTES), 0);
        self.events(&records)
    }

    /// Says that all events published before `t` are written. `ns` is `t` in nanoseconds since the
    /// stream was opened.
    pub fn checkpoint(&mut self, t: u64, ns: u64) -> io::Result<()> {
        self.record(&Record::new(op::CHECKPOINT, t, ns, 0))
    }

    /// Hands everything to the output, so that a reader of the file finds it.
    pub fn flush(&mut self) -> io::Result<()> {
        match &mut self.sink {
            Sink::Plain(output) => output.flush(),
            Sink::Packed(packer) => packer.flush(),
        }
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
        self.events(&end.to_bytes())?;
        match self.sink {
            Sink::Plain(output) => output.into_inner().map_err(|error| error.into_error()),
            Sink::Packed(packer) => packer.finish(),
        }
    }

    /// Writes whole events: records with the texts and call stacks that belong to them.
    ///
    /// # Panics
    ///
    /// If `records` is no multiple of 32 bytes.
    pub fn events(&mut self, records: &[u8]) -> io::Result<()> {
        assert!(records.len() % RECORD_BYTES == 0, "whole records");
        self.records += (records.len() / RECORD_BYTES) as u64;
        match &mut self.sink {
            Sink::Plain(output) => output.write_all(records),
            Sink::Packed(packer) => packer.events(records),
        }
    }
}

//! Writes an event stream, as `mallard record` does.

use super::packed::Packer;
use crate::format::{op, Header, Record, RECORD_BYTES, TEXT_BYTES_MAX};
use std::io::{self, BufWriter, Write};

/// How an event stream is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// The plain records.
    None,
    /// Packed records, which use a fifth to a tenth of the bytes.
    Packed,
}

/// Writes an event stream. Everything that was written before a call of [`Writer::flush`] remains
/// readable, even if the writer is killed afterwards.
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
    /// Writes the header of the stream.
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

    /// Writes a record that has neither a text nor a call stack. If the record reports lost events,
    /// adds their number to the total in the end record.
    pub fn record(&mut self, record: &Record) -> io::Result<()> {
        if record.op() == op::LOST {
            self.lost += record.size();
        }
        self.events(&record.to_bytes())
    }

    /// Writes complete events of the thread `thread`. The events have the form in which a segment
    /// of the ring buffer contains them. Panics like [`Writer::events`].
    pub fn piece(&mut self, thread: u64, t: u64, records: &[u8]) -> io::Result<()> {
        self.record(&Record::new(op::THREAD, t, thread, 0))?;
        self.events(records)
    }

    /// Writes a record and its text. Sets the size of the record to the length of the text.
    /// Truncates a text longer than [`TEXT_BYTES_MAX`] bytes, at the end of a character.
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

    /// Writes a checkpoint. A checkpoint guarantees that all events before the tick `t` have been
    /// written. `ns` is the same moment in nanoseconds since the stream was opened.
    pub fn checkpoint(&mut self, t: u64, ns: u64) -> io::Result<()> {
        self.record(&Record::new(op::CHECKPOINT, t, ns, 0))
    }

    /// Writes all buffered data to the output, so that a reader of the file finds the data.
    pub fn flush(&mut self) -> io::Result<()> {
        match &mut self.sink {
            Sink::Plain(output) => output.flush(),
            Sink::Packed(packer) => packer.flush(),
        }
    }

    /// Returns the number of lost events in the records written so far.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns the number of records written so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Writes the end record with the time `t`, and returns the output.
    pub fn finish(mut self, t: u64) -> io::Result<W> {
        let end = Record::new(op::END, t, self.records, self.lost);
        self.events(&end.to_bytes())?;
        match self.sink {
            Sink::Plain(output) => output.into_inner().map_err(|error| error.into_error()),
            Sink::Packed(packer) => packer.finish(),
        }
    }

    /// Writes complete events: records with the texts and return addresses that belong to them.
    ///
    /// # Panics
    ///
    /// If the length of `records` is not a multiple of 32 bytes.
    pub fn events(&mut self, records: &[u8]) -> io::Result<()> {
        assert!(records.len() % RECORD_BYTES == 0, "whole records");
        self.records += (records.len() / RECORD_BYTES) as u64;
        match &mut self.sink {
            Sink::Plain(output) => output.write_all(records),
            Sink::Packed(packer) => packer.events(records),
        }
    }
}

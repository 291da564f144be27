//! Packs records: predicts most words of a record from earlier records. A word that is predicted
//! correctly uses no bytes.
//!
//! While a program is recorded, packing uses CPU time that the program could use. So this packing
//! is fast. It takes a quarter of the time of zstd at level 1, and its output is 1.1 to 2 times as
//! large (docs/decisions/0049-packed-streams.md). A table predicts the next word, and is indexed by
//! a hash of the previous words. This is the finite context method of M. Burtscher's trace
//! compressors VPC3 and FPC. `spec/trace_format.md` defines the bytes.

use crate::format::{u64_at, Record, RECORD_BYTES};
use std::io::{self, Read, Write};

/// The first bytes of a packed stream. The stream header follows, and then blocks of records.
pub const MAGIC: [u8; 8] = *b"\x89MPACK\r\n";

/// The number of records at which the packer writes a block.
const BLOCK_RECORDS: usize = 1 << 14;
/// The maximum number of records in a block. It exceeds `BLOCK_RECORDS` because one event can have
/// 16,385 records.
const BLOCK_RECORDS_MAX: usize = 1 << 15;
/// The maximum size of a packed record: two bytes of lengths, and 4 words.
const PACKED_RECORD_MAX: usize = 2 + RECORD_BYTES;
const BLOCK_HEADER_BYTES: usize = 12;
/// The number of bytes in a word. `WORDS` is the number of words in a record.
const WORD: usize = 8;
const WORDS: usize = RECORD_BYTES / WORD;

/// The number of words in a prediction table, as a power of two.
const TABLE_LOG2: u32 = 13;

/// A prediction table. It maps the hash of a context, the previous words, to the word that followed
/// this context last time.
struct Table(Box<[u64; 1 << TABLE_LOG2]>);

impl Table {
    fn new() -> Table {
        Table(vec![0; 1 << TABLE_LOG2].try_into().expect("the size of a table"))
    }

    #[inline]
    fn entry(&mut self, a: u64, b: u64) -> &mut u64 {
        let hash = (a ^ b.rotate_left(23)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        &mut self.0[(hash >> (u64::BITS - TABLE_LOG2)) as usize]
    }
}

/// The state that the packer and the unpacker derive from the previous records.
struct Model {
    t: u64,
    addr: u64,
    what: u64,
    rest: u64,
    whats: Table,
    rests: Table,
    addrs: Table,
    tails: Table,
}

/// Predicts the words of a record. `what` is predicted from the previous record, `rest` from the
/// previous record and the new `what`, and the address from the new `what` and the new call stack.
impl Model {
    fn new() -> Model {
        let [whats, rests, addrs, tails] = std::array::from_fn(|_| Table::new());
        Model { t: 0, addr: 0, what: 0, rest: 0, whats, rests, addrs, tails }
    }

    #[inline]
    fn what(&mut self) -> &mut u64 {
        self.whats.entry(self.what, self.rest)
    }

    #[inline]
    fn rest(&mut self, what: u64) -> &mut u64 {
        self.rests.entry(what, self.rest)
    }

    #[inline]
    fn addr(&mut self, what: u64, rest: u64) -> &mut u64 {
        self.addrs.entry(what, stack_of(rest))
    }
}

/// Returns the lower half of the word `rest`, which is the call stack. The upper half is the
/// duration.
#[inline]
fn stack_of(rest: u64) -> u64 {
    rest & u64::from(u32::MAX)
}

/// Returns the number of words in the text or in the frames of an event.
#[inline]
fn tail_words(what: u64, rest: u64) -> usize {
    let record = Record { t: 0, addr: 0, what, stack: stack_of(rest) as u32, dur: 0 };
    (record.tail_bytes() as usize).div_ceil(WORD)
}

/// Encodes a signed difference by zigzag, so that small differences of both signs become small
/// numbers.
#[inline]
fn fold(difference: u64) -> u64 {
    difference << 1 ^ (difference as i64 >> 63) as u64
}

#[inline]
fn unfold(folded: u64) -> u64 {
    folded >> 1 ^ (folded & 1).wrapping_neg()
}

/// Returns the number of bytes that a word needs without its leading zero bytes.
#[inline]
fn bytes_of(word: u64) -> u32 {
    (u64::BITS - word.leading_zeros()).div_ceil(8)
}

/// This number is added to the length of an address that is encoded relative to the previous
/// record's address, and not relative to the predicted address.
const NEAR: u32 = 9;

/// Packs records into blocks, and writes each full block.
pub(super) struct Packer<W: Write> {
    output: W,
    model: Model,
    block: Vec<u8>,
    at: usize,
    records: usize,
}

impl<W: Write> Packer<W> {
    /// Writes the first bytes of the file, and the header of the stream.
    pub fn new(mut output: W, header: &[u8]) -> io::Result<Self> {
        output.write_all(&MAGIC)?;
        output.write_all(header)?;
        let block = vec![0; BLOCK_HEADER_BYTES + BLOCK_RECORDS_MAX * PACKED_RECORD_MAX + WORD];
        Ok(Packer { output, model: Model::new(), block, at: BLOCK_HEADER_BYTES, records: 0 })
    }

    /// Packs events. Each event is complete.
    pub fn events(&mut self, mut records: &[u8]) -> io::Result<()> {
        while !records.is_empty() {
            let words = self.head(records);
            let (named, rest) = (words.div_ceil(WORDS), records.len() / RECORD_BYTES - 1);
            let tail = named.min(rest).min(BLOCK_RECORDS);
            self.tail(&records[RECORD_BYTES..], words.min(tail * WORDS));
            self.records += 1 + tail;
            // A reader assigns all remaining words of the block to the event. So if an event lacks
            // words, the block must end before other records follow.
            if self.records >= BLOCK_RECORDS || tail < named {
                self.end_block()?;
            }
            records = &records[(1 + tail) * RECORD_BYTES..];
        }
        Ok(())
    }

    /// Writes everything to the output, including the last block, which may be incomplete.
    pub fn flush(&mut self) -> io::Result<()> {
        self.end_block()?;
        self.output.flush()
    }

    pub fn finish(mut self) -> io::Result<W> {
        self.flush()?;
        Ok(self.output)
    }

    fn end_block(&mut self) -> io::Result<()> {
        if self.records > 0 {
            let sum = crc32fast::hash(&self.block[BLOCK_HEADER_BYTES..self.at]);
            let bytes = (self.at - BLOCK_HEADER_BYTES) as u32;
            for (to, n) in self.block.chunks_exact_mut(4).zip([bytes, self.records as u32, sum]) {
                to.copy_from_slice(&n.to_le_bytes());
            }
            self.output.write_all(&self.block[..self.at])?;
        }
        (self.at, self.records) = (BLOCK_HEADER_BYTES, 0);
        Ok(())
    }

    /// Packs the first record of an event. Returns the number of words in the event after this
    /// record.
    #[inline]
    fn head(&mut self, record: &[u8]) -> usize {
        let (t, addr) = (u64_at(record, 0), u64_at(record, 8));
        let (what, rest) = (u64_at(record, 16), u64_at(record, 24));
        let model = &mut self.model;
        let of_what = what ^ std::mem::replace(model.what(), what);
        let of_rest = rest ^ std::mem::replace(model.rest(what), rest);
        let of_t = fold(t.wrapping_sub(model.t));
        let near = fold(addr.wrapping_sub(model.addr));
        let far = fold(addr.wrapping_sub(std::mem::replace(model.addr(what, rest), addr)));
        (model.t, model.addr, model.what, model.rest) = (t, addr, what, rest);
        let (near_bytes, far_bytes) = (bytes_of(near), bytes_of(far));
        let is_near = near_bytes < far_bytes && near_bytes + NEAR < 16;
        let (of_addr, length) = if is_near { (near, near_bytes + NEAR) } else { (far, far_bytes) };
        let lengths =
            bytes_of(of_t) | length << 4 | bytes_of(of_what) << 8 | bytes_of(of_rest) << 12;
        let place = self.at;
        self.at += 2;
        self.word(of_what);
        self.word(of_rest);
        self.word(of_t);
        self.word(of_addr);
        self.lengths(place, lengths);
        tail_words(what, rest)
    }

    /// Packs the text or the frames of an event, which are the first `words` words of `records`.
    #[inline]
    fn tail(&mut self, records: &[u8], words: usize) {
        let (mut before, mut last) = (stack_of(self.model.rest), self.model.what);
        for group in records[..words * WORD].chunks(RECORD_BYTES) {
            let place = self.at;
            self.at += 2;
            let mut lengths = 0;
            for (i, word) in group.chunks_exact(WORD).enumerate() {
                let word = u64_at(word, 0);
                let entry = self.model.tails.entry(last, before);
                let missed = word ^ std::mem::replace(entry, word);
                (before, last) = (last, word);
                lengths |= bytes_of(missed) << (4 * i);
                self.word(missed);
            }
            self.lengths(place, lengths);
        }
    }

    #[inline]
    fn lengths(&mut self, place: usize, lengths: u32) {
        self.block[place..place + 2].copy_from_slice(&(lengths as u16).to_le_bytes());
    }

    /// Appends a word without its leading zero bytes. Writes 8 bytes, and the next word overwrites
    /// the unused ones.
    #[inline]
    fn word(&mut self, word: u64) {
        self.block[self.at..self.at + WORD].copy_from_slice(&word.to_le_bytes());
        self.at += bytes_of(word) as usize;
    }
}

/// Unpacks the records of a packed stream. Returns an error of the kind `UnexpectedEof` for an
/// incomplete block.
pub(super) struct Unpacker<R: Read> {
    input: R,
    model: Model,
    block: Vec<u8>,
    records: Vec<u8>,
    at: usize,
}

impl<R: Read> Unpacker<R> {
    pub fn new(input: R) -> Self {
        Unpacker { input, model: Model::new(), block: Vec::new(), records: Vec::new(), at: 0 }
    }

    /// Reads and unpacks the next block. Returns false at the end of the input.
    fn next_block(&mut self) -> io::Result<bool> {
        let mut header = [0; BLOCK_HEADER_BYTES];
        let mut filled = 0;
        while filled < header.len() {
            match self.input.read(&mut header[filled..]) {
                Ok(0) if filled == 0 => return Ok(false),
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let [bytes, records, sum] =
            [0, 4, 8].map(|at| u32::from_le_bytes(header[at..at + 4].try_into().expect("4 bytes")));
        if records as usize > BLOCK_RECORDS_MAX
            || bytes as usize > records as usize * PACKED_RECORD_MAX
        {
            return Err(damaged("a block is larger than any that is written"));
        }
        self.block.resize(bytes as usize, 0);
        self.input.read_exact(&mut self.block)?;
        // A fuzzer cannot produce valid checksums, so a fuzz target accepts every checksum.
        if crc32fast::hash(&self.block) != sum && !cfg!(fuzzing) {
            return Err(damaged("a block has another checksum than its header says"));
        }
        self.unpack(records as usize)?;
        Ok(true)
    }

    fn unpack(&mut self, records: usize) -> io::Result<()> {
        let Unpacker { model, block, records: out, at: read, .. } = self;
        let bytes = block.len();
        block.extend([0; RECORD_BYTES]); // so that 4 words can be read past the end
        out.resize(records * RECORD_BYTES, 0);
        *read = 0;
        let mut from = Packed { block, bytes, at: 0 };
        let mut left = &mut out[..];
        while !left.is_empty() {
            let (head, rest) = left.split_at_mut(RECORD_BYTES);
            let words = unpack_head(model, &mut from, head)?.min(rest.len() / WORD);
            let (tail, rest) = rest.split_at_mut(words.next_multiple_of(WORDS) * WORD);
            let (words, unused) = tail.split_at_mut(words * WORD);
            unpack_tail(model, &mut from, words)?;
            unused.fill(0);
            left = rest;
        }
        if from.at != bytes {
            return Err(damaged("a block has more bytes than its records"));
        }
        Ok(())
    }
}

/// Unpacks the first record of an event. Returns the number of words in the event after this
/// record.
#[inline]
fn unpack_head(model: &mut Model, from: &mut Packed<'_>, to: &mut [u8]) -> io::Result<usize> {
    let lengths = from.lengths()?;
    let of_addr = lengths >> 4 & 15;
    let entry = model.what();
    *entry ^= from.word(lengths >> 8 & 15);
    let what = *entry;
    let entry = model.rest(what);
    *entry ^= from.word(lengths >> 12);
    let rest = *entry;
    let t = model.t.wrapping_add(unfold(from.word(lengths & 15)));
    let near = model.addr;
    let entry = model.addr(what, rest);
    let (base, length) = if of_addr < NEAR { (*entry, of_addr) } else { (near, of_addr - NEAR) };
    let addr = base.wrapping_add(unfold(from.word(length)));
    *entry = addr;
    (model.t, model.addr, model.what, model.rest) = (t, addr, what, rest);
    put(to, 0, t);
    put(to, 8, addr);
    put(to, 16, what);
    put(to, 24, rest);
    Ok(tail_words(what, rest))
}

/// Unpacks the text or the frames of an event.
#[inline]
fn unpack_tail(model: &mut Model, from: &mut Packed<'_>, to: &mut [u8]) -> io::Result<()> {
    let (mut before, mut last) = (stack_of(model.rest), model.what);
    for group in to.chunks_mut(RECORD_BYTES) {
        let mut lengths = from.lengths()?;
        for word in group.chunks_exact_mut(WORD) {
            let entry = model.tails.entry(last, before);
            *entry ^= from.word(lengths & 15);
            lengths >>= 4;
            (before, last) = (last, *entry);
            put(word, 0, last);
        }
    }
    Ok(())
}

#[inline]
fn put(to: &mut [u8], at: usize, word: u64) {
    to[at..at + WORD].copy_from_slice(&word.to_ne_bytes());
}

/// Reads the bytes of a block. In `block`, these `bytes` bytes are followed by 32 bytes of padding.
struct Packed<'a> {
    block: &'a [u8],
    bytes: usize,
    at: usize,
}

impl Packed<'_> {
    /// Reads the lengths of 4 words. Fails if the block has no more bytes.
    #[inline]
    fn lengths(&mut self) -> io::Result<u32> {
        if self.at + 2 > self.bytes {
            return Err(damaged("a block has fewer bytes than its records"));
        }
        let lengths = [self.block[self.at], self.block[self.at + 1]];
        self.at += 2;
        Ok(u32::from(u16::from_le_bytes(lengths)))
    }

    /// Reads a word that was written without its leading zero bytes.
    #[inline]
    fn word(&mut self, length: u32) -> u64 {
        let length = length.min(WORD as u32);
        let bytes = self.block[self.at..self.at + WORD].try_into().expect("8 bytes");
        self.at += length as usize;
        let unused = u64::BITS - 8 * length;
        u64::from_le_bytes(bytes) & u64::MAX.checked_shr(unused).unwrap_or(0)
    }
}

impl<R: Read> Read for Unpacker<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while self.at == self.records.len() {
            if !self.next_block()? {
                return Ok(0);
            }
        }
        let count = to.len().min(self.records.len() - self.at);
        to[..count].copy_from_slice(&self.records[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

fn damaged(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arbitrary_bytes_in_a_packed_block_are_safe_to_unpack() {
        let mut random = 1_u64;
        let mut next = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) as usize
        };
        let mut unpacker = Unpacker::new(&[][..]);
        let mut unpacked = 0;
        for _ in 0..20_000 {
            // Random bytes usually mean small lengths here, so that some blocks have the expected
            // number of records.
            let bytes = next() % 40;
            unpacker.block = (0..bytes).map(|_| next() as u8 & 0x13).collect();
            unpacked += usize::from(unpacker.unpack(next() % 5).is_ok());
        }
        assert!(unpacked > 100, "{unpacked}");
    }
}

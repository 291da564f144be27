//! Stores the ops of all threads during compilation.
//!
//! An op stream needs all ops of a thread together, so the ops are first stored in a temporary
//! file, in chunks that each belong to one thread. This uses at most 64 KiB of memory per thread,
//! and one bit for each op of a thread whose blocks other threads use.

use super::format::{self, op, Op, Sums, Target, Thread, HEADER_BYTES, OP_BYTES};
use super::format::{TARGET_BYTES, THREAD_BYTES};
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;

/// Number of ops in a chunk.
const CHUNK_OPS: usize = 4096;
const CHUNK_BYTES: usize = CHUNK_OPS * OP_BYTES;

/// The ops of one thread.
#[derive(Default)]
struct Stream {
    recorded: u64,
    start_ns: u64,
    /// The ops of the last chunk, which is not in the temporary file yet.
    last: Vec<u8>,
    /// The offsets of the other chunks in the temporary file.
    chunks: Vec<u64>,
    /// Number of ops.
    ops: u64,
    /// A bit for each op, which is set if the thread publishes its position after the op. Other
    /// threads can wait for a published position.
    published: Vec<u64>,
    publishes: u64,
}

/// The ops of all threads.
pub(super) struct Streams {
    streams: Vec<Stream>,
    spool: File,
    spooled: u64,
    /// The first error that occurred while writing to the temporary file.
    error: Option<io::Error>,
}

impl Streams {
    /// Makes an empty set. `spool` is the temporary file.
    pub fn new(spool: File) -> Self {
        Streams { streams: Vec::new(), spool, spooled: 0, error: None }
    }

    /// Adds a thread.
    pub fn add_thread(&mut self, recorded: u64, start_ns: u64) {
        self.streams.push(Stream { recorded, start_ns, ..Stream::default() });
    }

    /// Returns the number of threads.
    pub fn threads(&self) -> usize {
        self.streams.len()
    }

    /// Returns the position of a thread, which is the number of its ops so far.
    #[inline]
    pub fn position(&self, thread: usize) -> u64 {
        self.streams[thread].ops
    }

    /// Adds an op.
    #[inline]
    pub fn push(&mut self, thread: usize, op: Op) {
        let stream = &mut self.streams[thread];
        stream.last.extend_from_slice(&op.to_bytes());
        stream.ops += 1;
        if stream.last.len() == CHUNK_BYTES {
            self.spool_chunk(thread);
        }
    }

    #[cold]
    fn spool_chunk(&mut self, thread: usize) {
        let stream = &mut self.streams[thread];
        if let Err(error) = self.spool.write_all_at(&stream.last, self.spooled) {
            self.error.get_or_insert(error);
        }
        stream.chunks.push(self.spooled);
        stream.last.clear();
        self.spooled += CHUNK_BYTES as u64;
    }

    /// Makes a thread publish a position that it has reached, so that other threads can wait for
    /// it.
    pub fn publish(&mut self, thread: usize, position: u64) {
        let stream = &mut self.streams[thread];
        let (word, bit) = ((position - 1) as usize / 64, (position - 1) % 64);
        if stream.published.len() <= word {
            stream.published.resize(word + 1, 0);
        }
        stream.publishes += 1 - (stream.published[word] >> bit & 1);
        stream.published[word] |= 1 << bit;
    }

    /// Writes the op stream. The caller must have added the op `end` to each thread. Computes
    /// `sums.ops` and the offsets of the threads. Returns the checksum and the number of ops.
    pub fn write(&mut self, to: File, targets: &[Target], sums: &Sums) -> io::Result<(u64, u64)> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let threads = self.thread_records(targets.len());
        let ops = threads.iter().map(|thread| thread.ops).sum();
        let sums = Sums { ops, ..*sums };
        let mut to = Summing { to: BufWriter::with_capacity(1 << 18, to), checksum: 0 };
        to.to.write_all(&[0; HEADER_BYTES])?;
        for thread in &threads {
            to.write(&thread.to_bytes())?;
        }
        for target in targets {
            to.write(&target.to_bytes())?;
        }
        for stream in &self.streams {
            stream.write(&self.spool, &mut to)?;
        }
        let counts = (threads.len() as u32, targets.len() as u32);
        let header = format::header_bytes(counts.0, counts.1, &sums, 0);
        let checksum = format::mix_bytes(to.checksum, &header[..HEADER_BYTES - 8]);
        to.to.seek(SeekFrom::Start(0))?;
        to.to.write_all(&format::header_bytes(counts.0, counts.1, &sums, checksum))?;
        to.to.flush()?;
        Ok((checksum, ops))
    }

    fn thread_records(&self, targets: usize) -> Vec<Thread> {
        let tables = self.streams.len() * THREAD_BYTES + targets * TARGET_BYTES;
        let mut offset = (HEADER_BYTES + tables) as u64;
        let mut record = |stream: &Stream| {
            let ops = stream.ops + stream.publishes;
            let thread =
                Thread { offset, ops, recorded: stream.recorded, start_ns: stream.start_ns };
            offset += ops * OP_BYTES as u64;
            thread
        };
        self.streams.iter().map(&mut record).collect()
    }
}

impl Stream {
    fn write(&self, spool: &File, to: &mut Summing) -> io::Result<()> {
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut position = 0;
        for &at in &self.chunks {
            spool.read_exact_at(&mut chunk, at)?;
            self.write_ops(&chunk, &mut position, to)?;
        }
        self.write_ops(&self.last, &mut position, to)
    }

    /// Writes ops. Adds an op `publish` after each op whose position other threads wait for.
    fn write_ops(&self, ops: &[u8], position: &mut u64, to: &mut Summing) -> io::Result<()> {
        // The ops of 64 positions share a word of `published`. Each chunk begins with a new word.
        for ops in ops.chunks(64 * OP_BYTES) {
            let published = self.published.get((*position / 64) as usize).copied().unwrap_or(0);
            let end = *position + (ops.len() / OP_BYTES) as u64;
            if published == 0 {
                to.write(ops)?;
                *position = end;
                continue;
            }
            for op in ops.chunks_exact(OP_BYTES) {
                to.write(op)?;
                if published >> (*position % 64) & 1 == 1 {
                    to.write(&Op::new(op::PUBLISH, *position + 1, 0).to_bytes())?;
                }
                *position += 1;
            }
        }
        Ok(())
    }
}

/// A file, and the checksum of everything that was written to the file.
struct Summing {
    to: BufWriter<File>,
    checksum: u64,
}

impl Summing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.checksum = format::mix_bytes(self.checksum, bytes);
        self.to.write_all(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Returns the rows with `cells` cells from the tables in a specification text.
    fn rows(text: &str, cells: usize) -> Vec<Vec<&str>> {
        let lines = text.lines().filter(|line| line.starts_with('|') && !line.contains("---"));
        let cells_of = |line| -> Vec<&str> { str::trim_matches(line, '|').split('|').collect() };
        let rows = lines.map(cells_of).filter(|row| row.len() == cells).skip(1);
        rows.map(|row| row.into_iter().map(str::trim).collect()).collect()
    }

    fn number(cell: &str) -> u64 {
        match cell {
            "" => 0,
            "max" => format::SIZE_MAX,
            cell => cell.parse().expect(cell),
        }
    }

    fn kind(name: &str) -> u8 {
        let all = [
            ("end", op::END),
            ("malloc", op::OP_MALLOC),
            ("calloc", op::OP_CALLOC),
            ("aligned", op::OP_ALIGNED),
            ("realloc", op::OP_REALLOC),
            ("new", op::OP_NEW),
            ("new_aligned", op::OP_NEW_ALIGNED),
            ("free", op::OP_FREE),
            ("delete", op::OP_DELETE),
            ("delete_aligned", op::OP_DELETE_ALIGNED),
            ("free_sized", op::OP_FREE_SIZED),
            ("free_aligned", op::OP_FREE_ALIGNED),
            ("free_null", op::OP_FREE_NULL),
            ("malloc_failed", op::OP_MALLOC_FAILED),
            ("calloc_failed", op::OP_CALLOC_FAILED),
            ("aligned_failed", op::OP_ALIGNED_FAILED),
            ("realloc_failed", op::OP_REALLOC_FAILED),
            ("open", op::OPEN),
            ("close", op::CLOSE),
            ("publish", op::PUBLISH),
            ("wait", op::WAIT),
            ("start", op::START),
            ("pause", op::PAUSE),
            ("realloc_from", op::REALLOC_FROM),
        ];
        all.iter().find(|(known, _)| *known == name).expect(name).1
    }

    #[test]
    fn the_op_stream_writer_produces_the_bytes_of_the_golden_file() {
        let spec = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec");
        let page = std::fs::read_to_string(spec.join("replay_format.md")).unwrap();
        let mut streams = Streams::new(tempfile::tempfile().unwrap());
        streams.add_thread(1, 0);
        streams.add_thread(2, 1000);
        let mut calls = 0;
        for row in rows(&page, 7) {
            let [thread, name, numbers @ ..] = row.as_slice() else { unreachable!() };
            let numbers: Vec<u64> = numbers.iter().map(|cell| number(cell)).collect();
            let [size, align, target, slot, gap] = numbers[..] else { unreachable!() };
            let what = format::pack(size, align as u8, kind(name), target as u16);
            let op = Op { what, slot: slot as u32, gap: gap as u32 };
            calls += u64::from(format::is_call(op.op()));
            streams.push(number(thread) as usize, op);
        }
        let mut targets = vec![Target::default()];
        for row in rows(&page, 5) {
            let allocator = match row[1] {
                "arena" => format::allocator::ARENA,
                "multipool" => format::allocator::MULTIPOOL,
                _ => format::allocator::MULTIPOOL_OVER_ARENA,
            };
            let (is_shared, first_chunk) = (row[2] == "1", number(row[3]));
            targets.push(Target { allocator, is_shared, first_chunk, rule: number(row[4]) as u32 });
        }
        let to = tempfile::NamedTempFile::new().unwrap();
        let sums = Sums { slots: 6, ops: 0, live_peak: 476, blocks_peak: 5, calls };
        streams.write(to.reopen().unwrap(), &targets, &sums).unwrap();
        let golden = std::fs::read(spec.join("replay_format.golden")).unwrap();
        assert_eq!(std::fs::read(to.path()).unwrap(), golden);
    }

    #[test]
    fn publish_ops_are_inserted_after_the_right_op_in_any_chunk() {
        let mut streams = Streams::new(tempfile::tempfile().unwrap());
        streams.add_thread(1, 0);
        let count = 2 * CHUNK_OPS as u64 + 100;
        (0..count).for_each(|size| streams.push(0, Op::new(op::OP_MALLOC, size, 0)));
        let published = [1, 64, 65, CHUNK_OPS as u64, CHUNK_OPS as u64 + 1, count];
        published.iter().chain(&[64]).for_each(|&position| streams.publish(0, position));
        let to = tempfile::NamedTempFile::new().unwrap();
        let targets = [Target::default()];
        let written = streams.write(to.reopen().unwrap(), &targets, &Sums::default()).unwrap();
        let bytes = std::fs::read(to.path()).unwrap();
        let ops = &bytes[HEADER_BYTES + THREAD_BYTES + TARGET_BYTES..];
        let mut expected = Vec::new();
        for size in 0..count {
            expected.extend(Op::new(op::OP_MALLOC, size, 0).to_bytes());
            if published.contains(&(size + 1)) {
                expected.extend(Op::new(op::PUBLISH, size + 1, 0).to_bytes());
            }
        }
        assert!(ops == expected);
        assert_eq!(written.1, count + published.len() as u64);
    }
}

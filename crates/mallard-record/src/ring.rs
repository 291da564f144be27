//! The ring, which is memory that a recorded program and this command share.
//!
//! `src/record/ring.hpp` describes the ring and its writers, and has the same types as this file.
//! The threads of the program append records to segments. `Ring::drain` reads the records while the
//! program runs, and pushes the segments that it has read back to the stack of free segments.
#![allow(unsafe_code)] // reads and writes memory that another process changes

use crate::handover::Handover;
use mallard_measure::process::proc;
use memmap2::MmapRaw;
use nix::sys::memfd::{memfd_create, MFdFlags};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{fence, AtomicU32, AtomicU64, Ordering};

const MAGIC: [u8; 8] = *b"\x89MRING\r\n";
const VERSION: u32 = 3;
/// The size of the records of one segment, in bytes.
pub const SEGMENT_BYTES: usize = 16384;
const RECORD_BYTES: usize = 32;
const TABLE_OFFSET: usize = 4096;
const PAGE_BYTES: usize = 4096;

/// The number of segments, which have 256 MiB in all. A segment uses memory only when the program
/// fills it.
pub const SEGMENTS: u32 = 16384;

/// How many segments `drain` examines after the last segment that was ever in use. Threads use new
/// segments in the order of the table, but a thread may be interrupted before it marks its segment
/// as in use.
const LOOK_AHEAD: usize = 256;

/// The bit of `Options::follow` for programs that followed processes execute.
const FOLLOW_EXEC: u32 = 2;

/// Options that the command passes to the recorder.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The number of segments of 16 KiB. A segment uses memory only when the program fills it.
    pub segments: u32,
    /// What happens when the ring is full. `true` drops events, `false` makes the program wait.
    pub drops: bool,
    /// Call stacks: 0 none, 1 the caller only, 2 by frame pointers, 3 by unwind tables.
    pub stacks: u32,
    /// Whether call stacks of frees are recorded.
    pub free_stacks: bool,
    /// Followed processes: 0 none, 1 after forks, 2 after execs ([`FOLLOW_EXEC`]), 3 both.
    pub follow: u32,
    /// The mean number of bytes between sampled allocations; 0 records all.
    pub sample_bytes: u64,
    /// One call in `time_calls` is timed; a power of two.
    pub time_calls: u32,
    /// The clock of the stream, one of `mallard_trace::format::clock`.
    pub clock: u32,
    /// The ticks that two readings of the clock add to the duration of a call (see
    /// `ticks::of_reading`).
    pub clock_ticks: u32,
    /// Whether events are recorded from the start.
    pub recording: bool,
}

#[repr(C)]
struct Header {
    magic: [u8; 8],
    version: u32,
    segments: u32,
    data_offset: u64,
    on_full: u32,
    stacks: u32,
    free_stacks: u32,
    follow: u32,
    sample_bytes: u64,
    time_calls: u32,
    recording: AtomicU32,
    padding: u64,
    free_segments: AtomicU64,
    unused: [u64; 7],
    lost_full: AtomicU64,
    lost_nested: AtomicU64,
    waits: AtomicU64,
    clock: u32,
    clock_ticks: u32,
    processes: AtomicU32,
    threads: AtomicU32,
    attached: AtomicU32,
    refused: AtomicU32,
    own_ticks: AtomicU64,
    own_events: AtomicU64,
    free_ticks: AtomicU64,
    timed_frees: AtomicU64,
    free_padding: [u64; 6],
}

#[repr(C, align(64))]
struct Segment {
    count: AtomicU32,
    state: AtomicU32,
    next: AtomicU32,
    thread: AtomicU32,
    process: AtomicU32,
    sequence: AtomicU32,
    system_thread: AtomicU32,
    system_process: AtomicU32,
}

const FREE: u32 = 0;
const IN_USE: u32 = 1;
const SEALED: u32 = 2;

const _: () = assert!(size_of::<Segment>() == 64);
const _: () = assert!(offset_of!(Header, free_segments) == 64);
const _: () = assert!(offset_of!(Header, lost_full) == 128);
const _: () = assert!(offset_of!(Header, attached) == 168);
const _: () = assert!(offset_of!(Header, free_ticks) == 192);
const _: () = assert!(size_of::<Header>() == 256);

/// A shared ring, and how much of it this process has read.
pub struct Ring {
    map: MmapRaw,
    file: File,
    /// Sends the file of the ring to programs that cannot open it by its path. `None` if no exec
    /// is followed.
    handover: Option<Handover>,
    segments: usize,
    data_offset: usize,
    /// The index of the first segment that was never in use.
    used: usize,
    /// For each segment, the number of its records that were read.
    read: Vec<u32>,
    /// For each thread, the segments that are not completely read, by sequence number.
    open: BTreeMap<u32, BTreeMap<u32, usize>>,
    /// For each thread, the sequence number of the segment to read next. A missing entry means 0.
    next: HashMap<u32, u32>,
}

/// A thread of the program that has a segment, and the process of the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// The process id (pid) in the system.
    pub system_process: u32,
    /// The thread id (tid) in the system.
    pub system_thread: u32,
    /// The number of the process in the stream.
    pub process: u32,
    /// The number of the thread in the stream.
    pub thread: u32,
}

impl Ring {
    /// Creates the ring. Programs that this process starts do not inherit the file of the ring
    /// (close-on-exec).
    pub fn create(options: &Options) -> io::Result<Ring> {
        let segments = options.segments as usize;
        let table_end = TABLE_OFFSET + segments * size_of::<Segment>();
        let data_offset = table_end.next_multiple_of(PAGE_BYTES);
        let file = File::from(memfd_create(c"mallard-ring", MFdFlags::MFD_CLOEXEC)?);
        file.set_len((data_offset + segments * SEGMENT_BYTES) as u64)?;
        let map = MmapRaw::map_raw(&file)?;
        let follows_exec = options.follow & FOLLOW_EXEC != 0;
        // If sockets are forbidden, programs can open the ring only by its path.
        let handover = follows_exec.then(|| Handover::begin(&file).ok()).flatten();
        let ring = Ring {
            map,
            file,
            handover,
            segments,
            data_offset,
            used: 0,
            read: vec![0; segments],
            open: BTreeMap::new(),
            next: HashMap::new(),
        };
        // SAFETY: the page of the header is mapped, and no other process has the file yet.
        unsafe {
            ring.map.as_mut_ptr().cast::<Header>().write(Header {
                magic: MAGIC,
                version: VERSION,
                segments: options.segments,
                data_offset: data_offset as u64,
                on_full: options.drops.into(),
                stacks: options.stacks,
                free_stacks: options.free_stacks.into(),
                follow: options.follow,
                sample_bytes: options.sample_bytes,
                time_calls: options.time_calls,
                recording: AtomicU32::new(options.recording.into()),
                padding: 0,
                free_segments: AtomicU64::new(1),
                unused: [0; 7],
                lost_full: AtomicU64::new(0),
                lost_nested: AtomicU64::new(0),
                waits: AtomicU64::new(0),
                clock: options.clock,
                clock_ticks: options.clock_ticks,
                processes: AtomicU32::new(0),
                threads: AtomicU32::new(0),
                attached: AtomicU32::new(0),
                refused: AtomicU32::new(0),
                own_ticks: AtomicU64::new(0),
                own_events: AtomicU64::new(0),
                free_ticks: AtomicU64::new(0),
                timed_frees: AtomicU64::new(0),
                free_padding: [0; 6],
            });
        }
        for index in 0..segments {
            let below = if index + 1 < segments { index as u32 + 2 } else { 0 };
            ring.segment(index).next.store(below, Ordering::Relaxed);
        }
        Ok(ring)
    }

    /// Returns the value of the variable MALLARD_RING. It begins with a path, which is valid while
    /// this process has the ring. After the path, there is room for two numbers of 10 digits, which
    /// the recorder passes to a program that it follows: the process id, and the number of the
    /// process in the stream. Then follow the address and the token of the socket that sends the
    /// ring to programs that cannot open the path.
    pub fn variable(&self) -> String {
        let path = proc::descriptor(self.file.as_raw_fd());
        let path = path.display();
        let socket = self.handover.as_ref().map_or(String::new(), Handover::words);
        format!("{path}:{:010}:{:010}{socket}", 0, 0)
    }

    /// Returns the file of the ring, for a process that cannot open it by its path.
    pub fn file(&self) -> &File {
        &self.file
    }

    fn header(&self) -> &Header {
        // SAFETY: the page is mapped as long as `self` exists, and all fields that change are
        // atomic.
        unsafe { &*self.map.as_ptr().cast::<Header>() }
    }

    fn segment(&self, index: usize) -> &Segment {
        assert!(index < self.segments);
        // SAFETY: the table is mapped, and all its fields are atomic.
        unsafe { &*self.map.as_ptr().add(TABLE_OFFSET).cast::<Segment>().add(index) }
    }

    /// Returns the bytes of address space that the ring uses in each process.
    pub fn bytes(&self) -> u64 {
        self.map.len() as u64
    }

    /// Returns whether another process has mapped the ring, such as the child of a fork before its
    /// first record.
    pub fn is_mapped_elsewhere(&self) -> bool {
        let Ok(file) = self.file.metadata() else { return false };
        let has_mapped = |process: &u32| {
            *process != std::process::id()
                && proc::has_mapped(*process, Path::new("/memfd:mallard-ring"), Some(file.ino()))
        };
        self.header().follow != 0 && proc::processes().iter().any(has_mapped)
    }

    /// Starts or stops the recording of events.
    pub fn set_recording(&self, on: bool) {
        self.header().recording.store(on.into(), Ordering::Relaxed);
    }

    /// Returns whether a recorder has mapped the ring.
    pub fn is_attached(&self) -> bool {
        self.header().attached.load(Ordering::Acquire) != 0
    }

    /// Returns the error that prevented a recorder from starting.
    pub fn refused(&self) -> Option<io::Error> {
        let errno = self.header().refused.load(Ordering::Acquire);
        (errno != 0).then(|| io::Error::from_raw_os_error(errno as i32))
    }

    /// Returns the number of events that were dropped because the ring buffer was full.
    pub fn lost_full(&self) -> u64 {
        self.header().lost_full.load(Ordering::Relaxed)
    }

    /// Returns the number of events that were dropped because a signal handler interrupted the
    /// writing of another event.
    pub fn lost_nested(&self) -> u64 {
        self.header().lost_nested.load(Ordering::Relaxed)
    }

    /// Returns how often a thread waited for a free segment.
    pub fn waits(&self) -> u64 {
        self.header().waits.load(Ordering::Relaxed)
    }

    /// Returns the number of pages in all segments that threads have filled. Each page caused a
    /// page fault of the program.
    pub fn filled_pages(&self) -> u64 {
        let threads = self.header().threads.load(Ordering::Relaxed) as usize;
        // The last segment of each thread may be nearly empty.
        (self.used.saturating_sub(threads) * (SEGMENT_BYTES / PAGE_BYTES)) as u64
    }

    /// Returns the ticks that recording took in a sample of the events, and the number of these
    /// events.
    pub fn own_ticks(&self) -> (u64, u64) {
        let header = self.header();
        (header.own_ticks.load(Ordering::Relaxed), header.own_events.load(Ordering::Relaxed))
    }

    /// Returns the ticks that a sample of the frees took, and the number of these frees.
    pub fn free_ticks(&self) -> (u64, u64) {
        let header = self.header();
        (header.free_ticks.load(Ordering::Relaxed), header.timed_frees.load(Ordering::Relaxed))
    }

    /// Reads all records that were appended since the last call. Calls `to` with a thread and the
    /// next records of this thread, in order for each thread. The slice contains only complete
    /// records.
    pub fn drain<E>(&mut self, mut to: impl FnMut(Owner, &[u8]) -> Result<(), E>) -> Result<(), E> {
        self.find_segments();
        let mut open = std::mem::take(&mut self.open);
        let result = open.iter_mut().try_for_each(|(&thread, segments)| {
            // A thread seals a segment before it uses another, but a later segment may be found
            // first.
            let mut next = self.next.get(&thread).copied().unwrap_or(0);
            while let Some(&index) = segments.get(&next) {
                let owner = self.owner(index);
                if !self.drain_segment(index, |records| to(owner, records))? {
                    break;
                }
                segments.remove(&next);
                self.recycle(index);
                next += 1;
                self.next.insert(thread, next);
            }
            Ok(())
        });
        open.retain(|_, segments| !segments.is_empty());
        self.open = open;
        result
    }

    /// Adds to `open` the segments that threads have started to use since the last call.
    pub fn find_segments(&mut self) {
        let known: HashSet<usize> =
            self.open.values().flat_map(|segments| segments.values().copied()).collect();
        let mut end = (self.used + LOOK_AHEAD).min(self.segments);
        let mut index = 0;
        while index < end {
            let segment = self.segment(index);
            // Because of the acquire order, the fields that the owner wrote before are visible.
            if segment.state.load(Ordering::Acquire) != FREE && !known.contains(&index) {
                let thread = segment.thread.load(Ordering::Relaxed);
                let sequence = segment.sequence.load(Ordering::Relaxed);
                self.open.entry(thread).or_default().insert(sequence, index);
                self.used = self.used.max(index + 1);
                end = (self.used + LOOK_AHEAD).min(self.segments);
            }
            index += 1;
        }
    }

    /// Passes the new records of a segment to `to`, and returns whether the segment was already
    /// sealed.
    fn drain_segment<E>(
        &mut self,
        index: usize,
        sink: impl FnOnce(&[u8]) -> Result<(), E>,
    ) -> Result<bool, E> {
        // `count` is read after `state`, because the count of a sealed segment is final.
        let is_sealed = self.segment(index).state.load(Ordering::Acquire) == SEALED;
        let count = self.segment(index).count.load(Ordering::Acquire) as usize;
        let count = count.min(SEGMENT_BYTES / RECORD_BYTES);
        let read = self.read[index] as usize;
        if count > read {
            let begin = self.data_offset + index * SEGMENT_BYTES + read * RECORD_BYTES;
            // SAFETY: the records are mapped. Their owner does not change them after counting them,
            // and only this process passes the segment to another owner.
            let records = unsafe {
                std::slice::from_raw_parts(
                    self.map.as_ptr().add(begin),
                    (count - read) * RECORD_BYTES,
                )
            };
            sink(records)?;
            self.read[index] = count as u32;
        }
        Ok(is_sealed)
    }

    /// Resets a segment that has no owner, and pushes it to the free segments.
    fn recycle(&mut self, index: usize) {
        self.read[index] = 0;
        let segment = self.segment(index);
        segment.count.store(0, Ordering::Relaxed);
        segment.state.store(FREE, Ordering::Release);
        let top = &self.header().free_segments;
        let mut old = top.load(Ordering::Relaxed);
        loop {
            segment.next.store(old as u32, Ordering::Relaxed);
            let new = ((old >> 32) + 1) << 32 | (index as u64 + 1);
            match top.compare_exchange_weak(old, new, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => old = now,
            }
        }
    }

    /// Returns the threads whose segments are not completely read.
    pub fn owners(&self) -> Vec<Owner> {
        let segments = self.open.values().flat_map(|s| s.values());
        let mut owners: Vec<Owner> = segments.map(|&index| self.owner(index)).collect();
        owners.sort_unstable();
        owners.dedup();
        owners
    }

    fn owner(&self, index: usize) -> Owner {
        let segment = self.segment(index);
        Owner {
            system_process: segment.system_process.load(Ordering::Relaxed),
            system_thread: segment.system_thread.load(Ordering::Relaxed),
            process: segment.process.load(Ordering::Relaxed),
            thread: segment.thread.load(Ordering::Relaxed),
        }
    }

    /// Seals the segments of threads that ended without sealing them, for example by SIGKILL. The
    /// next `drain` reads their last records.
    pub fn seal_segments_of(&mut self, ended: impl Fn(Owner) -> bool) {
        fence(Ordering::Acquire);
        for &index in self.open.values().flat_map(|s| s.values()) {
            if self.segment(index).state.load(Ordering::Relaxed) == IN_USE
                && ended(self.owner(index))
            {
                self.segment(index).state.store(SEALED, Ordering::Release);
            }
        }
    }

    /// Returns the free share of the segments, from 0 to 1. The share is exact enough to decide
    /// when to search for threads that have exited.
    pub fn free_share(&self) -> f64 {
        let in_use: usize = self.open.values().map(BTreeMap::len).sum();
        1.0 - in_use as f64 / self.segments as f64
    }
}

#[cfg(test)]
mod tests;

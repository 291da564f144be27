//! A segment of memory that several processes share. Each process maps the segment at another
//! address.

use super::file_format::{hash_number, hash_text};
use crate::base::bits::{align_up, dangling};
use crate::os::{fcntl, memfd_create, posix_fallocate};
use crate::os::{
    Mapping, SystemError, HUGE_PAGE_BYTES, MAP_NORESERVE, MAP_SHARED, PAGE_BYTES, PROT_NONE,
};
use crate::{BlockAllocator, Measured, Owns, Statistics};
use core::alloc::Layout;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// A segment of memory that a child process inherits, or that one process passes to another through
/// a socket. The format is the same as in the C++ library.
///
/// ```
/// use mallard::{BlockAllocator, SharedMemory};
/// use std::alloc::Layout;
/// # if cfg!(miri) { return Ok(()); } // Miri cannot map shared memory
/// let segment = SharedMemory::anonymous(1 << 20)?;
/// let block = segment.allocate(Layout::new::<u64>());
/// let number = segment.offset_of(block); // the same in every process
/// # assert_eq!(segment.at(number), block);
/// # Ok::<(), mallard::SystemError>(())
/// ```
///
/// **Contents.** Each process maps the segment at another address, aligned to 2 MiB. So objects in
/// a segment must not contain pointers, references or vtables, nor members that contain these, such
/// as a `String` or a `Box`. Mallard does not detect such objects. Offsets are valid in every
/// process. Data that several processes use at the same time must be atomic.
///
/// **Blocks.** An allocation moves a cursor in the segment by one compare-exchange. A new block is
/// zeroed, unless it reuses memory that `deallocate` freed. `deallocate` frees the block that was
/// allocated last, and does nothing for any other block. Alignments up to 2 MiB are supported. The
/// first 192 bytes are the header. An allocation fails when the segment is full, or when its cursor
/// was overwritten.
///
/// **Processes.** Any thread of any process may call any function at any time. A process that is
/// stopped or killed delays no other process. All memory of a segment is allocated when the segment
/// is created. If memory is short, the creation fails. The segment exists while a process maps it
/// or has its descriptor. Dropping this object unmaps the segment in this process only.
#[derive(Debug)]
pub struct SharedMemory {
    memory: Mapping,
    file: OwnedFd,
}

// SAFETY: everything that `&self` changes in the memory is an atomic of the header.
unsafe impl Sync for SharedMemory {}

/// The start of a segment. The first cache line never changes and has a checksum.
#[repr(C)]
struct Header {
    magic: u64,
    version: u64,
    bytes: u64,
    checksum: u64,
    line: [u64; 4],
    cursor: AtomicU64, // offset of the first free byte, with a checksum
    cursor_line: [u64; 7],
    root: [AtomicU64; 8], // the root of the C++ library: state, offset and hash
}
const _: () = assert!(size_of::<Header>() == 192); // version 1 of the format has this size for ever

const MAGIC: u64 = 0x5364_7261_6c6c_616d; // "mallardS"
const VERSION: u64 = 1;
const BYTES_MAX: usize = 1 << 47;

/// Encodes a number below 2^48 and a checksum of 16 bits in one word. Of 65,536 stray writes to
/// such a word, the checksum detects 65,535.
fn checked(number: usize) -> u64 {
    let number = number as u64;
    number << 16 | number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48
}
fn unchecked(word: u64) -> Option<usize> {
    let number = (word >> 16) as usize;
    (checked(number) == word).then_some(number)
}

fn checksum(magic: u64, version: u64, bytes: u64) -> u64 {
    hash_number(bytes, hash_number(version, hash_number(magic, hash_text("segment"))))
}

const NO_MEMORY: &str =
    "use a smaller size: see `free -m` and `ulimit -v` for what this process can have";
const NO_SEGMENT: &str = "the file is not a segment of shared memory";
const NO_MAPPING: &str = "a segment of shared memory cannot be mapped";
const NOT_MADE: &str = "a segment of shared memory cannot be created";

impl SharedMemory {
    /// Makes a segment without a name, for child processes, and for processes that receive its
    /// descriptor. `bytes` is rounded up to whole pages. No process can truncate the segment.
    pub fn anonymous(bytes: usize) -> Result<Self, SystemError> {
        if bytes == 0 || bytes > BYTES_MAX {
            return Err(SystemError::new(
                NOT_MADE,
                "the size must be at least 1 byte and less than 2^47 bytes",
            ));
        }
        let bytes = align_up(bytes, PAGE_BYTES);
        let failed = |error| SystemError::because(error, NOT_MADE, NO_MEMORY);
        // A size that is certainly too large fails here, before any memory is allocated.
        drop(Mapping::anonymous(bytes, crate::os::PROT_BOTH, MAP_SHARED).map_err(failed)?);
        let file = new_file(bytes).map_err(failed)?;
        let segment = Self::map(file, bytes)?;
        let header = Header {
            magic: MAGIC,
            version: VERSION,
            bytes: bytes as u64,
            checksum: checksum(MAGIC, VERSION, bytes as u64),
            line: [0; 4],
            cursor: AtomicU64::new(checked(size_of::<Header>())),
            cursor_line: [0; 7],
            root: [const { AtomicU64::new(0) }; 8],
        };
        // SAFETY: the segment begins with a writable page that nothing else refers to yet.
        unsafe { segment.memory.data.cast::<Header>().write(header) };
        seal(segment.file.as_fd());
        Ok(segment)
    }

    /// Opens the segment of a descriptor. The caller still owns the descriptor.
    ///
    /// # Safety
    /// While any process uses the segment, nothing truncates the segment, and no process writes to
    /// memory in the segment that belongs to another process.
    pub unsafe fn attach(descriptor: BorrowedFd<'_>) -> Result<Self, SystemError> {
        let file = descriptor.try_clone_to_owned();
        let file =
            File::from(file.map_err(|e| SystemError::because(e, NO_SEGMENT, "see `ulimit -n`"))?);
        let found = file.metadata();
        let found =
            found.map_err(|e| SystemError::because(e, NO_SEGMENT, "pass another descriptor"))?;
        let bytes = found.len() as usize;
        if !found.is_file() || bytes > BYTES_MAX {
            return Err(SystemError::new(NO_SEGMENT, "pass the descriptor of a segment"));
        }
        if bytes == 0 || bytes % PAGE_BYTES != 0 {
            return Err(SystemError::new(NO_SEGMENT, "it was truncated: create another"));
        }
        let segment = Self::map(file.into(), bytes)?;
        segment.look_at_header()?;
        Ok(segment)
    }

    fn look_at_header(&self) -> Result<(), SystemError> {
        let h = self.header();
        let help = if h.magic != MAGIC {
            "pass the descriptor of a segment"
        } else if h.version != VERSION {
            "let all processes use one version of Mallard"
        } else if h.checksum != checksum(h.magic, h.version, h.bytes) {
            "a stray write corrupted its header: create another"
        } else if h.bytes != self.memory.bytes as u64 {
            "it was truncated: create another"
        } else {
            let cursor = unchecked(h.cursor.load(Ordering::Relaxed));
            let places = size_of::<Header>()..=self.memory.bytes;
            if cursor.is_some_and(|at| places.contains(&at)) {
                return Ok(());
            }
            "a stray write corrupted its header: create another"
        };
        Err(SystemError::new(NO_SEGMENT, help))
    }

    /// Maps a segment at a multiple of 2 MiB, so that alignments hold in every process.
    fn map(file: OwnedFd, bytes: usize) -> Result<Self, SystemError> {
        let help = "see `ulimit -v` and /proc/sys/vm/max_map_count, and open it for writing";
        let failed = |error| SystemError::because(error, NO_MAPPING, help);
        let memory = Mapping::aligned(bytes, HUGE_PAGE_BYTES, PROT_NONE, MAP_NORESERVE);
        let memory = memory.map_err(failed)?;
        // SAFETY: nothing uses address space that was just reserved.
        unsafe { memory.map(0, bytes, MAP_SHARED, Some(file.as_fd()), 0) }.map_err(failed)?;
        Ok(Self { memory, file })
    }

    /// Returns the descriptor for `attach` in other processes. Send it through a socket, or let a
    /// child inherit it.
    ///
    /// # Safety
    /// Nothing is written through the descriptor.
    pub unsafe fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Returns the size of the segment, including its header, in bytes.
    pub const fn bytes(&self) -> usize {
        self.memory.bytes
    }

    /// Returns the offset of a block from the start of the segment, which is the same in every
    /// process.
    pub fn offset_of(&self, block: NonNull<u8>) -> usize {
        block.addr().get().wrapping_sub(self.memory.data.addr().get())
    }

    /// Returns the address of an offset in this process. The caller must know which object is
    /// stored there.
    ///
    /// # Panics
    /// If the offset is not in the segment.
    pub fn at(&self, offset: usize) -> NonNull<u8> {
        assert!(offset < self.memory.bytes, "an offset of another segment");
        // SAFETY: the offset is within the mapping.
        unsafe { self.memory.data.add(offset) }
    }

    fn header(&self) -> &Header {
        // SAFETY: every segment begins with a header. Only the atomics in the header change.
        unsafe { self.memory.data.cast().as_ref() }
    }
}

fn new_file(bytes: usize) -> io::Result<OwnedFd> {
    const MFD_CLOEXEC: u32 = 1;
    const MFD_ALLOW_SEALING: u32 = 2;
    // SAFETY: the name ends with a 0.
    let file = unsafe { memfd_create(c"mallard".as_ptr(), MFD_CLOEXEC | MFD_ALLOW_SEALING) };
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, and nothing else owns it.
    let file = unsafe { OwnedFd::from_raw_fd(file) };
    loop {
        // Allocates all pages now, so that no process gets a SIGBUS later because memory is short.
        // SAFETY: the descriptor is open.
        match unsafe { posix_fallocate(file.as_raw_fd(), 0, bytes as i64) } {
            0 => return Ok(file),
            4 => {} // EINTR
            error => return Err(io::Error::from_raw_os_error(error)),
        }
    }
}

fn seal(file: BorrowedFd<'_>) {
    const F_ADD_SEALS: i32 = 1033;
    const SEAL_SHRINK_GROW: i32 = 1 | 2 | 4; // 1: no further seals
                                             // SAFETY: the descriptor is open. Without seals, the
                                             // safety of `attach` is up to its caller alone.
    unsafe { fcntl(file.as_raw_fd(), F_ADD_SEALS, SEAL_SHRINK_GROW) };
}

// SAFETY: a block lies between two positions of the cursor, and exactly one call moved the cursor
// from one to the other. The mapping stays in place when this object is moved.
unsafe impl BlockAllocator for SharedMemory {
    fn try_allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        if layout.size() == 0 {
            return Some(dangling(layout));
        }
        let cursor = &self.header().cursor;
        let mut word = cursor.load(Ordering::Relaxed);
        loop {
            let used = unchecked(word).filter(|&at| at <= self.memory.bytes)?;
            let begin = align_up(used, layout.align());
            let end = begin.checked_add(layout.size())?;
            if end > self.memory.bytes || layout.align() > HUGE_PAGE_BYTES {
                return None;
            }
            let (success, failure) = (Ordering::Acquire, Ordering::Relaxed);
            match cursor.compare_exchange_weak(word, checked(end), success, failure) {
                // SAFETY: `begin` is within the mapping.
                Ok(_) => return Some(unsafe { self.memory.data.add(begin) }),
                Err(now) => word = now,
            }
        }
    }

    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        if layout.size() == 0 {
            return;
        }
        let begin = self.offset_of(block);
        let last = checked(begin + layout.size());
        let (success, failure) = (Ordering::Release, Ordering::Relaxed);
        let _ = self.header().cursor.compare_exchange(last, checked(begin), success, failure);
    }
}

// SAFETY: all blocks lie in the mapping, which belongs to this segment.
unsafe impl Owns for SharedMemory {
    fn owns(&self, p: *const u8) -> bool {
        p.addr().wrapping_sub(self.memory.data.addr().get()) < self.memory.bytes
    }
}

impl Measured for SharedMemory {
    /// Returns the statistics. Bytes that were never allocated count as idle, and all other bytes
    /// as live.
    fn statistics(&self) -> Statistics {
        let used = unchecked(self.header().cursor.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
        let used = used.clamp(size_of::<Header>(), self.memory.bytes);
        Statistics {
            bytes_live: used - size_of::<Header>(),
            bytes_idle: self.memory.bytes - used,
            bytes_taken: self.memory.bytes,
            chunks: 1,
            growths: 1,
            ..Statistics::default()
        }
    }
}

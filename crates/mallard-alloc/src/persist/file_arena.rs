//! An arena in a file, which other processes can open later.

use super::file_format::{hash_number, hash_text, State, Words, PAGE_WORDS};
use super::file_store::find_damaged;
use crate::base::bits::dangling;
use crate::os::{Mapping, SystemError, PAGE_BYTES};
use crate::{BlockAllocator, Owns};
use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::NonNull;
use std::fs::File;
use std::path::Path;

/// The access of the program to the file.
///
/// ```
/// use mallard::{FileAccess, FileOptions};
/// let reader = FileOptions { access: FileAccess::Read, ..Default::default() };
/// # let _ = reader;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileAccess {
    /// Read and write. A missing or empty file becomes a new arena.
    #[default]
    Create,
    /// Read and write. A missing or empty file is an error.
    Existing,
    /// Read only, by any number of processes. A write raises SIGSEGV.
    Read,
}

/// The options with which a file arena is opened.
///
/// ```
/// use mallard::{FileAccess, FileOptions};
/// let reader = FileOptions { access: FileAccess::Read, ..Default::default() };
/// assert!(reader.sync);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileOptions {
    /// The access of the program to the file.
    pub access: FileAccess,
    /// The address space that the file may use while it is open, in bytes. Memory and disk space
    /// are used only for pages that are written.
    pub max_bytes: usize,
    /// Whether to map the file at another address if another mapping uses the file's own address.
    /// Then pointers in the file are invalid, and only offsets are valid. Without this option,
    /// `open` fails.
    pub relocate: bool,
    /// Whether `open` reads the whole file and compares its checksums.
    pub verify: bool,
    /// Whether `commit` waits until the commit is on the disk. Without this option, a commit
    /// survives a crash of the process, but perhaps not a power failure. After a power failure,
    /// open the file with `verify`.
    pub sync: bool,
}

impl Default for FileOptions {
    fn default() -> Self {
        let access = FileAccess::Create;
        Self { access, max_bytes: 1 << 34, relocate: false, verify: false, sync: true }
    }
}

/// Statistics of a file arena.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileStatistics {
    /// Bytes in blocks and in gaps between blocks, plus 64 bytes for bookkeeping.
    pub bytes_used: usize,
    /// Bytes in the pages that the file had at the last commit.
    pub bytes_committed: usize,
    /// The maximum of `bytes_used`.
    pub bytes_max: usize,
    /// The number of commits since the file was created.
    pub commits: u64,
}

/// An arena whose contents are a mapped file. A later process can open the file and use its
/// contents immediately, without parsing them. The C++ library uses the same files
/// (`spec/file_arena.md`).
///
/// ```no_run
/// use mallard::{layout_hash, BlockAllocator, FileArena};
/// use std::alloc::Layout;
/// # fn main() -> Result<(), mallard::SystemError> {
/// // SAFETY: nothing else writes to this file.
/// let mut file = unsafe { FileArena::open("count.idx".as_ref(), &Default::default()) }?;
/// let (of, mark) = (Layout::new::<u64>(), layout_hash("count", Layout::new::<u64>()));
/// let count = file.root_or_allocate(of, mark)?.cast::<u64>(); // zeroed when it is new
/// // SAFETY: the mark says that the root is a u64, and nothing else uses it.
/// unsafe { *count.as_ptr() += 1 };
/// file.commit()
/// # }
/// ```
///
/// **Commits.** Changes in memory reach the file only by `commit`. A commit is atomic. If the
/// process is killed, the power fails or the disk is full, the file still holds the last commit.
/// `open` fails for a file that is corrupt, truncated, or of another program or version, and the
/// error contains what to do.
///
/// **Addresses.** The file is mapped at the address at which it was created, so pointers in the
/// file stay valid. When another mapping uses that address, `open` fails. With the option
/// `relocate`, `open` then maps the file at another address.
///
/// **Blocks.** An allocation moves a cursor, which is stored in the file. `deallocate` frees the
/// block that was allocated last, and does nothing for any other block. An allocation fails when
/// `max_bytes` are used. A type with a pointer to anything outside the file, such as `String`, must
/// not be stored in the file.
///
/// **Sharing.** A file lock admits either one writer or several readers. One thread at a time may
/// use a file arena.
///
/// **Costs.** `open` reads the checksums, which are 2 MiB for each GiB. `commit` writes new pages
/// once and changed pages twice. `FileArena` exists on 64-bit Linux, with the feature `std`.
#[derive(Debug)]
pub struct FileArena {
    pub(super) memory: Mapping,
    pub(super) file: File,
    pub(super) options: FileOptions,
    pub(super) state: State,
    pub(super) mapped: u64, // pages that are mapped from the file; later pages are anonymous
    pub(super) step: Stage,
    pub(super) owner: u32, // the process that opened the file
    pub(super) limit: usize,
    pub(super) relocated: bool,
}

/// The progress of the last commit. The next call continues a commit that failed half-way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// No commit is in progress, and the file is in the state `state`.
    Settled,
    /// The journal is complete. The first header may be written or not.
    Decided,
    /// The first header is written. Some pages may be only in the journal.
    Published,
}

/// The start of page 0.
#[repr(C)]
pub(super) struct Blocks {
    pub(super) used: Cell<u64>, // offset of the first free byte, from the start of page 0
    pub(super) limit: Cell<u64>,
    pub(super) root: Cell<u64>, // the offset of the root, or 0 without a root
    pub(super) root_mark: Cell<u64>,
}

pub(super) const FIRST_OFFSET: u64 = 64; // the offset of the first block

/// Returns a hash of the name, size and alignment of a type. A program that opens a file of another
/// program compares the hash in the file with the hash that it computes itself. The hash equals
/// `layout_hash<T>` in C++ if the name is spelled with its namespace.
///
/// ```
/// use mallard::layout_hash;
/// use std::alloc::Layout;
/// assert_ne!(layout_hash("u32", Layout::new::<u32>()), layout_hash("u64", Layout::new::<u64>()));
/// ```
pub fn layout_hash(name: &str, layout: Layout) -> u64 {
    let text = ["T = ", name, "]"].concat();
    hash_number(layout.align() as u64, hash_number(layout.size() as u64, hash_text(&text)))
}

impl FileArena {
    /// Opens or creates a file. On an error, nothing is open and the file is unchanged.
    ///
    /// # Safety
    /// While the file is open, nothing writes to the file or truncates it, except through a file
    /// arena.
    pub unsafe fn open(path: &Path, options: &FileOptions) -> Result<Self, SystemError> {
        let mut arena = Self::found_at(path, options)?;
        if options.verify {
            arena.verify()?;
        }
        Ok(arena)
    }

    /// Returns whether the file is mapped at another address than the one where it was created, so
    /// that plain pointers in the file are invalid.
    pub const fn is_relocated(&self) -> bool {
        self.relocated
    }

    /// Returns the root, which is the object from which a program finds all others. Returns
    /// `Ok(None)` if the file has no root. Returns an error if the root was stored with another
    /// `mark`, which identifies its type.
    pub fn root(&self, mark: u64) -> Result<Option<NonNull<u8>>, SystemError> {
        let blocks = self.blocks();
        match blocks.root.get() {
            0 => Ok(None),
            _ if blocks.root_mark.get() != mark => Err(SystemError::new(
                "the root of a file arena has another type",
                "open it with the program that created it, or reset() it",
            )),
            offset if offset >= blocks.used.get().min(self.memory.bytes as u64) => {
                Err(SystemError::new(
                    "the root of a file arena is not in the file",
                    "a stray write has changed it: open the file again, or restore it from a copy",
                ))
            }
            // SAFETY: the offset is the offset of a block in use, so it is within the mapping.
            offset => Ok(Some(unsafe { self.memory.data.add(offset as usize) })),
        }
    }

    /// Makes a block the root. Fails if the present root has another mark, if the block is not in
    /// the file, or if the file is open for reading only.
    pub fn set_root(&mut self, block: NonNull<u8>, mark: u64) -> Result<(), SystemError> {
        self.root(mark)?;
        if !self.writes() {
            return Err(SystemError::new(
                "a file arena is open for reading only",
                "open it for writing",
            ));
        }
        let offset = self.offset_of(block) as u64;
        if offset < FIRST_OFFSET || offset >= self.blocks().used.get() {
            return Err(SystemError::new("the root is not in the file", "allocate it in the file"));
        }
        self.blocks().root.set(offset);
        self.blocks().root_mark.set(mark);
        Ok(())
    }

    /// Returns the root. If the file has no root, allocates a zeroed block and makes it the root.
    pub fn root_or_allocate(
        &mut self,
        layout: Layout,
        mark: u64,
    ) -> Result<NonNull<u8>, SystemError> {
        if let Some(found) = self.root(mark)? {
            return Ok(found);
        }
        let room = Layout::from_size_align(layout.size().max(1), layout.align());
        let made = room.ok().and_then(|room| self.try_allocate(room)).ok_or_else(|| {
            SystemError::new("no room for a root", "open a file for writing, or raise max_bytes")
        })?;
        // SAFETY: the block is new.
        unsafe { made.write_bytes(0, layout.size()) };
        self.set_root(made, mark)?;
        Ok(made)
    }

    /// Returns the offset of a block from the start of page 0. A block has the same offset each
    /// time that the file is opened.
    pub fn offset_of(&self, block: NonNull<u8>) -> usize {
        block.addr().get().wrapping_sub(self.memory.data.addr().get())
    }

    /// Frees all blocks and removes the root in memory. The file changes at the next `commit`.
    pub fn reset(&mut self) {
        if self.writes() {
            self.blocks().used.set(FIRST_OFFSET);
            self.blocks().root.set(0);
        }
    }

    /// Reads the whole file and compares its checksums with the checksums of the last commit.
    pub fn verify(&mut self) -> Result<(), SystemError> {
        self.settle()?;
        match find_damaged(&self.file, 0, self.state.pages) {
            None => Ok(()),
            Some(_) => Err(SystemError::new(
                "a page of a file arena is corrupt, or cannot be read",
                "restore the file from a copy",
            )),
        }
    }

    /// Returns the statistics of the file.
    pub fn statistics(&self) -> FileStatistics {
        FileStatistics {
            bytes_used: self.blocks().used.get() as usize,
            bytes_committed: self.state.pages as usize * PAGE_BYTES,
            bytes_max: self.blocks().limit.get() as usize,
            commits: self.state.sequence,
        }
    }

    pub(super) fn writes(&self) -> bool {
        self.options.access != FileAccess::Read
    }

    pub(super) fn blocks(&self) -> &Blocks {
        // SAFETY: page 0 begins with a `Blocks`, and no allocated block overlaps it.
        unsafe { self.memory.data.cast().as_ref() }
    }

    pub(super) fn pages_used(&self) -> u64 {
        (self.blocks().used.get() as usize).min(self.limit).div_ceil(PAGE_BYTES) as u64
    }

    /// Returns the content of a page in memory.
    pub(super) fn page(&self, number: u64) -> Words {
        // SAFETY: used pages are within the mapping.
        let at = unsafe { self.memory.data.add(number as usize * PAGE_BYTES) }.cast::<u64>();
        // SAFETY: the words are in the page. The reads are volatile, because the padding of objects in
        // the page is bytes for the system, but uninitialised for the compiler.
        core::array::from_fn(|i| unsafe { at.add(i).read_volatile() })
    }
}

// SAFETY: a block lies between two positions of the cursor, in a mapping that stays in place when this
// object is moved.
unsafe impl BlockAllocator for FileArena {
    #[inline]
    fn try_allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        if layout.size() == 0 {
            return Some(dangling(layout));
        }
        let blocks = self.blocks();
        // The address is aligned, and not the offset. A stray write to the cursor cannot lead out
        // of the mapping.
        let base = self.memory.data.addr().get();
        let used = base.checked_add(blocks.used.get() as usize)?.checked_add(layout.align() - 1)?;
        let begin = (used & !(layout.align() - 1)) - base;
        let end = begin.checked_add(layout.size())?;
        if end > self.limit || end as u64 > blocks.limit.get() {
            return None;
        }
        blocks.used.set(end as u64);
        // SAFETY: `begin` is within the mapping.
        Some(unsafe { self.memory.data.add(begin) })
    }

    #[inline]
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        let begin = self.offset_of(block);
        if layout.size() != 0 && (begin + layout.size()) as u64 == self.blocks().used.get() {
            self.blocks().used.set(begin as u64);
        }
    }

    #[inline]
    unsafe fn try_expand(&self, block: NonNull<u8>, from: Layout, to: Layout) -> bool {
        let begin = self.offset_of(block);
        let Some(end) = begin.checked_add(to.size()) else { return false };
        let is_last = (begin + from.size()) as u64 == self.blocks().used.get();
        let fits = end <= self.limit && end as u64 <= self.blocks().limit.get();
        if from.size() != 0 && is_last && fits {
            self.blocks().used.set(end as u64);
        }
        from.size() != 0 && (to.size() <= from.size() || is_last && fits)
    }
}

// SAFETY: all blocks lie in the mapping, which belongs to this arena.
unsafe impl Owns for FileArena {
    fn owns(&self, p: *const u8) -> bool {
        p.addr().wrapping_sub(self.memory.data.addr().get()) < self.memory.bytes
    }
}

const _: () = assert!(size_of::<Blocks>() == 32 && PAGE_WORDS * 8 == PAGE_BYTES);

//! An arena in a file, which another process opens again tomorrow.

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

/// What may be done with the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileAccess {
    /// Read and write; a file that is missing or empty becomes a new arena.
    #[default]
    Create,
    /// Read and write; a file that is missing or empty is refused.
    Existing,
    /// Memory is read-only, and a write to it a SIGSEGV; any number of readers.
    Read,
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileOptions {
    /// What may be done with it.
    pub access: FileAccess,
    /// Address space, for this time; memory and disk are taken as they are used.
    pub max_bytes: usize,
    /// Map the file elsewhere when its own address is taken: then pointers in it are wrong, and
    /// only offsets are right. Else that is a refusal.
    pub relocate: bool,
    /// Read all of the file and compare its checksums.
    pub verify: bool,
    /// A commit is on the disk when it returns. Else it outlives the process alone: open the
    /// file with `verify` after a power failure.
    pub sync: bool,
}

impl Default for FileOptions {
    fn default() -> Self {
        let access = FileAccess::Create;
        Self { access, max_bytes: 1 << 34, relocate: false, verify: false, sync: true }
    }
}

/// What a file arena holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileStatistics {
    /// By blocks, the gaps between them and 64 of ours.
    pub bytes_used: usize,
    /// Whole pages that the file holds for sure.
    pub bytes_committed: usize,
    /// `bytes_used` never exceeds it.
    pub bytes_max: usize,
    /// Ever.
    pub commits: u64,
}

/// An arena whose contents are a file: closed here, opened there, nothing read or rebuilt in
/// between. Files are those of C++, `spec/file_arena.md`.
///
/// ```no_run
/// use mallard::{layout_hash, BlockAllocator, FileArena};
/// use std::alloc::Layout;
/// # fn main() -> Result<(), mallard::SystemError> {
/// // SAFETY: nobody else writes to this file.
/// let mut file = unsafe { FileArena::open("count.idx".as_ref(), &Default::default()) }?;
/// let (of, mark) = (Layout::new::<u64>(), layout_hash("count", Layout::new::<u64>()));
/// let count = file.root_or_allocate(of, mark)?.cast::<u64>(); // zeroed when it is new
/// // SAFETY: nothing else is of this mark, and nobody else has it.
/// unsafe { *count.as_ptr() += 1 };
/// file.commit()
/// # }
/// ```
///
/// The file holds what was last committed. Nothing the program writes reaches it before
/// `commit`, which is all or nothing: a process that is killed, a machine that loses power, a
/// disk that is full leave the last commit, whatever they interrupt. A file that is damaged,
/// cut off, of another program or another version is refused with what to do.
///
/// A file is mapped where it was when it was made, so pointers into itself stay right. Where
/// another mapping is in the way it is refused, or, if the options say so, `is_relocated`.
///
/// It gives blocks by moving a cursor, which is in the file too; `deallocate` takes back the
/// last block and otherwise does nothing. Fails when `max_bytes` are used. Blocks are what the
/// caller makes of them: a type with a pointer to anything but this file, a `String` say, is not
/// to be there. One writer at a time or several readers, by a lock on the file. One thread at a
/// time. `open` reads the checksums, 2 MiB for each GiB, and nothing else; `commit` writes new
/// pages once and changed ones twice. Linux on 64-bit machines, with the feature `std`.
#[derive(Debug)]
pub struct FileArena {
    pub(super) memory: Mapping,
    pub(super) file: File,
    pub(super) options: FileOptions,
    pub(super) state: State,
    pub(super) mapped: u64, // pages that are mapped from the file; anonymous beyond
    pub(super) step: Stage,
    pub(super) owner: u32, // process
    pub(super) limit: usize,
    pub(super) relocated: bool,
}

/// A commit that failed on its way is taken up by the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The file is as `state` says.
    Settled,
    /// The journal is whole; the first header may or may not say so.
    Decided,
    /// The first header is written; pages may still be in the journal alone.
    Published,
}

/// What page 0 begins with.
#[repr(C)]
pub(super) struct Blocks {
    pub(super) used: Cell<u64>, // offsets from here
    pub(super) limit: Cell<u64>,
    pub(super) root: Cell<u64>, // 0: none
    pub(super) root_mark: Cell<u64>,
}

pub(super) const FIRST_OFFSET: u64 = 64; // of the first block

/// What is compared when an object made by one program is found by another: the name of its
/// type, its size and its alignment. The same as `layout_hash<T>` in C++, where the name is
/// spelled with its namespace.
pub fn layout_hash(name: &str, layout: Layout) -> u64 {
    let text = ["T = ", name, "]"].concat();
    hash_number(layout.align() as u64, hash_number(layout.size() as u64, hash_text(&text)))
}

impl FileArena {
    /// Opens a file, or makes it. Refused: nothing is open, and the file is as it was.
    ///
    /// # Safety
    /// As long as it is open, nobody writes to the file, or cuts it off, but through a file
    /// arena.
    pub unsafe fn open(path: &Path, options: &FileOptions) -> Result<Self, SystemError> {
        let mut arena = Self::found_at(path, options)?;
        if options.verify {
            arena.verify()?;
        }
        Ok(arena)
    }

    /// Whether pointers that were stored in the file are wrong, this time.
    pub const fn is_relocated(&self) -> bool {
        self.relocated
    }

    /// The object that all others are found from, and that was marked so. `Ok(None)`: there is
    /// none. Refused: it has another mark.
    pub fn root(&self, mark: u64) -> Result<Option<NonNull<u8>>, SystemError> {
        let blocks = self.blocks();
        match blocks.root.get() {
            0 => Ok(None),
            _ if blocks.root_mark.get() != mark => Err(SystemError::new(
                "the root of a file arena is of another type",
                "open it with the program that made it, or reset() it",
            )),
            offset if offset >= blocks.used.get().min(self.memory.bytes as u64) => {
                Err(SystemError::new(
                    "the root of a file arena is not in it",
                    "a stray write has changed it: open the file again, or restore it from a copy",
                ))
            }
            // SAFETY: in use, hence within the mapping.
            offset => Ok(Some(unsafe { self.memory.data.add(offset as usize) })),
        }
    }

    /// Makes a block the root. Refused: there is one of another mark, or it is not in the file.
    pub fn set_root(&mut self, block: NonNull<u8>, mark: u64) -> Result<(), SystemError> {
        self.root(mark)?;
        if !self.writes() {
            return Err(SystemError::new("a file arena is open for reading", "open it otherwise"));
        }
        let offset = self.offset_of(block) as u64;
        if offset < FIRST_OFFSET || offset >= self.blocks().used.get() {
            return Err(SystemError::new("the root is not in the file", "allocate it there"));
        }
        self.blocks().root.set(offset);
        self.blocks().root_mark.set(mark);
        Ok(())
    }

    /// The root, or a block that becomes it: then its bytes are zero.
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
        // SAFETY: a fresh block.
        unsafe { made.write_bytes(0, layout.size()) };
        self.set_root(made, mark)?;
        Ok(made)
    }

    /// How far from the first byte of the contents a block is: the same each time.
    pub fn offset_of(&self, block: NonNull<u8>) -> usize {
        block.addr().get().wrapping_sub(self.memory.data.addr().get())
    }

    /// Frees everything, and forgets the root. The file learns of it by `commit`.
    pub fn reset(&mut self) {
        if self.writes() {
            self.blocks().used.set(FIRST_OFFSET);
            self.blocks().root.set(0);
        }
    }

    /// Reads all of the file and compares its checksums with those committed.
    pub fn verify(&mut self) -> Result<(), SystemError> {
        self.settle()?;
        match find_damaged(&self.file, 0, self.state.pages) {
            None => Ok(()),
            Some(_) => Err(SystemError::new(
                "a page of a file arena is damaged, or cannot be read",
                "restore the file from a copy",
            )),
        }
    }

    /// What is held.
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
        // SAFETY: page 0 begins with them, and nobody else is given that.
        unsafe { self.memory.data.cast().as_ref() }
    }

    pub(super) fn pages_used(&self) -> u64 {
        (self.blocks().used.get() as usize).min(self.limit).div_ceil(PAGE_BYTES) as u64
    }

    /// As it is in memory.
    pub(super) fn page(&self, number: u64) -> Words {
        // SAFETY: pages that are used are within the mapping.
        let at = unsafe { self.memory.data.add(number as usize * PAGE_BYTES) }.cast::<u64>();
        // SAFETY: the same. Volatile, since what the program has left of its objects there, the
        // gaps in them included, is bytes to the system and no object to the compiler.
        core::array::from_fn(|i| unsafe { at.add(i).read_volatile() })
    }
}

// SAFETY: a block lies between two positions of the cursor, in a mapping that stays where it is
// when this object moves.
unsafe impl BlockAllocator for FileArena {
    #[inline]
    fn try_allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        if layout.size() == 0 {
            return Some(dangling(layout));
        }
        let blocks = self.blocks();
        // The address is aligned, not the offset; and a cursor that was overwritten is no way out
        // of the mapping.
        let base = self.memory.data.addr().get();
        let used = base.checked_add(blocks.used.get() as usize)?.checked_add(layout.align() - 1)?;
        let begin = (used & !(layout.align() - 1)) - base;
        let end = begin.checked_add(layout.size())?;
        if end > self.limit || end as u64 > blocks.limit.get() {
            return None;
        }
        blocks.used.set(end as u64);
        // SAFETY: within the mapping.
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

// SAFETY: its blocks lie in its mapping, where nothing else is.
unsafe impl Owns for FileArena {
    fn owns(&self, p: *const u8) -> bool {
        p.addr().wrapping_sub(self.memory.data.addr().get()) < self.memory.bytes
    }
}

const _: () = assert!(size_of::<Blocks>() == 32 && PAGE_WORDS * 8 == PAGE_BYTES);

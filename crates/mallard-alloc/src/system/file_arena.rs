//! An arena in a file, which another process opens again tomorrow.

use super::file_format::{data_place, extent_end, file_end, hash_number, hash_text, State, Words};
use super::file_format::{NO_ARENA, PAGE_WORDS};
use super::file_store::*;
use super::{flock, Mapping, Refusal, HUGE_PAGE_BYTES, MAP_FIXED_NOREPLACE, MAP_NORESERVE};
use super::{MAP_PRIVATE, PAGE_BYTES, PROT_BOTH, PROT_READ};
use crate::bits::{align_up, dangling};
use crate::{BlockAllocator, Owning};
use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::{without_provenance_mut, NonNull};
use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt;
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
/// # fn main() -> Result<(), mallard::Refusal> {
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
    limit: usize,
    relocated: bool,
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
struct Blocks {
    used: Cell<u64>, // offsets from here
    limit: Cell<u64>,
    root: Cell<u64>, // 0: none
    root_mark: Cell<u64>,
}

const FIRST_OFFSET: u64 = 64; // of the first block
const BYTES_MAX: usize = 1 << 47; // more than there is, less than overflows

pub(super) const REFUSED: &str = "a file arena was refused";

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
    pub unsafe fn open(path: &Path, options: &FileOptions) -> Result<Self, Refusal> {
        let file = open_file(path, options.access)?;
        let (state, is_new) = load(&file, options)?;
        let mut arena = Self::place(file, state, is_new, options)?;
        arena.map_committed().map_err(unmappable)?;
        arena.enter_blocks()?;
        arena.write_missing_headers(path)?;
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
    pub fn root(&self, mark: u64) -> Result<Option<NonNull<u8>>, Refusal> {
        let blocks = self.blocks();
        match blocks.root.get() {
            0 => Ok(None),
            _ if blocks.root_mark.get() != mark => Err(Refusal::new(
                "the root of a file arena is of another type",
                "open it with the program that made it, or reset() it",
            )),
            offset if offset >= blocks.used.get().min(self.memory.bytes as u64) => {
                Err(Refusal::new(
                    "the root of a file arena is not in it",
                    "a stray write has changed it: open the file again, or restore it from a copy",
                ))
            }
            // SAFETY: in use, hence within the mapping.
            offset => Ok(Some(unsafe { self.memory.data.add(offset as usize) })),
        }
    }

    /// Makes a block the root. Refused: there is one of another mark, or it is not in the file.
    pub fn set_root(&mut self, block: NonNull<u8>, mark: u64) -> Result<(), Refusal> {
        self.root(mark)?;
        if !self.writes() {
            return Err(Refusal::new("a file arena is open for reading", "open it otherwise"));
        }
        let offset = self.offset_of(block) as u64;
        if offset < FIRST_OFFSET || offset >= self.blocks().used.get() {
            return Err(Refusal::new("the root is not in the file", "allocate it there"));
        }
        self.blocks().root.set(offset);
        self.blocks().root_mark.set(mark);
        Ok(())
    }

    /// The root, or a block that becomes it: then its bytes are zero.
    pub fn root_or_allocate(&mut self, layout: Layout, mark: u64) -> Result<NonNull<u8>, Refusal> {
        if let Some(found) = self.root(mark)? {
            return Ok(found);
        }
        let room = Layout::from_size_align(layout.size().max(1), layout.align());
        let made = room.ok().and_then(|room| self.try_allocate(room)).ok_or_else(|| {
            Refusal::new("no room for a root", "open a file for writing, or raise max_bytes")
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
    pub fn verify(&mut self) -> Result<(), Refusal> {
        self.settle()?;
        match find_damaged(&self.file, 0, self.state.pages) {
            None => Ok(()),
            Some(_) => Err(Refusal::new(
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

    fn blocks(&self) -> &Blocks {
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

    /// The address space: where the file was made, or anywhere if it is new or may be moved.
    fn place(
        file: File,
        mut state: State,
        is_new: bool,
        options: &FileOptions,
    ) -> Result<Self, Refusal> {
        let writes = options.access != FileAccess::Read;
        let asked = if writes { options.max_bytes.min(BYTES_MAX) } else { 0 };
        let least = (state.pages.max(1) as usize).saturating_mul(PAGE_BYTES);
        let limit = align_up(asked.max(least), PAGE_BYTES);
        let home = if is_new { unlikely_address() } else { state.home as usize };
        let mut relocated = false;
        let memory = match map_at(home, limit) {
            Ok(memory) => memory,
            Err(error) if !is_new && !options.relocate => {
                let help = "open it before others, lower max_bytes, or set relocate if it has \
                            no pointers";
                return Err(Refusal::because(error, "no room at the address of a file", help));
            }
            Err(_) => {
                relocated = !is_new;
                let mapped = Mapping::aligned(limit, HUGE_PAGE_BYTES, PROT_BOTH, MAP_NORESERVE);
                mapped
                    .map_err(|e| Refusal::because(e, REFUSED, "lower max_bytes, see `ulimit -v`"))?
            }
        };
        if is_new {
            state.home = memory.data.addr().get() as u64;
        }
        let (mapped, step, owner) = (0, Stage::Settled, std::process::id());
        let options = *options;
        Ok(Self { memory, file, options, state, mapped, step, owner, limit, relocated })
    }

    /// The committed pages, an extent at a time. What was mapped there before is gone.
    pub(super) fn map_committed(&mut self) -> io::Result<()> {
        while self.mapped < self.state.pages {
            let end = self.state.pages.min(extent_end(self.mapped));
            let offset = self.mapped as usize * PAGE_BYTES;
            let bytes = (end - self.mapped) as usize * PAGE_BYTES;
            let from = data_place(self.mapped) * PAGE_BYTES as u64;
            let flags = MAP_PRIVATE | MAP_NORESERVE;
            // SAFETY: what is there is as in the file: nothing yet, or just committed.
            unsafe { self.memory.map(offset, bytes, flags, Some(self.file.as_fd()), from) }?;
            self.mapped = end;
        }
        Ok(())
    }

    /// Page 0 begins with the cursor. Readers have no room, and then no way to write.
    fn enter_blocks(&mut self) -> Result<(), Refusal> {
        if self.state.pages == 0 {
            let [limit, root, root_mark] = [const { Cell::new(0) }; 3];
            let blocks = Blocks { used: Cell::new(FIRST_OFFSET), limit, root, root_mark };
            // SAFETY: the first page, which is memory of this process.
            unsafe { self.memory.data.cast::<Blocks>().write(blocks) };
        }
        let limit = if self.writes() { self.limit as u64 } else { 0 };
        if self.blocks().limit.get() != limit {
            self.blocks().limit.set(limit); // else the page stays as it is in the file
        }
        if self.writes() {
            return Ok(());
        }
        self.memory.protect(0, self.memory.bytes, PROT_READ).map_err(unmappable)
    }

    /// Of a new file both, else what a crash or a bad sector left us without.
    fn write_missing_headers(&mut self, path: &Path) -> Result<(), Refusal> {
        if !self.writes() {
            return Ok(());
        }
        let header = self.state.to_header();
        for copy in 0..2 {
            if read_header(&self.file, copy) != header {
                let written = write_pages(&self.file, &[header], copy);
                written.map_err(|e| Refusal::because(e, REFUSED, "make room on the disk"))?;
            }
        }
        self.cut_off();
        if self.state.sequence == 0 && self.options.sync {
            let synced = self.file.sync_all();
            synced.map_err(|e| Refusal::because(e, REFUSED, "see `dmesg`"))?;
            // A new name is on the disk when its folder is. Where that cannot be said, it is
            // left to the system.
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let _ = File::open(folder.unwrap_or(".".as_ref())).and_then(|f| f.sync_all());
        }
        Ok(())
    }

    /// What is behind the last page: journals, and pages that were never committed.
    pub(super) fn cut_off(&self) {
        if self.mapped <= self.state.pages {
            let end = file_end(self.state.pages) * PAGE_BYTES as u64;
            let _ = self.file.set_len(end); // or the next time
        }
    }
}

fn unmappable(error: io::Error) -> Refusal {
    Refusal::because(error, "a file cannot be mapped", "see /proc/sys/vm/max_map_count")
}

fn open_file(path: &Path, access: FileAccess) -> Result<File, Refusal> {
    const O_NONBLOCK: i32 = 0o4000; // else a named pipe would wait for its other end
    let writes = access != FileAccess::Read;
    let file = OpenOptions::new()
        .read(true)
        .write(writes)
        .create(access == FileAccess::Create)
        .truncate(false)
        .custom_flags(O_NONBLOCK)
        .open(path)
        .map_err(|e| Refusal::because(e, REFUSED, "check the path and `ls -l`"))?;
    if !file.metadata().is_ok_and(|m| m.is_file()) {
        return Err(Refusal::new(REFUSED, "the path is not that of a regular file: name another"));
    }
    let (shared, exclusive, at_once) = (1, 2, 4);
    let operation = at_once | if writes { exclusive } else { shared };
    // SAFETY: a descriptor that is open.
    super::done(unsafe { flock(file.as_raw_fd(), operation) }).map_err(|e| {
        let help = match (e.kind(), writes) {
            (io::ErrorKind::WouldBlock, true) => {
                "it is open elsewhere, and a writer must be alone: see `fuser FILE`"
            }
            (io::ErrorKind::WouldBlock, false) => {
                "it is open for writing elsewhere: see `fuser FILE`"
            }
            _ => "this file system cannot lock files: put the file on another",
        };
        Refusal::because(e, REFUSED, help)
    })?;
    Ok(file)
}

/// Makes sure that the file is what its header says, and whether it is new. What a crash left
/// undone is done first.
fn load(file: &File, options: &FileOptions) -> Result<(State, bool), Refusal> {
    let unreadable = |e| Refusal::because(e, REFUSED, "it cannot be read: see `dmesg`");
    let refuse = |help| Err(Refusal::new(REFUSED, help));
    let bytes = file.metadata().map_err(unreadable)?.len();
    if bytes == 0 && options.access == FileAccess::Create {
        return Ok((State::default(), true));
    }
    if bytes == 0 {
        return refuse("it is empty: open it with FileAccess::Create");
    }
    let state = match choose_header(file) {
        Ok(state) => state,
        Err(help) => return refuse(help),
    };
    let pages_max = BYTES_MAX as u64 / PAGE_BYTES as u64;
    if state.pages > pages_max || bytes / (PAGE_BYTES as u64) < file_end(state.pages) {
        return refuse("it is cut off: restore it from a copy");
    }
    recover(file, &state, options)?;
    let digest = digest_of(file, 0, state.pages).map_err(unreadable)?;
    // All checksums and the first page: the rest is read by `verify`.
    if digest != state.digest || find_damaged(file, 0, state.pages.min(1)).is_some() {
        return refuse("it is damaged: restore it from a copy");
    }
    Ok((state, false))
}

/// The newer of the two, if both are good.
fn choose_header(file: &File) -> Result<State, &'static str> {
    match [0, 1].map(|copy| State::of_header(&read_header(file, copy))) {
        [Ok(first), Ok(second)] if second.sequence > first.sequence => Ok(second),
        [Ok(state), _] | [_, Ok(state)] => Ok(state),
        [Err(NO_ARENA), Err(fault)] | [Err(fault), _] => Err(fault),
    }
}

/// Both headers say the same when a commit has ended. Until then its journal is there. When it
/// is not there, or another's, all of it was copied, or the digest will tell.
fn recover(file: &File, state: &State, options: &FileOptions) -> Result<(), Refusal> {
    let same = read_header(file, 0) == read_header(file, 1);
    if state.journal_pages == 0 || same || !journal_is_whole(file, state) {
        return Ok(());
    }
    const WHAT: &str = "the last commit of a file arena was interrupted";
    if options.access == FileAccess::Read {
        return Err(Refusal::new(WHAT, "open the file once for writing"));
    }
    let applied = apply_journal(file, state);
    let synced = applied.and_then(|()| if options.sync { file.sync_data() } else { Ok(()) });
    synced.map_err(|e| Refusal::because(e, WHAT, "make room on the disk"))
}

/// Fails when something is there. Kernels before 4.17 map elsewhere then.
fn map_at(home: usize, bytes: usize) -> io::Result<Mapping> {
    let flags = MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    let mapped = Mapping::at(without_provenance_mut(home), bytes, PROT_BOTH, flags)?;
    if mapped.data.addr().get() == home {
        Ok(mapped)
    } else {
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

/// Between what the system maps low and what it maps high: 48 TiB where a program on x86-64 has
/// nothing of its own.
fn unlikely_address() -> usize {
    let random = std::hash::RandomState::new().build_hasher().finish() as usize;
    0x2000_0000_0000 + random % 0xc000 * (1 << 30)
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

impl Owning for FileArena {
    fn owns(&self, p: *const u8) -> bool {
        p.addr().wrapping_sub(self.memory.data.addr().get()) < self.memory.bytes
    }
}

const _: () = assert!(size_of::<Blocks>() == 32 && PAGE_WORDS * 8 == PAGE_BYTES);

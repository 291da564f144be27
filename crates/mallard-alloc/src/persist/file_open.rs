//! Opening a file arena. The file is found, locked, checked and mapped.

use super::file_arena::{Blocks, FileAccess, FileArena, FileOptions, Stage, FIRST_OFFSET};
use super::file_format::{data_place, extent_end, file_end, State, NO_ARENA};
use super::file_store::*;
use crate::base::bits::align_up;
use crate::os::{flock, Mapping, SystemError, HUGE_PAGE_BYTES, MAP_FIXED_NOREPLACE, MAP_NORESERVE};
use crate::os::{MAP_PRIVATE, PAGE_BYTES, PROT_BOTH, PROT_READ};
use core::cell::Cell;
use core::ptr::without_provenance_mut;
use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

const BYTES_MAX: usize = 1 << 47; // larger than any file, and too small to overflow
const NOT_OPENED: &str = "a file arena cannot be opened";

impl FileArena {
    pub(super) fn found_at(path: &Path, options: &FileOptions) -> Result<Self, SystemError> {
        let file = open_file(path, options.access)?;
        let (state, is_new) = load(&file, options)?;
        let mut arena = Self::place(file, state, is_new, options)?;
        arena.map_committed().map_err(unmappable)?;
        arena.enter_blocks()?;
        arena.write_missing_headers(path)?;
        Ok(arena)
    }

    /// Reserves address space at the address where the file was created, or anywhere if the file is
    /// new or may be relocated.
    fn place(
        file: File,
        mut state: State,
        is_new: bool,
        options: &FileOptions,
    ) -> Result<Self, SystemError> {
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
                return Err(SystemError::because(
                    error,
                    "another mapping is at the address of a file arena",
                    help,
                ));
            }
            Err(_) => {
                relocated = !is_new;
                let mapped = Mapping::aligned(limit, HUGE_PAGE_BYTES, PROT_BOTH, MAP_NORESERVE);
                mapped.map_err(|e| {
                    SystemError::because(e, NOT_OPENED, "lower max_bytes, see `ulimit -v`")
                })?
            }
        };
        if is_new {
            state.home = memory.data.addr().get() as u64;
        }
        let (mapped, step, owner) = (0, Stage::Settled, std::process::id());
        let options = *options;
        Ok(Self { memory, file, options, state, mapped, step, owner, limit, relocated })
    }

    /// Maps the committed pages, one extent at a time, over the memory that was mapped at their
    /// places.
    pub(super) fn map_committed(&mut self) -> io::Result<()> {
        while self.mapped < self.state.pages {
            let end = self.state.pages.min(extent_end(self.mapped));
            let offset = self.mapped as usize * PAGE_BYTES;
            let bytes = (end - self.mapped) as usize * PAGE_BYTES;
            let from = data_place(self.mapped) * PAGE_BYTES as u64;
            let flags = MAP_PRIVATE | MAP_NORESERVE;
            // SAFETY: the replaced memory is unused, or has the same content as the pages just
            // committed.
            unsafe { self.memory.map(offset, bytes, flags, Some(self.file.as_fd()), from) }?;
            self.mapped = end;
        }
        Ok(())
    }

    /// Prepares the cursor at the start of page 0. For a reader, the arena is full and read-only.
    fn enter_blocks(&mut self) -> Result<(), SystemError> {
        if self.state.pages == 0 {
            let [limit, root, root_mark] = [const { Cell::new(0) }; 3];
            let blocks = Blocks { used: Cell::new(FIRST_OFFSET), limit, root, root_mark };
            // SAFETY: page 0 is private memory of this process, and large enough for a `Blocks`.
            unsafe { self.memory.data.cast::<Blocks>().write(blocks) };
        }
        let limit = if self.writes() { self.limit as u64 } else { 0 };
        if self.blocks().limit.get() != limit {
            self.blocks().limit.set(limit); // an unnecessary write would make the page dirty
        }
        if self.writes() {
            return Ok(());
        }
        self.memory.protect(0, self.memory.bytes, PROT_READ).map_err(unmappable)
    }

    /// Writes both headers of a new file, or rewrites the header that a crash or a bad sector
    /// destroyed.
    fn write_missing_headers(&mut self, path: &Path) -> Result<(), SystemError> {
        if !self.writes() {
            return Ok(());
        }
        let header = self.state.to_header();
        for copy in 0..2 {
            if read_header(&self.file, copy) != header {
                let written = write_pages(&self.file, &[header], copy);
                written
                    .map_err(|e| SystemError::because(e, NOT_OPENED, "make room on the disk"))?;
            }
        }
        self.cut_off();
        if self.state.sequence == 0 && self.options.sync {
            let synced = self.file.sync_all();
            synced.map_err(|e| SystemError::because(e, NOT_OPENED, "see `dmesg`"))?;
            // The name of a new file is on the disk after its directory was synced. If the
            // directory cannot be synced, the system writes the name later.
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let _ = File::open(folder.unwrap_or(".".as_ref())).and_then(|f| f.sync_all());
        }
        Ok(())
    }

    /// Truncates the file after the last committed page. The rest of the file contains only
    /// journals and uncommitted pages.
    pub(super) fn cut_off(&self) {
        if self.mapped <= self.state.pages {
            let end = file_end(self.state.pages) * PAGE_BYTES as u64;
            let _ = self.file.set_len(end); // after an error, the next call tries again
        }
    }
}

fn unmappable(error: io::Error) -> SystemError {
    SystemError::because(error, "a file cannot be mapped", "see /proc/sys/vm/max_map_count")
}

fn open_file(path: &Path, access: FileAccess) -> Result<File, SystemError> {
    const O_NONBLOCK: i32 = 0o4000; // otherwise opening a named pipe would wait
    let writes = access != FileAccess::Read;
    let file = OpenOptions::new()
        .read(true)
        .write(writes)
        .create(access == FileAccess::Create)
        .truncate(false)
        .custom_flags(O_NONBLOCK)
        .open(path)
        .map_err(|e| SystemError::because(e, NOT_OPENED, "check the path and `ls -l`"))?;
    if !file.metadata().is_ok_and(|m| m.is_file()) {
        return Err(SystemError::new(
            NOT_OPENED,
            "the path is not that of a regular file: use another path",
        ));
    }
    let (shared, exclusive, at_once) = (1, 2, 4);
    let operation = at_once | if writes { exclusive } else { shared };
    // SAFETY: the descriptor is open.
    crate::os::done(unsafe { flock(file.as_raw_fd(), operation) }).map_err(|e| {
        let help = match (e.kind(), writes) {
            (io::ErrorKind::WouldBlock, true) => {
                "it is already open, and a writer needs it exclusively: see `fuser FILE`"
            }
            (io::ErrorKind::WouldBlock, false) => {
                "it is already open for writing: see `fuser FILE`"
            }
            _ => "this file system cannot lock files: put the file on another file system",
        };
        SystemError::because(e, NOT_OPENED, help)
    })?;
    Ok(file)
}

/// Finishes a commit that a crash interrupted, and checks the file against its header. Returns whether
/// the file is new.
fn load(file: &File, options: &FileOptions) -> Result<(State, bool), SystemError> {
    let unreadable = |e| SystemError::because(e, NOT_OPENED, "it cannot be read: see `dmesg`");
    let fail = |help| Err(SystemError::new(NOT_OPENED, help));
    let bytes = file.metadata().map_err(unreadable)?.len();
    if bytes == 0 && options.access == FileAccess::Create {
        return Ok((State::default(), true));
    }
    if bytes == 0 {
        return fail("it is empty: open it with FileAccess::Create");
    }
    let state = match choose_header(file) {
        Ok(state) => state,
        Err(help) => return fail(help),
    };
    let pages_max = BYTES_MAX as u64 / PAGE_BYTES as u64;
    if state.pages > pages_max || bytes / (PAGE_BYTES as u64) < file_end(state.pages) {
        return fail("it is truncated: restore it from a copy");
    }
    recover(file, &state, options)?;
    let digest = digest_of(file, 0, state.pages).map_err(unreadable)?;
    // Compares the sum of all checksums with the digest, and checks the content of the first page.
    // `verify` reads the other pages.
    if digest != state.digest || find_damaged(file, 0, state.pages.min(1)).is_some() {
        return fail("it is corrupt: restore it from a copy");
    }
    Ok((state, false))
}

/// Returns the valid header. If both headers are valid, returns the newer header.
fn choose_header(file: &File) -> Result<State, &'static str> {
    match [0, 1].map(|copy| State::of_header(&read_header(file, copy))) {
        [Ok(first), Ok(second)] if second.sequence > first.sequence => Ok(second),
        [Ok(state), _] | [_, Ok(state)] => Ok(state),
        [Err(NO_ARENA), Err(fault)] | [Err(fault), _] => Err(fault),
    }
}

/// Applies the journal of an interrupted commit. After a complete commit, both headers are equal
/// and nothing is done. The file may have no journal, or the journal of another commit. Then either
/// all pages were copied already, or the digest shows that some pages are missing.
fn recover(file: &File, state: &State, options: &FileOptions) -> Result<(), SystemError> {
    let same = read_header(file, 0) == read_header(file, 1);
    if state.journal_pages == 0 || same || !journal_is_whole(file, state) {
        return Ok(());
    }
    const WHAT: &str = "the last commit of a file arena was interrupted";
    if options.access == FileAccess::Read {
        return Err(SystemError::new(WHAT, "open the file once for writing"));
    }
    let applied = apply_journal(file, state);
    let synced = applied.and_then(|()| if options.sync { file.sync_data() } else { Ok(()) });
    synced.map_err(|e| SystemError::because(e, WHAT, "make room on the disk"))
}

/// Maps memory at an address, and fails if another mapping is there. A kernel before 4.17 maps the
/// memory elsewhere instead. Then this function unmaps the memory and fails.
fn map_at(home: usize, bytes: usize) -> io::Result<Mapping> {
    let flags = MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    let mapped = Mapping::at(without_provenance_mut(home), bytes, PROT_BOTH, flags)?;
    if mapped.data.addr().get() == home {
        Ok(mapped)
    } else {
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

/// Returns a random address in a range of 48 TiB between the low and the high mappings of the
/// system. A program on x86-64 usually has no mappings in this range.
fn unlikely_address() -> usize {
    let random = std::hash::RandomState::new().build_hasher().finish() as usize;
    0x2000_0000_0000 + random % 0xc000 * (1 << 30)
}

//! Commits of a file arena. A commit finds the changed pages, writes them next to the old pages,
//! makes the new pages valid by one header, and copies them to their places.
//!
//! ```text
//!     prepare   writes new pages at the end of the file, and changed pages to a journal behind them
//!     publish   writes the first header: from here on the commit is done, even if the process ends
//!     apply     copies the pages of the journal to their places
//!     settle    writes the second header: the journal is not needed any more
//!     let go    frees copies in memory, and the journal
//! ```
//!
//! Each step is on the disk before the next step begins, except for the last two steps.

use super::file_arena::{FileArena, Stage};
use super::file_format::*;
use super::file_store::*;
use crate::os::{SystemError, MADV_DONTNEED, MAP_NORESERVE, MAP_PRIVATE, PAGE_BYTES};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

const NOT_COMMITTED: &str = "a file arena was not committed";

impl FileArena {
    /// Writes the state of the memory to the file. If the commit fails, the file keeps the last
    /// commit and the memory is unchanged. A later commit may succeed, for example after making
    /// room on a full disk. O(pages used).
    pub fn commit(&mut self) -> Result<(), SystemError> {
        if !self.writes() {
            return Err(SystemError::new(
                NOT_COMMITTED,
                "it is open for reading: open it for writing",
            ));
        }
        if self.owner != std::process::id() {
            return Err(SystemError::new(
                NOT_COMMITTED,
                "it was opened before a fork: commit in the parent",
            ));
        }
        self.settle()?;
        let next = match self.prepare() {
            Ok(next) => next,
            Err(error) => {
                self.cut_off();
                return Err(not_written(error));
            }
        };
        if next.sequence == self.state.sequence {
            return Ok(());
        }
        self.state = next;
        self.step = Stage::Decided;
        match self.settle() {
            Ok(()) => {
                self.let_go();
                Ok(())
            }
            // The commit is valid. The next call copies the pages that are still in the journal.
            Err(_) if self.step != Stage::Decided => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Writes the changed pages and their checksums to parts of the file that no header refers to
    /// yet, and returns the content of the next header. If nothing has changed, the returned header
    /// is the present header.
    fn prepare(&self) -> io::Result<State> {
        let old = self.state;
        let mut next = old;
        next.pages = self.pages_used();
        next.journal_begin = file_end(old.pages.max(next.pages));
        next.journal_pages = 0;
        next.sequence = old.sequence + 1;
        next.journal_check = next.sequence;
        if next.pages < old.pages {
            let gone = digest_of(&self.file, next.pages, old.pages)?;
            next.digest = next.digest.wrapping_sub(gone);
        }
        let map = File::open("/proc/self/pagemap").ok();
        let kept = old.pages.min(next.pages);
        for first in (0..next.pages).step_by(GROUP_PAGES as usize) {
            let mut group = Group::new(first);
            let count = kept.clamp(first, first + GROUP_PAGES) - first;
            if !map.as_ref().is_some_and(|map| self.find_written(map, &mut group, count)) {
                self.compare(&mut group, count)?;
            }
            self.store(&mut group, &mut next, first + count)?;
        }
        if next.pages == old.pages && next.journal_pages == 0 {
            return Ok(old);
        }
        self.sync()?;
        Ok(next)
    }

    /// Finds the pages of the private mapping that were written. Linux reports such pages as
    /// anonymous, whether they are in memory or swapped out. Returns `false` if this system does
    /// not report them.
    fn find_written(&self, map: &File, group: &mut Group, count: u64) -> bool {
        const PRESENT_OR_SWAPPED: u64 = 3 << 62;
        const OF_FILE: u64 = 1 << 61;
        let mut entries = [[0; PAGE_WORDS]];
        let first = self.memory.data.addr().get() / PAGE_BYTES + group.first() as usize;
        let bytes = &mut as_bytes_mut(&mut entries)[..count as usize * 8];
        if map.read_exact_at(bytes, first as u64 * 8).is_err() {
            return false;
        }
        for (page, entry) in entries[0].iter().take(count as usize).enumerate() {
            if entry & PRESENT_OR_SWAPPED != 0 && entry & OF_FILE == 0 {
                group.set_changed(page);
            }
        }
        true
    }

    /// Finds changed pages by their checksums, on systems that do not report which pages were written.
    fn compare(&self, group: &mut Group, count: u64) -> io::Result<()> {
        if count != 0 {
            read_checksums(&self.file, group)?;
        }
        for page in 0..count {
            let number = group.first() + page;
            let now = checksum(number, self.page(number).into_iter());
            if now != group.checksums()[page as usize] {
                group.set_changed(page as usize);
            }
        }
        Ok(())
    }

    /// Writes the new pages (from page `fresh` on) to their places. Changed older pages go to the
    /// journal, together with all checksums of the group.
    fn store(&self, group: &mut Group, next: &mut State, fresh: u64) -> io::Result<()> {
        let end = next.pages.min(group.first() + GROUP_PAGES);
        let is_old = group.first() < self.state.pages;
        if group.changed().next().is_none() && fresh == end {
            return Ok(());
        }
        if is_old {
            read_checksums(&self.file, group)?;
        }
        for number in group.first()..end {
            let i = (number - group.first()) as usize;
            if number < fresh && !group.has_changed(i) {
                continue;
            }
            if number < fresh {
                let before = digest_part(number, group.checksums()[i]);
                next.digest = next.digest.wrapping_sub(before);
            }
            let page = self.page(number);
            let check = checksum(number, page.into_iter());
            group.checksums_mut()[i] = check;
            next.digest = next.digest.wrapping_add(digest_part(number, check));
            if number >= fresh {
                write_pages(&self.file, &[page], data_place(number))?;
            }
        }
        if is_old {
            return append_record(&self.file, group, |number| self.page(number), next);
        }
        write_pages(&self.file, &group.record[1..], checksums_place(group.first() / GROUP_PAGES))
    }

    /// Finishes a commit whose pages are all in the file. After an error, a second call of `settle`
    /// tries again, and so does the next commit.
    pub(super) fn settle(&mut self) -> Result<(), SystemError> {
        let header = self.state.to_header();
        if self.step == Stage::Decided {
            write_pages(&self.file, &[header], 0).map_err(not_written)?;
            self.sync().map_err(not_written)?;
            self.step = Stage::Published;
        }
        if self.step == Stage::Published {
            if self.state.journal_pages != 0 {
                apply_journal(&self.file, &self.state).map_err(not_written)?;
                self.sync().map_err(not_written)?;
            }
            write_pages(&self.file, &[header], 1).map_err(not_written)?;
            self.step = Stage::Settled;
        }
        Ok(())
    }

    /// Frees private copies of committed pages, because the file has these pages now. If the system
    /// cannot free them, the copies stay, and the next commit writes some pages that have not
    /// changed.
    fn let_go(&mut self) {
        let _ = for_each_record(&self.file, &self.state, |group, _| {
            for page in group.changed() {
                let offset = (group.first() as usize + page) * PAGE_BYTES;
                // SAFETY: the next access reads the page from the file, which has the same content.
                let _ = unsafe { self.memory.advise(offset, PAGE_BYTES, MADV_DONTNEED) };
            }
            Ok(true)
        });
        let pages = self.state.pages;
        if pages < self.mapped {
            // The pages are unmapped before the file is truncated, because an access to a mapping
            // beyond the end of a file raises SIGBUS.
            let offset = pages as usize * PAGE_BYTES;
            let bytes = (self.mapped - pages) as usize * PAGE_BYTES;
            let flags = MAP_PRIVATE | MAP_NORESERVE;
            // SAFETY: no block in use lies in this range.
            if unsafe { self.memory.map(offset, bytes, flags, None, 0) }.is_ok() {
                self.mapped = pages;
            }
        }
        let _ = self.map_committed();
        self.cut_off();
    }

    fn sync(&self) -> io::Result<()> {
        if self.options.sync {
            self.file.sync_data()
        } else {
            Ok(())
        }
    }
}

fn not_written(error: io::Error) -> SystemError {
    let help = match error.kind() {
        io::ErrorKind::StorageFull => "make room on the disk and commit again",
        io::ErrorKind::QuotaExceeded => "free some of the quota and commit again",
        io::ErrorKind::FileTooLarge => "see `ulimit -f`, and commit again",
        _ => "see `dmesg`, and commit again",
    };
    SystemError::because(error, NOT_COMMITTED, help)
}

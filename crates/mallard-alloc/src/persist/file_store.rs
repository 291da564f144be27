//! Reads and writes the parts of a file that spec/file_arena.md describes.

use super::file_format::*;
use crate::os::PAGE_BYTES;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

fn offset(place: u64) -> u64 {
    place * PAGE_BYTES as u64
}

pub(super) fn read_pages(file: &File, to: &mut [Words], place: u64) -> io::Result<()> {
    file.read_exact_at(as_bytes_mut(to), offset(place))
}
pub(super) fn write_pages(file: &File, from: &[Words], place: u64) -> io::Result<()> {
    file.write_all_at(as_bytes(from), offset(place))
}

/// Reads a header. Returns zeros if the file is too short or cannot be read.
pub(super) fn read_header(file: &File, copy: u64) -> Words {
    let mut page = [[0; PAGE_WORDS]];
    match read_pages(file, &mut page, copy) {
        Ok(()) => page[0],
        Err(_) => [0; PAGE_WORDS],
    }
}

pub(super) fn read_checksums(file: &File, group: &mut Group) -> io::Result<()> {
    let place = checksums_place(group.first() / GROUP_PAGES);
    read_pages(file, &mut group.record[1..], place)
}

/// Calls `f(page, checksum)` for the pages `from..to`, until `f` returns `false`.
fn for_each_checksum(
    file: &File,
    from: u64,
    to: u64,
    mut f: impl FnMut(u64, u64) -> io::Result<bool>,
) -> io::Result<()> {
    let mut page = from;
    while page < to {
        let mut group = Group::new(page / GROUP_PAGES * GROUP_PAGES);
        read_checksums(file, &mut group)?;
        for number in page..to.min(group.first() + GROUP_PAGES) {
            if !f(number, group.checksums()[(number - group.first()) as usize])? {
                return Ok(());
            }
        }
        page = group.first() + GROUP_PAGES;
    }
    Ok(())
}

/// Returns the first of the pages `from..to` that differs from its checksum or cannot be read.
pub(super) fn find_damaged(file: &File, from: u64, to: u64) -> Option<u64> {
    let mut at = from;
    let read = for_each_checksum(file, from, to, |number, check| {
        at = number;
        let mut page = [[0; PAGE_WORDS]];
        read_pages(file, &mut page, data_place(number))?;
        if checksum(number, page[0].into_iter()) != check {
            return Ok(false);
        }
        at = number + 1;
        Ok(true)
    });
    (read.is_err() || at != to).then_some(at)
}

/// Returns the contribution of the pages `from..to` to the digest.
pub(super) fn digest_of(file: &File, from: u64, to: u64) -> io::Result<u64> {
    let mut digest = 0_u64;
    for_each_checksum(file, from, to, |number, check| {
        digest = digest.wrapping_add(digest_part(number, check));
        Ok(true)
    })?;
    Ok(digest)
}

/// Calls `f(group, place of its first changed page)` for each record of the journal. Returns
/// `false` if the journal does not end where it should, or if `f` returned `false`.
pub(super) fn for_each_record(
    file: &File,
    state: &State,
    mut f: impl FnMut(&Group, u64) -> io::Result<bool>,
) -> io::Result<bool> {
    let mut at = 0;
    while at < state.journal_pages {
        let mut group = Group::new(0);
        read_pages(file, &mut group.record, state.journal_begin + at)?;
        if !f(&group, state.journal_begin + at + RECORD_PAGES)? {
            return Ok(false);
        }
        at += RECORD_PAGES + group.changed().count() as u64;
    }
    Ok(at == state.journal_pages)
}

/// Appends a record to the journal. `page` returns the content of a page of the group.
pub(super) fn append_record(
    file: &File,
    group: &Group,
    mut page: impl FnMut(u64) -> Words,
    state: &mut State,
) -> io::Result<()> {
    let mut place = state.journal_begin + state.journal_pages;
    write_pages(file, &group.record, place)?;
    place += RECORD_PAGES;
    for changed in group.changed() {
        write_pages(file, &[page(group.first() + changed as u64)], place)?;
        place += 1;
    }
    state.journal_pages = place - state.journal_begin;
    state.journal_check = group.checked(state.journal_check);
    Ok(())
}

/// Returns whether the journal is unchanged since the header was written.
pub(super) fn journal_is_whole(file: &File, state: &State) -> bool {
    let mut check = state.sequence;
    let whole = for_each_record(file, state, |group, mut place| {
        check = group.checked(check);
        for changed in group.changed() {
            let mut page = [[0; PAGE_WORDS]];
            read_pages(file, &mut page, place)?;
            let number = group.first().wrapping_add(changed as u64);
            if checksum(number, page[0].into_iter()) != group.checksums()[changed] {
                return Ok(false);
            }
            place += 1;
        }
        Ok(true)
    });
    whole.unwrap_or(false) && check == state.journal_check
}

/// Copies the pages of the journal to their places. A second call before the next commit has the
/// same effect.
pub(super) fn apply_journal(file: &File, state: &State) -> io::Result<()> {
    for_each_record(file, state, |group, mut place| {
        // Data are written before checksums. If only the process died and not the machine, a reader
        // that finds the checksums can rely on the data.
        for changed in group.changed() {
            let mut page = [[0; PAGE_WORDS]];
            read_pages(file, &mut page, place)?;
            write_pages(file, &page, data_place(group.first() + changed as u64))?;
            place += 1;
        }
        write_pages(file, &group.record[1..], checksums_place(group.first() / GROUP_PAGES))?;
        Ok(true)
    })
    .map(drop)
}

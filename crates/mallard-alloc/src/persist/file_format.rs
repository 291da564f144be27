//! The file format of spec/file_arena.md: the places of data, headers, journal and checksums in the
//! file. Places and lengths are numbers of pages.

use crate::os::PAGE_BYTES;

pub(super) const PAGE_WORDS: usize = PAGE_BYTES / 8;
pub(super) const GROUP_PAGES: u64 = PAGE_WORDS as u64; // one page holds the checksums of a group
const HEADER_PAGES: u64 = 2;

/// A page as 64-bit words in the byte order of this machine.
pub(super) type Words = [u64; PAGE_WORDS];

pub(super) fn as_bytes(words: &[Words]) -> &[u8] {
    // SAFETY: words have no padding, so every byte is initialised.
    unsafe { core::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}
pub(super) fn as_bytes_mut(words: &mut [Words]) -> &mut [u8] {
    // SAFETY: words have no padding, and all byte values are valid in a word.
    unsafe { core::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), size_of_val(words)) }
}

// ---- places ----

// Pages form groups, and groups are stored in extents of 1, 1, 2, 4, 8, ... groups. Each extent has
// its checksums first, and then its data.

pub(super) const fn checksums_place(group: u64) -> u64 {
    let floor = if group == 0 { 0 } else { 1 << group.ilog2() };
    HEADER_PAGES + group + GROUP_PAGES * floor
}
pub(super) const fn data_place(page: u64) -> u64 {
    HEADER_PAGES + (page / GROUP_PAGES + 1).next_power_of_two() + page
}
/// Returns the number of the page after the last page of the extent that contains `page`.
pub(super) const fn extent_end(page: u64) -> u64 {
    GROUP_PAGES * (page / GROUP_PAGES + 1).next_power_of_two()
}
/// Returns the length, in pages, of a file with `pages` pages of data.
pub(super) const fn file_end(pages: u64) -> u64 {
    if pages == 0 {
        HEADER_PAGES
    } else {
        data_place(pages - 1) + 1
    }
}

const _: () = {
    assert!(checksums_place(0) == 2 && data_place(0) == 3 && data_place(511) == 514);
    assert!(checksums_place(1) == 515 && data_place(512) == 516 && data_place(1023) == 1027);
    assert!(checksums_place(2) == 1028 && checksums_place(3) == 1029 && data_place(1024) == 1030);
};

// ---- checksums ----

const ODD_A: u64 = 0x9e37_79b9_7f4a_7c15;
const ODD_B: u64 = 0xd6e8_feb8_6659_fd93;

fn mixed(mut x: u64) -> u64 {
    for _ in 0..2 {
        x = (x ^ x >> 32).wrapping_mul(ODD_B);
    }
    x ^ x >> 32
}
fn stirred(lane: u64, word: u64) -> u64 {
    (lane ^ word).wrapping_mul(ODD_A).rotate_left(29)
}

/// Returns the checksum of whole pages. The checksum has four lanes, so that a processor can do
/// four multiplications at the same time.
pub(super) fn checksum(seed: u64, words: impl Iterator<Item = u64>) -> u64 {
    let mut lanes = [0, 1, 2, 3].map(|i: u64| seed.wrapping_add(i.wrapping_mul(ODD_A)));
    for (i, word) in words.enumerate() {
        lanes[i % 4] = stirred(lanes[i % 4], word);
    }
    mixed(lanes.into_iter().fold(seed, stirred))
}

/// Returns the contribution of a page to the digest of all pages. The digest is a sum, so that the
/// contribution of a changed page can be subtracted again.
pub(super) fn digest_part(page: u64, check: u64) -> u64 {
    mixed(check ^ mixed(page + 1))
}

/// Returns the FNV-1a hash of a text (Fowler, Noll, Vo; 1991).
pub(super) fn hash_text(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, hash_byte)
}
/// Continues the FNV-1a hash `before` with the bytes of a number.
pub(super) fn hash_number(number: u64, before: u64) -> u64 {
    number.to_le_bytes().into_iter().fold(before, hash_byte)
}
fn hash_byte(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
}

// ---- headers ----

pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"\x7fmallard");
pub(super) const VERSION: u64 = 1 | (PAGE_BYTES as u64) << 32;

/// The content of a header. The file has two copies of the header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    pub(super) home: u64, // the address of page 0
    pub(super) sequence: u64,
    pub(super) pages: u64,
    pub(super) digest: u64, // the digest of all checksums
    pub(super) journal_begin: u64,
    pub(super) journal_pages: u64,
    pub(super) journal_check: u64,
}

impl State {
    pub(super) fn to_header(self) -> Words {
        let mut page = [0; PAGE_WORDS];
        let s = self;
        let first = [MAGIC, VERSION, s.home, s.sequence, s.pages, s.digest];
        page[..6].copy_from_slice(&first);
        page[6..9].copy_from_slice(&[s.journal_begin, s.journal_pages, s.journal_check]);
        page[PAGE_WORDS - 1] = checksum(MAGIC, page.into_iter());
        page
    }

    /// Reads a header. The error explains why the header is not valid, and what to do.
    pub(super) fn of_header(page: &Words) -> Result<Self, &'static str> {
        if page[0] == MAGIC.swap_bytes() {
            return Err(
                "it was created on a machine with the other byte order: create it again here",
            );
        }
        if page[0] != MAGIC {
            return Err(NO_ARENA);
        }
        if page[1] as u32 != VERSION as u32 {
            return Err("it has another version of the format: use the Mallard that created it");
        }
        if page[1] != VERSION {
            return Err("it was created for another page size: create it again here");
        }
        let zeroed = page.iter().take(PAGE_WORDS - 1).copied().chain([0]);
        if page[PAGE_WORDS - 1] != checksum(MAGIC, zeroed) {
            return Err(
                "both headers are corrupt, or its creation was interrupted: restore or delete it",
            );
        }
        Ok(Self {
            home: page[2],
            sequence: page[3],
            pages: page[4],
            digest: page[5],
            journal_begin: page[6],
            journal_pages: page[7],
            journal_check: page[8],
        })
    }
}

pub(super) const NO_ARENA: &str = "it is not a Mallard arena: check the path";

// ---- the journal ----

/// A record of the journal, for a group that has changed pages. Page 0 of the record has the number
/// of the group's first page and a bit for each changed page. Page 1 has all checksums of the
/// group. The changed pages follow.
#[derive(Clone)]
pub(super) struct Group {
    pub(super) record: [Words; 2],
}

pub(super) const RECORD_PAGES: u64 = 2;

impl Group {
    pub(super) fn new(first: u64) -> Self {
        let mut record = [[0; PAGE_WORDS]; 2];
        record[0][0] = first;
        Self { record }
    }
    pub(super) fn first(&self) -> u64 {
        self.record[0][0]
    }
    pub(super) fn has_changed(&self, page: usize) -> bool {
        self.record[0][1 + page / 64] >> (page % 64) & 1 != 0
    }
    pub(super) fn set_changed(&mut self, page: usize) {
        self.record[0][1 + page / 64] |= 1 << (page % 64);
    }
    /// Returns the indices of the changed pages within the group.
    pub(super) fn changed(&self) -> impl Iterator<Item = usize> + '_ {
        (0..GROUP_PAGES as usize).filter(|&page| self.has_changed(page))
    }
    pub(super) fn checksums(&self) -> &Words {
        &self.record[1]
    }
    pub(super) fn checksums_mut(&mut self) -> &mut Words {
        &mut self.record[1]
    }
    /// Returns the checksum of the journal up to and including this record. `before` is the
    /// checksum up to the previous record.
    pub(super) fn checked(&self, before: u64) -> u64 {
        checksum(before, self.record.iter().flatten().copied())
    }
}

//! Converts between offsets in a module's file and the addresses in its program headers.

use super::debug_files::{DebugFiles, Places};
use super::files::{Elf, Files};
use crate::format::u64_at;
use crate::modules::Module;
use crate::replay::format::mix;
use object::read::{Object, ObjectSegment};
use object::{elf, SegmentFlags};
use std::collections::HashMap;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::Path;

/// The loaded segments of a module's file, as the program headers describe them.
pub struct Layout {
    segments: Vec<Segment>,
    /// A number that identifies the file of a module without a build-id, as `spec/plan_format.md`
    /// defines. `None` if the file has a build-id, or if it lacks the exception table
    /// (`.eh_frame_hdr`), which lists its functions.
    pub key: Option<u64>,
}

struct Segment {
    offset: u64,
    bytes: u64,
    address: u64,
    is_code: bool,
}

impl Layout {
    /// Reads the file of a module. Returns `None` if the file is missing or was replaced by another
    /// file.
    pub fn read(module: &Module) -> Option<Layout> {
        // The library that reads object files may panic if a file is corrupt.
        catch_unwind(AssertUnwindSafe(|| Layout::try_read(module))).ok().flatten()
    }

    fn try_read(module: &Module) -> Option<Layout> {
        let (files, fetched) = (Files::default(), HashMap::new());
        let from = DebugFiles::new(module, Places { folders: &[], fetched: &fetched }, &files);
        let (path, object) = from.binary()?;
        let segments = object.segments().map(|segment| {
            let (offset, bytes) = segment.file_range();
            let flags = segment.flags();
            let is_code =
                matches!(flags, SegmentFlags::Elf { p_flags } if p_flags & elf::PF_X != 0);
            let bytes = bytes.max(segment.size());
            Segment { offset, bytes, address: segment.address(), is_code }
        });
        let segments = segments.collect();
        let key = if module.build_id.is_empty() { key(&object, &path) } else { None };
        Some(Layout { segments, key })
    }

    /// Returns the link-time address of a return address. `offset` is the return address as an
    /// offset in the file.
    pub fn address(&self, offset: u64) -> Option<u64> {
        let call = offset.checked_sub(1)?;
        self.segments.iter().find_map(|segment| {
            let inside = call.checked_sub(segment.offset)?;
            (inside < segment.bytes).then(|| segment.address.wrapping_add(inside) + 1)
        })
    }

    /// Returns the offset in the file of a return address. `address` is its link-time address.
    pub fn offset(&self, address: u64) -> Option<u64> {
        let call = address.checked_sub(1)?;
        self.segments.iter().find_map(|segment| {
            let inside = call.checked_sub(segment.address)?;
            (inside < segment.bytes).then(|| segment.offset.wrapping_add(inside) + 1)
        })
    }

    /// Returns the first address of each segment with code, and the address after its last byte.
    pub fn code(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let code = self.segments.iter().filter(|segment| segment.is_code && segment.bytes > 0);
        code.map(|segment| (segment.address, segment.address + segment.bytes))
    }
}

/// Computes the key of a file. The key is a checksum of the program headers and of `.eh_frame_hdr`,
/// the table of functions.
fn key(object: &Elf, path: &Path) -> Option<u64> {
    if !object.is_64() || object.is_little_endian() != cfg!(target_endian = "little") {
        return None;
    }
    let bytes = std::fs::read(path).ok()?;
    let part = |begin: u64, length: u64| {
        let begin = usize::try_from(begin).ok()?;
        bytes.get(begin..)?.get(..usize::try_from(length).ok()?)
    };
    let half =
        |at: usize| Some(u64::from(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?)));
    // Fields of the ELF header: e_phoff, e_phentsize and e_phnum.
    let (begin, size, count) = (u64_at(part(32, 8)?, 0), half(54)?, half(56)?);
    let headers = part(begin, size.checked_mul(count)?)?;
    let table = headers.chunks_exact(size as usize).find(|header| {
        header.len() >= 40 && crate::format::u32_at(header, 0) == elf::PT_GNU_EH_FRAME
    })?;
    let table = part(u64_at(table, 8), u64_at(table, 32))?;
    Some(mix_all(mix_all(0, headers), table))
}

/// Adds bytes to a checksum. The last word is padded with zeros.
fn mix_all(checksum: u64, bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(checksum, |checksum, part| {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        mix(checksum, u64::from_ne_bytes(word))
    })
}

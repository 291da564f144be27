//! Finds the mapped parts of a module, from the lines of a raw heaptrack file.

use super::input::{Fault, Numbers};
use object::read::{File, Object, ObjectSegment, ReadCache};
use std::path::Path;

/// A mapped part of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub start: u64,
    /// The text of the module record: end address, offset in the file, build-id and path.
    pub text: String,
}

/// The content of a module's file that the module line lacks: address and file offset of each
/// segment, and the build-id.
#[derive(Default)]
struct OnDisk {
    parts: Vec<(u64, u64)>,
    build_id: Option<String>,
}

/// Parses the rest of a module line: the base address, then the start and length of each mapped
/// part. The line has no file offsets, so they are read from the module's file if the file still
/// exists.
pub(super) fn parts(path: &str, numbers: &mut Numbers) -> Result<Vec<Part>, Fault> {
    let base = numbers.must()?;
    let disk = on_disk(path).unwrap_or_default();
    let mut parts = Vec::new();
    while let Some(begin) = numbers.next()? {
        let bytes = numbers.must()?;
        let known = disk.parts.iter().find(|&&(address, _)| address == begin);
        let offset = known.map_or(begin, |&(_, offset)| offset);
        let start = base.wrapping_add(begin);
        let end = start.wrapping_add(bytes);
        let build_id = disk.build_id.as_deref().unwrap_or("-");
        if bytes > 0 {
            parts.push(Part { start, text: format!("{end:x} {offset:x} {build_id} {path}") });
        }
    }
    Ok(parts)
}

fn on_disk(path: &str) -> Option<OnDisk> {
    let path = Path::new(path);
    if !path.is_absolute() || !path.is_file() {
        return None;
    }
    let cache = ReadCache::new(std::fs::File::open(path).ok()?);
    let object = File::parse(&cache).ok()?;
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(OnDisk {
        parts: object.segments().map(|part| (part.address(), part.file_range().0)).collect(),
        build_id: object.build_id().ok().flatten().map(hex),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_in_a_missing_module_file_are_relative_to_its_load_address() {
        let parts = parts("/no such file", &mut Numbers(b" 1000 0 10 200 30 400 0")).unwrap();
        let text = |text: &str| text.to_string();
        assert_eq!(
            parts,
            [
                Part { start: 0x1000, text: text("1010 0 - /no such file") },
                Part { start: 0x1200, text: text("1230 200 - /no such file") },
            ]
        );
    }

    #[test]
    fn offsets_are_computed_from_the_module_file_if_it_exists() {
        let this = std::env::current_exe().unwrap();
        let this = this.to_str().unwrap();
        let disk = on_disk(this).unwrap();
        // In the modules of some linkers, address and file offset are the same in all parts.
        let differs = disk.parts.iter().find(|(address, offset)| address != offset);
        let (address, offset) = *differs.or(disk.parts.last()).unwrap();
        let line = format!(" 10000000 {address:x} 10");
        let parts = parts(this, &mut Numbers(line.as_bytes())).unwrap();
        let end = 0x1000_0010 + address;
        assert!(parts[0].text.starts_with(&format!("{end:x} {offset:x} ")), "{parts:?}");
    }
}

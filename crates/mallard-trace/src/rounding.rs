//! Computes how many bytes a malloc uses for a block.

use crate::measures::PAGE_BYTES;

/// How a malloc rounds sizes up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// The rule of glibc: the size plus 8 bytes, rounded up to a multiple of 16, and at least 32. A
    /// block with a separate mapping uses whole pages.
    #[default]
    Glibc,
    /// The rule of size classes: multiples of 16 up to 128, then four classes for each power of
    /// two. jemalloc, mimalloc, tcmalloc and Mallard's malloc have such classes. Some of them have
    /// a few additional classes.
    Classes,
}

/// The list of known mallocs. All of them except glibc's have size classes.
const MALLOCS: &str = include_str!("../../../spec/allocators.csv");
/// The largest size in bytes that is rounded up to a class. For a larger block, the size is rounded
/// up to whole pages, because the rest of its class is never touched.
const CLASS_BYTES_MAX: u64 = 32 << 10;
/// The smallest size in bytes for which glibc makes a separate mapping.
const GLIBC_MAPPED_MIN: u64 = 128 << 10;

impl Rounding {
    /// Returns the rule of the malloc in a file. The file name determines the malloc. Returns
    /// `None` if the name belongs to no malloc with size classes.
    pub fn of_module(path: &str) -> Option<Rounding> {
        Rounding::in_list(path, MALLOCS)
    }

    fn in_list(path: &str, mallocs: &str) -> Option<Rounding> {
        let file = path.rsplit('/').next().unwrap_or_default();
        let mut lines = mallocs.lines();
        let column = lines.next()?.split(',').position(|name| name == "files")?;
        let begins = lines.filter_map(|line| line.split(',').nth(column));
        let mut begins =
            begins.flat_map(|files| files.split(' ')).filter(|begin| !begin.is_empty());
        begins.any(|begin| file.starts_with(begin)).then_some(Rounding::Classes)
    }

    /// Returns the name of the rule in the manifest.
    pub fn name(self) -> &'static str {
        match self {
            Rounding::Glibc => "glibc",
            Rounding::Classes => "classes",
        }
    }

    /// Returns the bytes that the malloc uses for a block of `size` bytes at `addr`, including the
    /// header.
    #[inline]
    pub fn taken(self, addr: u64, size: u64) -> u64 {
        match self {
            Rounding::Glibc => {
                if addr % PAGE_BYTES == 16 && size >= GLIBC_MAPPED_MIN {
                    return up(size.saturating_add(16), PAGE_BYTES).saturating_sub(16);
                }
                up(size.saturating_add(8), 16).max(32)
            }
            Rounding::Classes => match size {
                0..=128 => up(size.max(1), 16),
                129..=CLASS_BYTES_MAX => up(size, 1 << ((size - 1).ilog2() - 2)),
                _ => up(size, PAGE_BYTES),
            },
        }
    }
}

/// Rounds up to a multiple of a power of two.
fn up(bytes: u64, step: u64) -> u64 {
    bytes.saturating_add(step - 1) & !(step - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glibc_adds_a_header_and_rounds_to_16() {
        let taken = |addr, size| Rounding::Glibc.taken(addr, size);
        assert_eq!([0, 1, 24, 25, 40, 41].map(|size| taken(32, size)), [32, 32, 32, 48, 48, 64]);
        // A block with a separate mapping begins after a header of 16 bytes, and ends at the end of
        // a page.
        assert_eq!(taken(0x7000_0010, 200_000), 200_688);
        assert_eq!((taken(0x7000_0010, 200_000) + 16) % 4096, 0);
        assert_eq!(taken(0x7000_0020, 200_000), 200_016);
        assert!(taken(16, u64::MAX) > 1 << 63);
    }

    #[test]
    fn size_classes_waste_at_most_a_quarter_above_128_bytes() {
        let taken = |size| Rounding::Classes.taken(0, size);
        assert_eq!(
            [0, 1, 16, 17, 128, 129, 160, 161, 257].map(taken),
            [16, 16, 16, 32, 128, 160, 160, 192, 320]
        );
        for size in 129..100_000u64 {
            let bytes = taken(size);
            assert!(bytes >= size && bytes * 4 <= size * 5 + 3, "{size}: {bytes}");
        }
    }

    #[test]
    fn a_malloc_is_recognised_by_its_file_name() {
        let of = Rounding::of_module;
        assert_eq!(of("/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"), Some(Rounding::Classes));
        assert_eq!(of("/opt/libmallard-malloc.so"), Some(Rounding::Classes));
        assert_eq!(of("/opt/librpmalloc.so"), Some(Rounding::Classes));
        assert_eq!(of("/opt/libmallard-record.so"), None);
        assert_eq!(of("/jemalloc/bin/a"), None);
        let longer = format!("{MALLOCS}duck,,known,,,,,libduckalloc,,,made up\n");
        assert_eq!(of("/opt/libduckalloc.so.1"), None);
        let rule = Rounding::in_list("/opt/libduckalloc.so.1", &longer);
        assert_eq!(rule, Some(Rounding::Classes));
        assert_eq!(of(""), None);
    }
}

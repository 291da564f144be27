//! Opens object files, and holds them and their sections in memory while names are looked up.

use flate2::read::ZlibDecoder;
use mallard::TypedArena;
use object::read::{CompressionFormat, File, Object, ObjectSection, ReadCache};
use std::io::Read;
use std::path::Path;

/// An object file: a program, a library, or a file with debug information.
pub(super) type Elf<'a> = File<'a, &'a ReadCache<std::fs::File>>;

/// All files that are read for one module.
#[derive(Default)]
pub(super) struct Files {
    open: TypedArena<ReadCache<std::fs::File>>,
    unpacked: TypedArena<Vec<u8>>,
}

impl Files {
    /// Opens a file. Returns `None` if it is not a regular file or not an object file.
    pub fn open(&self, path: &Path) -> Option<Elf<'_>> {
        // A module may be a device or a pipe, and opening a pipe would block.
        if !path.is_file() {
            return None;
        }
        let cache = self.open.alloc(ReadCache::new(std::fs::File::open(path).ok()?));
        File::parse(&*cache).ok()
    }

    /// Stores decompressed bytes for as long as `self` exists.
    pub fn keep(&self, bytes: Vec<u8>) -> &[u8] {
        self.unpacked.alloc(bytes)
    }

    /// Returns the bytes of a section with debug information, which is often compressed. Old
    /// linkers name a compressed section `.zdebug_…` instead of `.debug_…`. Returns no bytes if
    /// there is no such section.
    pub fn section<'a>(&'a self, object: &Elf<'a>, name: &str) -> &'a [u8] {
        self.try_section(object, name).unwrap_or_default()
    }

    fn try_section<'a>(&'a self, object: &Elf<'a>, name: &str) -> Option<&'a [u8]> {
        let section = object
            .section_by_name(name)
            .or_else(|| object.section_by_name(&format!(".z{}", name.strip_prefix('.')?)))?;
        let stored = section.compressed_data().ok()?;
        // A corrupt file may state any size, so use the size only as a limit, and reserve no memory
        // for it.
        let size = stored.uncompressed_size;
        let mut bytes = Vec::new();
        match stored.format {
            CompressionFormat::None => return Some(stored.data),
            CompressionFormat::Zlib => {
                ZlibDecoder::new(stored.data).take(size).read_to_end(&mut bytes)
            }
            CompressionFormat::Zstandard => {
                let decoder = zstd::stream::read::Decoder::new(stored.data).ok()?;
                decoder.take(size).read_to_end(&mut bytes)
            }
            _ => return None,
        }
        .ok()?;
        (bytes.len() as u64 == size).then(|| self.keep(bytes))
    }
}

//! Opens object files. Stores them and their sections in memory while names are looked up.

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
        // A module may be a pipe, and opening a pipe would block.
        if !path.is_file() {
            return None;
        }
        let cache = self.open.alloc(ReadCache::new(std::fs::File::open(path).ok()?));
        File::parse(&*cache).ok()
    }

    /// Stores decompressed bytes until `self` is dropped.
    pub fn keep(&self, bytes: Vec<u8>) -> &[u8] {
        self.unpacked.alloc(bytes)
    }

    /// Returns the bytes of a section with debug information, decompressed if necessary. Returns an
    /// empty slice if there is no such section. Old linkers name a compressed section `.zdebug_…`
    /// instead of `.debug_…`.
    pub fn section<'a>(&'a self, object: &Elf<'a>, name: &str) -> &'a [u8] {
        self.try_section(object, name).unwrap_or_default()
    }

    fn try_section<'a>(&'a self, object: &Elf<'a>, name: &str) -> Option<&'a [u8]> {
        let section = object
            .section_by_name(name)
            .or_else(|| object.section_by_name(&format!(".z{}", name.strip_prefix('.')?)))?;
        let stored = section.compressed_data().ok()?;
        // In a corrupt file, the size may be any number. So the size is only a limit, and no memory
        // is reserved.
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

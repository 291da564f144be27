//! Looks up the functions of one module.

use super::{debug_files, Function, Source};
use crate::modules::Module;
use addr2line::{demangle_auto, gimli, Context};
use flate2::read::ZlibDecoder;
use gimli::{DwarfSections, EndianSlice, RunTimeEndian};
use lzma_rust2::XzReader;
use object::read::{
    CompressionFormat, File, Object, ObjectSection, ObjectSegment, ObjectSymbol, ReadCache,
    SymbolKind,
};
use std::borrow::Cow;
use std::io::Read;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};

/// The largest size of a file of symbols inside of another file. Such files are small.
const SYMBOLS_BYTES_MAX: u64 = 1 << 28;
/// The limit of the memory for unpacking a file of symbols, in KiB.
const XZ_MEMORY_KIB: u32 = 1 << 17;

/// An open file with code.
type Elf<'a> = File<'a, &'a ReadCache<std::fs::File>>;

/// The functions of one module.
pub(super) struct Names {
    pub source: Source,
    /// For each offset, the functions there, the outermost first. Empty if nothing is known.
    pub functions: Vec<Vec<Function>>,
}

impl Names {
    fn none(count: usize) -> Names {
        Names { source: Source::None, functions: vec![Vec::new(); count] }
    }
}

/// Looks up return addresses, which are offsets in the file of the module. A damaged file has no names.
pub(super) fn of_module(module: &Module, offsets: &[u64], folders: &[PathBuf]) -> Names {
    let look_up = || try_of_module(module, offsets, folders);
    catch_unwind(AssertUnwindSafe(look_up))
        .ok()
        .flatten()
        .unwrap_or_else(|| Names::none(offsets.len()))
}

fn try_of_module(module: &Module, offsets: &[u64], folders: &[PathBuf]) -> Option<Names> {
    let binary = debug_files::binary(module, folders);
    let link = binary.as_deref().and_then(debug_link);
    let separate = debug_files::separate(module, link.as_deref(), folders);

    // The addresses come from the program itself if possible: the offsets in a separate file with debug
    // information are often equal to those in the program, but not always.
    let addresses = with_object(binary.as_ref().or(separate.as_ref())?, |object| {
        offsets.iter().map(|&offset| address_of(object, offset)).collect::<Vec<_>>()
    })?;
    let mut names = Names::none(offsets.len());
    // The file with more information comes last.
    for path in [&binary, &separate].into_iter().flatten() {
        with_object(path, |object| add_names(object, &addresses, &mut names));
    }
    Some(names)
}

fn with_object<T>(path: &Path, use_it: impl FnOnce(&Elf) -> T) -> Option<T> {
    let cache = ReadCache::new(std::fs::File::open(path).ok()?);
    let object = File::parse(&cache).ok()?;
    Some(use_it(&object))
}

fn debug_link(path: &Path) -> Option<String> {
    let link = |object: &Elf| {
        let (name, _) = object.gnu_debuglink().ok()??;
        Some(String::from_utf8_lossy(name).into_owned())
    };
    with_object(path, link).flatten()
}

/// The address that the linker gave to the call before a return address.
fn address_of(object: &Elf, offset: u64) -> Option<u64> {
    let call = offset.checked_sub(1)?;
    object.segments().find_map(|segment| {
        let (begin, bytes) = segment.file_range();
        let bytes = bytes.max(segment.size());
        let inside = call.checked_sub(begin).filter(|&inside| inside < bytes)?;
        Some(segment.address().wrapping_add(inside))
    })
}

/// Adds the names that a file has. Debug information replaces symbols.
fn add_names(object: &Elf, addresses: &[Option<u64>], names: &mut Names) {
    let inside = symbols_inside(object).unwrap_or_default();
    let inside = File::parse(&*inside).ok();
    let (table, symbols) = SymbolTable::new(object, inside.as_ref());
    if table != Source::None && matches!(names.source, Source::None | Source::DynamicSymbols) {
        names.source = table;
        for (functions, address) in names.functions.iter_mut().zip(addresses) {
            let name = address.and_then(|address| symbols.name(address));
            if let Some(name) = name {
                *functions = vec![Function { name, ..Function::default() }];
            }
        }
    }
    let has_debug_info =
        object.section_by_name(".debug_info").is_some_and(|section| section.size() > 0);
    if has_debug_info && add_debug_info(object, addresses, names).is_some() {
        names.source = Source::Dwarf;
    }
}

/// The file of symbols in the section .gnu_debugdata, which Fedora's stripped files have. It names the
/// functions that are not in the dynamic symbols.
fn symbols_inside(object: &Elf) -> Option<Vec<u8>> {
    let compressed = object.section_by_name(".gnu_debugdata")?.data().ok()?;
    let mut bytes = Vec::new();
    XzReader::new_mem_limit(compressed, false, XZ_MEMORY_KIB)
        .take(SYMBOLS_BYTES_MAX)
        .read_to_end(&mut bytes)
        .ok()?;
    Some(bytes)
}

/// The bytes of a section. Debug information is often compressed.
fn contents<'a>(section: &impl ObjectSection<'a>) -> Option<Cow<'a, [u8]>> {
    let stored = section.compressed_data().ok()?;
    // A damaged file may state any size, so the size is only a limit: no memory is reserved for it.
    let size = stored.uncompressed_size;
    let mut bytes = Vec::new();
    match stored.format {
        CompressionFormat::None => return Some(Cow::Borrowed(stored.data)),
        CompressionFormat::Zlib => ZlibDecoder::new(stored.data).take(size).read_to_end(&mut bytes),
        CompressionFormat::Zstandard => {
            zstd::stream::read::Decoder::new(stored.data).ok()?.take(size).read_to_end(&mut bytes)
        }
        _ => return None,
    }
    .ok()?;
    (bytes.len() as u64 == size).then_some(Cow::Owned(bytes))
}

fn add_debug_info(object: &Elf, addresses: &[Option<u64>], names: &mut Names) -> Option<()> {
    let load = |id: gimli::SectionId| -> Result<Cow<[u8]>, gimli::Error> {
        Ok(object
            .section_by_name(id.name())
            .and_then(|section| contents(&section))
            .unwrap_or_default())
    };
    let sections = DwarfSections::load(load).ok()?;
    let endian = if object.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
    let dwarf = sections.borrow(|section| EndianSlice::new(section, endian));
    let context = Context::from_dwarf(dwarf).ok()?;
    for (functions, address) in names.functions.iter_mut().zip(addresses) {
        let Some(address) = *address else { continue };
        // Split debug information, in .dwo files, is not loaded.
        let Ok(mut frames) = context.find_frames(address).skip_all_loads() else { continue };
        let mut found = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.as_ref().and_then(|name| name.demangle().ok());
            let location = frame.location.as_ref();
            found.push(Function {
                name: name.map(Cow::into_owned).unwrap_or_default(),
                file: location.and_then(|location| location.file).map(str::to_string),
                line: location.and_then(|location| location.line),
            });
        }
        // addr2line returns the innermost function first.
        found.reverse();
        let Some(outer) = found.first_mut() else { continue };
        if outer.name.is_empty() {
            // DWARF knows the line but not the function: take the name in the symbol table.
            let Some(symbol) = functions.first() else { continue };
            outer.name.clone_from(&symbol.name);
        }
        *functions = found;
    }
    Some(())
}

/// Names of functions, in the order of their addresses.
struct SymbolTable<'a> {
    /// Address, size and mangled name. An address with several names is listed once.
    symbols: Vec<(u64, u64, &'a str)>,
}

impl<'a> SymbolTable<'a> {
    /// Reads the symbol table or, if there is none, the dynamic symbols and the symbols of the file
    /// `inside`.
    fn new(object: &Elf<'a>, inside: Option<&'a File<'a>>) -> (Source, Self) {
        let table = functions(object.symbols());
        if !table.is_empty() {
            return (Source::SymbolTable, SymbolTable { symbols: sorted(table) });
        }
        let mut table = inside.map(|inside| functions(inside.symbols())).unwrap_or_default();
        let has_inside = !table.is_empty();
        table.extend(functions(object.dynamic_symbols()));
        let source = match (has_inside, table.is_empty()) {
            (true, _) => Source::SymbolTable,
            (false, false) => Source::DynamicSymbols,
            (false, true) => Source::None,
        };
        (source, SymbolTable { symbols: sorted(table) })
    }

    fn name(&self, address: u64) -> Option<String> {
        let after = self.symbols.partition_point(|&(begin, ..)| begin <= address);
        let &(begin, bytes, name) = self.symbols.get(after.checked_sub(1)?)?;
        // Functions in assembly often have no size: they reach to the next function.
        (bytes == 0 || address - begin < bytes)
            .then(|| demangle_auto(Cow::Borrowed(name), None).into_owned())
    }
}

fn functions<'a>(symbols: impl Iterator<Item = impl ObjectSymbol<'a>>) -> Vec<(u64, u64, &'a str)> {
    let is_code = |kind| matches!(kind, SymbolKind::Text | SymbolKind::Unknown);
    symbols
        .filter(|symbol| symbol.is_definition() && is_code(symbol.kind()))
        .filter_map(|symbol| Some((symbol.address(), symbol.size(), symbol.name().ok()?)))
        .filter(|(_, _, name)| !name.is_empty())
        .collect()
}

/// Orders functions by address, and keeps one name for each.
fn sorted<'a>(mut functions: Vec<(u64, u64, &'a str)>) -> Vec<(u64, u64, &'a str)> {
    // The name that users know comes first: malloc, not __libc_malloc.
    let underscores = |name: &str| name.len() - name.trim_start_matches('_').len();
    let key = |&(address, bytes, name): &(u64, u64, &'a str)| {
        (address, bytes == 0, underscores(name), name.len(), name)
    };
    functions.sort_unstable_by(|a, b| key(a).cmp(&key(b)));
    functions.dedup_by_key(|&mut (address, ..)| address);
    functions
}

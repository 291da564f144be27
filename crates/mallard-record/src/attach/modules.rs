//! The modules of another process, in the order of the dynamic linker: their symbols, and the
//! relocation entries for functions of malloc's family. All these data are read from the memory of
//! the process, so the files of the modules are not needed.

use crate::attach::code;
use crate::attach::request::{Entry, ENTRIES_MAX};
use mallard_measure::process::proc;
use object::elf;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// The functions whose next call loads the recorder.
pub const TRIGGERS: [&str; 4] = ["malloc", "free", "calloc", "realloc"];

const AT_PHDR: u64 = 3;
const AT_PHNUM: u64 = 5;
const PAGE_MASK: u64 = !4095;
const MODULES_MAX: usize = 4096;
const NAME_BYTES_MAX: usize = 4096;
const TABLE_BYTES_MAX: u64 = 64 << 20;

/// The memory of another process.
pub struct Memory(File);

impl Memory {
    /// Opens the memory of a process for reading and writing.
    pub fn open(process: u32) -> io::Result<Memory> {
        File::options().read(true).write(true).open(proc::memory(process)).map(Memory)
    }

    /// Reads bytes.
    pub fn bytes(&self, at: u64, count: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; count];
        self.0.read_exact_at(&mut bytes, at)?;
        Ok(bytes)
    }

    /// Reads a word.
    pub fn word(&self, at: u64) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.0.read_exact_at(&mut bytes, at)?;
        Ok(u64::from_ne_bytes(bytes))
    }

    /// Writes bytes.
    pub fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, at)
    }

    /// Reads a text that ends with 0. The memory after the text need not be readable.
    pub fn text(&self, at: u64) -> Vec<u8> {
        let mut text = Vec::new();
        while text.len() < NAME_BYTES_MAX {
            let Ok(bytes) = self.bytes(at + text.len() as u64, 1) else { break };
            if bytes[0] == 0 {
                break;
            }
            text.extend(bytes);
        }
        text
    }
}

/// A segment of a module.
#[derive(Clone, Debug)]
struct Segment {
    kind: u32,
    range: Range<u64>,
}

/// A loaded module.
#[derive(Clone, Debug)]
pub struct Module {
    /// The path that the dynamic linker has recorded. Empty for the program itself.
    pub name: String,
    bias: u64,
    segments: Vec<Segment>,
    dynamic: BTreeMap<u64, u64>,
}

/// Reads the list of modules. `None` if the dynamic linker is still loading the program.
pub fn modules(process: u32, memory: &Memory) -> io::Result<Option<Vec<Module>>> {
    let auxiliary: BTreeMap<u64, u64> = proc::auxiliary(process).into_iter().collect();
    let (Some(&headers), Some(&count)) = (auxiliary.get(&AT_PHDR), auxiliary.get(&AT_PHNUM)) else {
        return Ok(None);
    };
    let Some(program) = Module::with_headers(memory, String::new(), None, headers, count)? else {
        return Ok(None);
    };
    let debug = program.dynamic.get(&u64::from(elf::DT_DEBUG)).copied().unwrap_or(0);
    if debug == 0 {
        return Ok(None);
    }
    // struct r_debug: version, list, the address of a function, state (0: the list is whole)
    let (mut link, state) = (memory.word(debug + 8)?, memory.word(debug + 24)? as u32);
    if link == 0 || state != 0 {
        return Ok(None);
    }
    let mut modules = Vec::new();
    while link != 0 && modules.len() < MODULES_MAX {
        // struct link_map: bias, name, dynamic section, next
        let [bias, name] = [0, 8].map(|offset| memory.word(link + offset));
        let (bias, name) = (bias?, String::from_utf8_lossy(&memory.text(name?)).into_owned());
        if modules.is_empty() {
            modules.push(program.clone());
        } else if let Ok(Some(module)) = Module::at(memory, name, bias, memory.word(link + 16)?) {
            modules.push(module);
        }
        link = memory.word(link + 24)?;
    }
    Ok(Some(modules))
}

impl Module {
    /// Reads the module with this bias, whose dynamic section is at `dynamic`. The file begins at
    /// the bias, or if the bias is 0, at the page of the dynamic section. `None` if no ELF header
    /// is there.
    fn at(memory: &Memory, name: String, bias: u64, dynamic: u64) -> io::Result<Option<Module>> {
        let begin = if bias == 0 { dynamic & PAGE_MASK } else { bias };
        let head = memory.bytes(begin, 64)?;
        if !head.starts_with(&elf::ELFMAG) {
            return Ok(None);
        }
        let headers = begin + u64::from_ne_bytes(head[32..40].try_into().unwrap_or_default());
        let count = u16::from_ne_bytes(head[56..58].try_into().unwrap_or_default());
        Module::with_headers(memory, name, Some(bias), headers, count.into())
    }

    fn with_headers(
        memory: &Memory,
        name: String,
        bias: Option<u64>,
        headers: u64,
        count: u64,
    ) -> io::Result<Option<Module>> {
        let bytes = memory.bytes(headers, 56 * count.min(256) as usize)?;
        let word = |header: &[u8], at: usize| {
            u64::from_ne_bytes(header[at..at + 8].try_into().unwrap_or_default())
        };
        let kind = |header: &[u8]| u32::from_ne_bytes(header[..4].try_into().unwrap_or_default());
        let bias = bias.or_else(|| {
            let own = bytes.chunks_exact(56).find(|header| kind(header) == elf::PT_PHDR)?;
            Some(headers.wrapping_sub(word(own, 16)))
        });
        let Some(bias) = bias else { return Ok(None) };
        let segments: Vec<Segment> = bytes
            .chunks_exact(56)
            .map(|header| {
                let begin = bias.wrapping_add(word(header, 16));
                Segment { kind: kind(header), range: begin..begin.wrapping_add(word(header, 40)) }
            })
            .collect();
        let Some(at) = segments.iter().find(|segment| segment.kind == elf::PT_DYNAMIC) else {
            return Ok(None);
        };
        let mut dynamic = BTreeMap::new();
        let section = memory.bytes(at.range.start, (at.range.end - at.range.start) as usize)?;
        for pair in section.chunks_exact(16) {
            let (tag, value) = (word(pair, 0), word(pair, 8));
            if tag == u64::from(elf::DT_NULL) {
                break;
            }
            dynamic.insert(tag, value);
        }
        Ok(Some(Module { name, bias, segments, dynamic }))
    }

    fn value(&self, tag: u32) -> Option<u64> {
        self.dynamic.get(&u64::from(tag)).copied()
    }

    /// Returns an address from the dynamic section. Adds the bias if the dynamic linker has not
    /// added it.
    fn address(&self, tag: u32) -> Option<u64> {
        self.value(tag).map(|value| if value < self.bias { value + self.bias } else { value })
    }

    /// Returns whether an address is in the module.
    pub fn contains(&self, address: u64) -> bool {
        self.loaded().any(|range| range.contains(&address))
    }

    /// Returns the ranges of memory into which the file is mapped.
    pub fn loaded(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.segments.iter().filter(|s| s.kind == elf::PT_LOAD).map(|s| s.range.clone())
    }

    /// Returns the pages that the dynamic linker makes read-only after relocation.
    fn relro(&self) -> Option<Range<u64>> {
        let of = self.segments.iter().find(|segment| segment.kind == elf::PT_GNU_RELRO)?;
        Some(of.range.start & PAGE_MASK..of.range.end & PAGE_MASK)
    }

    /// Returns the file name in the module's path.
    pub fn file_name(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or_default()
    }

    /// Returns the number of dynamic symbols of the module.
    fn symbol_count(&self, memory: &Memory) -> io::Result<u64> {
        let half = |at: u64| memory.word(at).map(|word| word & 0xffff_ffff);
        if let Some(hash) = self.address(elf::DT_HASH) {
            return half(hash + 4);
        }
        let Some(hash) = self.address(elf::DT_GNU_HASH) else { return Ok(0) };
        let (buckets, first, bloom) = (half(hash)?, half(hash + 4)?, half(hash + 8)?);
        let table = hash + 16 + 8 * bloom;
        let chain = table + 4 * buckets;
        let heads = memory.bytes(table, 4 * buckets.min(1 << 24) as usize)?;
        let head = |bytes: &[u8]| u32::from_ne_bytes(bytes.try_into().unwrap_or_default());
        let mut last: u64 = heads.chunks_exact(4).map(head).max().unwrap_or(0).into();
        if last < first {
            return Ok(first);
        }
        while half(chain + 4 * (last - first))? & 1 == 0 {
            last += 1;
        }
        Ok(last + 1)
    }

    /// Reads the dynamic symbols and their names.
    pub fn symbols(&self, memory: &Memory) -> io::Result<Symbols> {
        let (Some(symbols), Some(strings)) =
            (self.address(elf::DT_SYMTAB), self.address(elf::DT_STRTAB))
        else {
            return Ok(Symbols::default());
        };
        let count = self.symbol_count(memory)?.min(TABLE_BYTES_MAX / 24);
        let strings_bytes = self.value(elf::DT_STRSZ).unwrap_or(0).min(TABLE_BYTES_MAX);
        let versions = self.address(elf::DT_VERSYM);
        Ok(Symbols {
            bias: self.bias,
            symbols: memory.bytes(symbols, 24 * count as usize)?,
            strings: memory.bytes(strings, strings_bytes as usize)?,
            versions: match versions {
                Some(at) => memory.bytes(at, 2 * count as usize)?,
                None => Vec::new(),
            },
        })
    }

    /// Returns the entries of the module that contain the address of a trigger, or are not bound
    /// yet. `real` contains the addresses of the triggers.
    fn entries(&self, memory: &Memory, real: &[u64; 4]) -> io::Result<Vec<Entry>> {
        let symbols = self.symbols(memory)?;
        let mut entries = Vec::new();
        let mut has_others = false;
        for (table, size) in [(elf::DT_JMPREL, elf::DT_PLTRELSZ), (elf::DT_RELA, elf::DT_RELASZ)] {
            let (Some(at), Some(size)) = (self.address(table), self.value(size)) else { continue };
            let bytes = memory.bytes(at, size.min(TABLE_BYTES_MAX) as usize)?;
            for relocation in bytes.chunks_exact(24) {
                let word = |at: usize| {
                    u64::from_ne_bytes(relocation[at..at + 8].try_into().unwrap_or_default())
                };
                let (offset, info) = (word(0), word(8));
                let is_address =
                    matches!(info as u32, elf::R_X86_64_JUMP_SLOT | elf::R_X86_64_GLOB_DAT);
                if !is_address {
                    continue;
                }
                let name = symbols.name((info >> 32) as usize);
                let trigger = TRIGGERS.iter().position(|&trigger| name == trigger.as_bytes());
                let Some(index) = trigger else { continue };
                let at = self.bias.wrapping_add(offset);
                let before = memory.word(at)?;
                if before == real[index] || self.contains(before) {
                    entries.push(Entry { at, before, now: code::entry(index) });
                } else if before != 0 {
                    has_others = true; // the module uses another malloc
                }
            }
        }
        entries.retain(|entry| !has_others || !self.contains(entry.before));
        Ok(entries)
    }
}

/// The dynamic symbols of a module.
#[derive(Default)]
pub struct Symbols {
    bias: u64,
    symbols: Vec<u8>,
    strings: Vec<u8>,
    versions: Vec<u8>,
}

impl Symbols {
    fn name(&self, index: usize) -> &[u8] {
        let Some(symbol) = self.symbols.chunks_exact(24).nth(index) else { return &[] };
        let at = u32::from_ne_bytes(symbol[..4].try_into().unwrap_or_default()) as usize;
        let text = self.strings.get(at..).unwrap_or_default();
        text.split(|&byte| byte == 0).next().unwrap_or_default()
    }

    /// Returns the address of a symbol that the module defines, in the newest version of the
    /// symbol.
    pub fn address(&self, name: &str) -> Option<u64> {
        let is_hidden =
            |index: usize| self.versions.get(2 * index + 1).is_some_and(|v| v & 0x80 != 0);
        self.symbols.chunks_exact(24).enumerate().find_map(|(index, symbol)| {
            let section = u16::from_ne_bytes(symbol[6..8].try_into().ok()?);
            let value = u64::from_ne_bytes(symbol[8..16].try_into().ok()?);
            let is_it = section != 0 && value != 0 && !is_hidden(index);
            (is_it && self.name(index) == name.as_bytes()).then(|| self.bias.wrapping_add(value))
        })
    }
}

/// The functions of a process that the code calls.
#[derive(Clone, Copy, Debug)]
pub struct Functions {
    /// The addresses of the triggers. If several modules define a trigger, the program's calls
    /// reach the first definition.
    pub real: [u64; 4],
    pub dlopen: u64,
    pub dlsym: u64,
    pub dlerror: u64,
    pub errno: u64,
    /// The flags for dlopen.
    pub flags: u64,
    /// Whether the process uses the malloc of the C library.
    pub is_malloc_of_libc: bool,
}

const RTLD_NOW: u64 = 2;
/// A flag that the internal dlopen of glibc before 2.34 requires.
const RTLD_INTERNAL: u64 = 0x8000_0000;

/// Finds the functions that the code calls. `None` if the process lacks a required function.
pub fn functions(modules: &[Module], memory: &Memory) -> io::Result<Option<Functions>> {
    let mut real = [0; 4];
    let mut found: BTreeMap<&str, u64> = BTreeMap::new();
    let mut is_malloc_of_libc = false;
    for module in modules.iter().filter(|module| !is_recorder(&module.name)) {
        let symbols = module.symbols(memory)?;
        let is_libc = is_libc(module);
        for (index, name) in TRIGGERS.into_iter().enumerate() {
            if real[index] == 0 {
                real[index] = symbols.address(name).unwrap_or(0);
                is_malloc_of_libc |= index == 0 && real[0] != 0 && is_libc;
            }
        }
        if is_libc || module.file_name().starts_with("libdl.so") {
            let names = [
                "dlopen",
                "dlsym",
                "dlerror",
                "__libc_dlopen_mode",
                "__libc_dlsym",
                "__errno_location",
            ];
            for name in names {
                if let Some(address) = symbols.address(name) {
                    found.entry(name).or_insert(address);
                }
            }
        }
    }
    let get = |name: &str| found.get(name).copied();
    let opened = get("dlopen").zip(get("dlsym")).map(|(open, find)| (open, find, RTLD_NOW));
    let internal = get("__libc_dlopen_mode").zip(get("__libc_dlsym"));
    let internal = internal.map(|(open, find)| (open, find, RTLD_NOW | RTLD_INTERNAL));
    let (Some((dlopen, dlsym, flags)), Some(errno)) =
        (opened.or(internal), get("__errno_location"))
    else {
        return Ok(None);
    };
    let dlerror = get("dlerror").unwrap_or(0);
    Ok((real[0] != 0 && real[1] != 0).then_some(Functions {
        real,
        dlopen,
        dlsym,
        dlerror,
        errno,
        flags,
        is_malloc_of_libc,
    }))
}

/// Returns whether the module is the C library.
pub fn is_libc(module: &Module) -> bool {
    module.file_name().starts_with("libc.so") || module.file_name().starts_with("libc-2.")
}

/// Returns whether a module is the recorder, which may have been loaded from a descriptor.
pub fn is_recorder(name: &str) -> bool {
    name.ends_with("libmallard-record.so") || name.starts_with("/proc/self/fd/")
}

/// Returns up to `ENTRIES_MAX` entries that must be changed so that the next call of a trigger runs
/// the code. Entries of the C library, the dynamic linker and the recorder are left out. The new
/// values are offsets in the code. Also returns the ranges of memory that must be made writable to
/// change them.
pub fn entries(
    modules: &[Module],
    memory: &Memory,
    functions: &Functions,
) -> io::Result<(Vec<Entry>, Vec<Range<u64>>)> {
    let (mut all, mut read_only) = (Vec::new(), Vec::new());
    let is_loader = |module: &Module| module.file_name().starts_with("ld-linux");
    for module in modules {
        if is_libc(module) || is_loader(module) || is_recorder(&module.name) {
            continue;
        }
        let entries = module.entries(memory, &functions.real)?;
        if all.len() + entries.len() > ENTRIES_MAX {
            break;
        }
        let relro = module.relro();
        let is_protected =
            |entry: &Entry| relro.as_ref().is_some_and(|range| range.contains(&entry.at));
        if entries.iter().any(is_protected) {
            read_only.extend(relro.clone());
        }
        all.extend(entries);
    }
    Ok((all, read_only))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_symbols_of_called_functions_are_found_in_the_modules_of_this_process() {
        let own = std::process::id();
        let memory = Memory::open(own).unwrap();
        let modules = modules(own, &memory).unwrap().unwrap();
        assert_eq!(modules[0].name, "");
        assert!(modules.iter().any(is_libc), "{modules:?}");
        let functions = functions(&modules, &memory).unwrap().unwrap();
        assert!(functions.is_malloc_of_libc);
        let real = nix::libc::malloc as *const () as u64;
        assert_eq!(functions.real[0], real);
        assert_eq!(functions.dlopen, nix::libc::dlopen as *const () as u64);
        let (entries, _) = entries(&modules, &memory, &functions).unwrap();
        assert!(entries.iter().any(|entry| entry.before == real), "{entries:?}");
        for entry in entries {
            assert_eq!(memory.word(entry.at).unwrap(), entry.before);
            assert!((code::entry(0)..code::WAIT).contains(&entry.now));
        }
    }
}

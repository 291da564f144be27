//! Reads the functions in the symbol tables of a module.

use super::files::{Elf, Files};
use addr2line::demangle_auto;
use lzma_rust2::XzReader;
use object::elf::SHF_EXECINSTR;
use object::read::{File, Object, ObjectSection, ObjectSymbol, ReadRef};
use object::{SectionFlags, SymbolKind, SymbolScope};
use std::io::Read;

/// The maximum size in bytes of a symbol file that is embedded in another file.
const SYMBOLS_BYTES_MAX: u64 = 1 << 28;
/// The maximum memory in KiB for decompressing an embedded symbol file.
const XZ_MEMORY_KIB: u32 = 1 << 17;

/// The source of a module's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// DWARF debug information: functions, inlined functions, files and lines.
    Dwarf,
    /// The symbol table: names of functions only.
    SymbolTable,
    /// The dynamic symbols: names of the functions to which other modules can link.
    DynamicSymbols,
    /// No names, because the file is missing, was replaced, or is stripped.
    None,
    /// Another program has looked up the names. The trace was imported from a file of that program.
    Imported,
}

impl Source {
    /// Returns the word for this source in the table `modules`.
    pub fn as_str(self) -> &'static str {
        match self {
            Source::Dwarf => "dwarf",
            Source::SymbolTable => "symtab",
            Source::DynamicSymbols => "dynsym",
            Source::None => "none",
            Source::Imported => "imported",
        }
    }
}

struct Symbol<'a> {
    address: u64,
    bytes: u64,
    /// Whether other modules or other source files can refer to the function by this name.
    is_public: bool,
    /// The name, which may be mangled.
    name: &'a str,
}

/// The names of functions, by address. An address may have several names.
pub(super) struct SymbolTable<'a> {
    /// The symbols, sorted by address. If an address has several names, the best name comes first.
    symbols: Vec<Symbol<'a>>,
    /// The best source among the tables that were read.
    pub source: Source,
}

impl<'a> SymbolTable<'a> {
    /// Reads the symbol tables of several files that all belong to one module.
    pub fn read<'b>(objects: impl Iterator<Item = &'b Elf<'a>>, files: &'a Files) -> Self
    where
        'a: 'b,
    {
        let (mut symbols, mut dynamic) = (Vec::new(), Vec::new());
        for object in objects {
            symbols.extend(functions(object, object.symbols()));
            dynamic.extend(functions(object, object.dynamic_symbols()));
            let inside = symbols_inside(object).map(|bytes| files.keep(bytes));
            if let Some(inside) = inside.and_then(|bytes| File::parse(bytes).ok()) {
                symbols.extend(functions(&inside, inside.symbols()));
            }
        }
        let source = match (symbols.is_empty(), dynamic.is_empty()) {
            (false, _) => Source::SymbolTable,
            (true, false) => Source::DynamicSymbols,
            (true, true) => Source::None,
        };
        symbols.extend(dynamic);
        SymbolTable { symbols: sorted(symbols), source }
    }

    /// Returns the name of the function that contains an address. `known` is the name in the debug
    /// information, which is returned if the table has no better name.
    ///
    /// A function of a C library often has several names. Debug information contains only one of
    /// them, which may be internal, such as `__GI___strdup`. For a static function in a namespace,
    /// g++ writes only the last part of the name into debug information, while the symbol has the
    /// whole mangled name.
    pub fn name(&self, address: u64, known: Option<&'a str>) -> Option<&'a str> {
        let names = self.names(address);
        let public = names.iter().take_while(|symbol| symbol.is_public);
        let key = |symbol: &&Symbol| (underscores(symbol.name), Some(symbol.name) != known);
        if let Some(best) = public.min_by_key(key) {
            return Some(best.name);
        }
        let Some(known) = known else { return Some(names.first()?.name) };
        let whole = names.iter().find(|symbol| is_mangled(symbol.name) && !is_mangled(known));
        // The symbol may be the name of a part that the compiler has split off from the function,
        // such as `_Z1fv.cold`.
        Some(whole.map_or(known, |symbol| symbol.name.split('.').next().unwrap_or(known)))
    }

    /// Returns all functions whose size is known, as (address, size, name). The name may be
    /// mangled.
    pub fn all(&self) -> impl Iterator<Item = (u64, u64, &'a str)> + '_ {
        let sized = self.symbols.iter().filter(|symbol| symbol.bytes > 0);
        sized.map(|symbol| (symbol.address, symbol.bytes, symbol.name))
    }

    /// Returns all names of the function that contains an address.
    fn names(&self, address: u64) -> &[Symbol<'a>] {
        let after = self.symbols.partition_point(|symbol| symbol.address <= address);
        let Some(last) = self.symbols[..after].last() else { return &[] };
        let first = self.symbols.partition_point(|symbol| symbol.address < last.address);
        let names = &self.symbols[first..after];
        // A function in assembly often has no size, so it is assumed to extend to the next
        // function.
        let bytes = names.iter().map(|symbol| symbol.bytes).max().unwrap_or(0);
        if bytes == 0 || address - last.address < bytes {
            names
        } else {
            &[]
        }
    }
}

/// Returns the number of underscores at the beginning of a name. A name with more underscores is
/// more internal. The underscore of a mangled name does not count.
fn underscores(name: &str) -> usize {
    if is_mangled(name) {
        0
    } else {
        name.len() - name.trim_start_matches('_').len()
    }
}

/// Returns whether a name is mangled. A mangled name encodes namespaces and types of C++ or Rust.
fn is_mangled(name: &str) -> bool {
    name.starts_with("_Z") || name.starts_with("_R")
}

/// Lists the functions in a symbol table of a file. Includes labels in assembly, because functions
/// in assembly often have neither a type nor a size.
fn functions<'a, 'b>(
    object: &'b File<'a, impl ReadRef<'a>>,
    symbols: impl Iterator<Item = impl ObjectSymbol<'a>> + 'b,
) -> impl Iterator<Item = Symbol<'a>> + 'b {
    let is_code = |section| {
        let flags = object.section_by_index(section).map(|section| section.flags());
        matches!(flags, Ok(SectionFlags::Elf { sh_flags }) if sh_flags & u64::from(SHF_EXECINSTR) != 0)
    };
    symbols.filter_map(move |symbol| {
        let name = symbol.name().ok()?;
        // On AArch64, labels such as $x and $d distinguish code from data.
        let is_label = symbol.kind() == SymbolKind::Unknown
            && !name.is_empty()
            && !name.starts_with('$')
            && symbol.section_index().is_some_and(is_code);
        let is_function = symbol.kind() == SymbolKind::Text && symbol.is_definition();
        (is_label || is_function).then_some(Symbol {
            address: symbol.address(),
            bytes: symbol.size(),
            is_public: symbol.scope() == SymbolScope::Dynamic,
            name,
        })
    })
}

/// Sorts symbols as [`SymbolTable`] requires, and removes labels inside of functions.
fn sorted(mut symbols: Vec<Symbol>) -> Vec<Symbol> {
    symbols.sort_unstable_by(|a, b| {
        let key = |symbol: &Symbol| {
            (!symbol.is_public, symbol.bytes == 0, underscores(symbol.name), symbol.name.len())
        };
        (a.address, key(a), a.name).cmp(&(b.address, key(b), b.name))
    });
    let (mut begin, mut end) = (0, 0);
    symbols.retain(|symbol| {
        if symbol.address.saturating_add(symbol.bytes) > end {
            (begin, end) = (symbol.address, symbol.address.saturating_add(symbol.bytes));
        }
        symbol.bytes > 0 || symbol.address >= end || symbol.address == begin
    });
    symbols
}

/// Reads the symbol file that Fedora embeds in stripped files, in the section .gnu_debugdata. It
/// contains the functions that are not dynamic symbols.
fn symbols_inside(object: &Elf) -> Option<Vec<u8>> {
    let compressed = object.section_by_name(".gnu_debugdata")?.data().ok()?;
    let mut bytes = Vec::new();
    XzReader::new_mem_limit(compressed, false, XZ_MEMORY_KIB)
        .take(SYMBOLS_BYTES_MAX)
        .read_to_end(&mut bytes)
        .ok()?;
    Some(bytes)
}

/// Returns the demangled name of a function. The demangler rejects some conditions in templates,
/// such as those of `std::string::assign`. In this case, returns the name without template
/// arguments and parameters.
pub fn demangled(name: &str) -> String {
    let plain = |name: String| demangle_auto(name.into(), None).into_owned();
    let whole = plain(name.to_string());
    if !is_mangled(&whole) {
        return whole;
    }
    // In a mangled name, `E` ends a nested name, and `v` means that there are no parameters.
    let begins = (3..name.len()).rev().filter_map(|end| name.get(..end));
    let mut shorter =
        begins.flat_map(|begin| ["Ev", "v"].map(|end| plain(format!("{begin}{end}"))));
    let is_whole = |found: &String| {
        // The last part of the name, which the mangled name contains after its length.
        let last = found.trim_end_matches("()").rsplit("::").next().unwrap_or_default();
        !last.is_empty() && name.contains(&format!("{}{last}", last.len()))
    };
    let shorter =
        shorter.find(|found| !is_mangled(found) && !has_return_type(found) && is_whole(found));
    shorter.map_or(whole, |name| name.trim_end_matches("()").to_string())
}

/// Returns whether a demangled name begins with a return type, as names of template functions do.
fn has_return_type(name: &str) -> bool {
    let mut depth = 0;
    name.chars().any(|c| {
        depth += i32::from(c == '<') - i32::from(c == '>');
        c == ' ' && depth == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_name_with_an_unparsable_template_is_left_unchanged() {
        let assign = "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE6assign\
                      ISt17basic_string_viewIcS2_EEENSt9enable_ifIXsrSt6__and_IJSt14is_convertible\
                      IRKT_S7_ESt6__not_ISA_IPSC_PKS4_EESF_ISA_ISD_PKcEEEE5valueERS4_E4typeESD_";
        let string =
            "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >";
        assert_eq!(demangled(assign), format!("{string}::assign"));
        let swap = "_ZSt4swapIiENSt9enable_ifIXsrSt6__and_IJSt6__not_ISt15__is_tuple_likeIT_EE\
                    St21is_move_constructibleIS4_ESt18is_move_assignableIS4_EEE5valueEvE4typeERS4_SE_";
        assert_eq!(demangled(swap), "std::swap");
        let fill = "_ZSt9__fill_a1IPddEN9__gnu_cxx11__enable_ifIXsrSt11__is_scalarIT0_E7__valueEvE6__typeE\
                    T_S8_RKS4_";
        assert_eq!(demangled(fill), "std::__fill_a1");
        // clang 19 encodes the kind of non-type template parameters: `Tn`.
        let tuple = "_ZNSt5tupleIJPiSt14default_deleteIA_iEEEC2ILb1ETnNSt9enable_ifIXclsr17_TupleConstraintsI\
                     XT_ES0_S3_EE37__is_implicitly_default_constructibleEEbE4typeELb1EEEv";
        assert_eq!(demangled(tuple), "std::tuple<int*, std::default_delete<int []> >::tuple");
        assert_eq!(demangled("_ZN3app4workEv"), "app::work()");
        assert_eq!(demangled("main"), "main");
        assert_eq!(demangled("_Z"), "_Z");
        assert_eq!(demangled("_ZGARBAGE"), "_ZGARBAGE");
    }
}

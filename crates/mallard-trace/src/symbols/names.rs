//! Looks up the functions of one module.

use super::debug_files::{DebugFiles, Places};
use super::dwarf::{DebugInfo, Found};
use super::files::{Elf, Files};
use super::table::{demangled, Source, SymbolTable};
use crate::modules::Module;
use object::read::{Object, ObjectSegment};
use std::panic::{catch_unwind, AssertUnwindSafe};

/// A function at an address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Function {
    /// The demangled name.
    pub name: String,
    /// The source file.
    pub file: Option<String>,
    /// The line of the call.
    pub line: Option<u32>,
}

/// The functions of one module.
pub(super) struct Names {
    pub source: Source,
    /// The functions at each offset, the outermost first. A list is empty if no function is known.
    /// Only the outermost function may have no name.
    pub functions: Vec<Vec<Function>>,
    /// The build-ids for which no debug information was found.
    pub missing: Vec<String>,
}

impl Names {
    /// Makes a value without any names. `count` is the number of offsets.
    pub fn none(count: usize) -> Names {
        Names { source: Source::None, functions: vec![Vec::new(); count], missing: Vec::new() }
    }
}

/// Looks up return addresses, which are offsets in the module's file. Finds no names if the file is
/// corrupt.
pub(super) fn of_module(module: &Module, offsets: &[u64], places: Places) -> Names {
    catch_unwind(AssertUnwindSafe(|| try_of_module(module, offsets, places)))
        .unwrap_or_else(|_| Names::none(offsets.len()))
}

fn try_of_module(module: &Module, offsets: &[u64], places: Places) -> Names {
    let files = Files::default();
    let from = DebugFiles::new(module, places, &files);
    let binary = from.binary();
    let separate = from.separate(binary.as_ref().map(|(_, object)| object));
    let objects = || binary.iter().chain(&separate);

    let table = SymbolTable::read(objects().map(|(_, object)| object), &files);
    // The search begins with the last file, because that file has more debug information.
    let debug = objects().rev().find_map(|(path, object)| DebugInfo::open(object, path, &from));
    let mut names = Names { source: table.source, ..Names::none(offsets.len()) };
    // The addresses are those in the program itself, if its file exists. In a separate file with
    // debug information, the offsets may differ.
    let segments = objects().next().map(|(_, object)| object);
    for (functions, &offset) in names.functions.iter_mut().zip(offsets) {
        let Some(address) = segments.and_then(|object| address_of(object, offset)) else {
            continue;
        };
        let found = debug.as_ref().map(|debug| debug.functions(address)).unwrap_or_default();
        if !found.is_empty() {
            names.source = Source::Dwarf;
        }
        *functions = named(found, address, &table);
    }
    // A module whose path is not absolute, such as [vdso], is not a file.
    if debug.is_none() && module.path.has_root() && !module.build_id.is_empty() {
        from.missing.borrow_mut().push(module.build_id.clone());
    }
    names.missing = from.missing.take();
    names
}

/// Returns the link-time address of the call in front of a return address.
fn address_of(object: &Elf, offset: u64) -> Option<u64> {
    let call = offset.checked_sub(1)?;
    object.segments().find_map(|segment| {
        let (begin, bytes) = segment.file_range();
        let bytes = bytes.max(segment.size());
        let inside = call.checked_sub(begin).filter(|&inside| inside < bytes)?;
        Some(segment.address().wrapping_add(inside))
    })
}

/// Completes the names that debug information has for the functions at an address, the outermost
/// first. If there is no debug information, returns a name from the symbol table.
fn named<'a>(mut found: Vec<Found<'a>>, address: u64, table: &SymbolTable<'a>) -> Vec<Function> {
    let known = found.first().and_then(|outer| outer.name);
    let name = table.name(address, known);
    match found.first_mut() {
        Some(outer) => outer.name = name,
        None if name.is_some() => found.push(Found { name, file: None, line: None }),
        None => {}
    }
    // If the supplementary file (made by dwz) is missing, inlined functions have no names. Such a
    // function is left out, so it appears as a part of the function into which it was inlined.
    let mut is_outer = true;
    found.retain(|function| std::mem::take(&mut is_outer) || function.name.is_some());
    found
        .into_iter()
        .map(|Found { name, file, line }| Function {
            name: name.map(demangled).unwrap_or_default(),
            file,
            line,
        })
        .collect()
}

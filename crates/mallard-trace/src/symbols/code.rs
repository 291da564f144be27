//! Finds the code of functions, including the copies that were inlined into other functions.

use super::debug_files::{DebugFiles, Places};
use super::dwarf::{DebugInfo, Slice};
use super::files::Files;
use super::table::{demangled, SymbolTable};
use crate::modules::Module;
use addr2line::gimli;
use gimli::{AttributeValue, DebuggingInformationEntry, Unit, UnitOffset, UnitRef};
use std::collections::HashMap;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// The maximum number of entries in a chain of references. An entry without a name refers to
/// another entry, which has the name of the function.
const REFERENCES_MAX: usize = 16;

/// The code of some functions in a module.
#[derive(Default)]
pub struct Code {
    /// The contiguous parts of the functions, each as (index of the wanted function, first address,
    /// address after the last byte).
    pub parts: Vec<(u16, u64, u64)>,
    /// Whether the module has debug information. Without it, inlined copies are unknown.
    pub has_debug_information: bool,
}

/// Finds the code of functions in a module. `wanted` returns the indices of the wanted functions
/// that have a given demangled name.
pub fn code_of(module: &Module, wanted: &mut dyn FnMut(&str) -> Vec<u16>) -> Code {
    // The library that reads object files may panic if a file is corrupt.
    catch_unwind(AssertUnwindSafe(|| try_code_of(module, wanted))).unwrap_or_default()
}

fn try_code_of(module: &Module, wanted: &mut dyn FnMut(&str) -> Vec<u16>) -> Code {
    let (files, fetched) = (Files::default(), HashMap::new());
    let from = DebugFiles::new(module, Places { folders: &[], fetched: &fetched }, &files);
    let binary = from.binary();
    let separate = from.separate(binary.as_ref().map(|(_, object)| object));
    let objects = || binary.iter().chain(&separate);
    let table = SymbolTable::read(objects().map(|(_, object)| object), &files);
    let debug = objects().rev().find_map(|(path, object)| DebugInfo::open(object, path, &from));
    let mut finder = Finder { wanted, known: HashMap::new(), table: &table, code: Code::default() };
    for (address, bytes, name) in table.all() {
        finder.add(name, &[(address, address.saturating_add(bytes))]);
    }
    if let Some(debug) = &debug {
        finder.code.has_debug_information = true;
        finder.search(debug);
    }
    let mut code = finder.code;
    code.parts.sort_unstable();
    code.parts.dedup();
    code
}

struct Finder<'a, 'b> {
    wanted: &'b mut dyn FnMut(&str) -> Vec<u16>,
    /// The indices of the wanted functions with each name that was already looked up.
    known: HashMap<&'a str, Vec<u16>>,
    table: &'b SymbolTable<'a>,
    code: Code,
}

impl<'a> Finder<'a, '_> {
    /// Adds the code of a function, if the function is wanted. `name` may be mangled.
    fn add(&mut self, name: &'a str, ranges: &[(u64, u64)]) {
        let numbers = self.known.entry(name).or_insert_with(|| {
            let name = without_clone(name);
            (self.wanted)(&demangled(name))
        });
        for &number in numbers.iter() {
            self.code.parts.extend(ranges.iter().map(|&(begin, end)| (number, begin, end)));
        }
    }

    /// Searches debug information for wanted functions.
    fn search(&mut self, debug: &DebugInfo<'a>) {
        let dwarf = &*debug.dwarf;
        let units = Units([units(dwarf), dwarf.sup().map(units).unwrap_or_default()]);
        for (_, unit) in &units.0[OWN] {
            let own = UnitRef::new(dwarf, unit);
            let split = unit.dwo_id.and_then(|_| {
                let (begin, _) = ranges(own.unit_ranges().ok()?).into_iter().next()?;
                debug.unit(begin)
            });
            self.search_unit(split.unwrap_or(own), &units);
        }
    }

    fn search_unit(&mut self, unit: UnitRef<'_, Slice<'a>>, units: &Units<'a>) {
        let mut entries = unit.entries();
        while let Ok(Some((_, entry))) = entries.next_dfs() {
            let is_inlined = entry.tag() == gimli::DW_TAG_inlined_subroutine;
            if !is_inlined && entry.tag() != gimli::DW_TAG_subprogram {
                continue;
            }
            let Ok(found) = unit.die_ranges(entry) else { continue };
            let ranges = ranges(found);
            let Some(&(begin, _)) = ranges.first() else { continue };
            let name = name_of(unit, entry, (units, OWN), REFERENCES_MAX);
            // The name in the symbol table is often better than the name in the debug information,
            // as `SymbolTable::name` explains.
            let name = if is_inlined { name } else { self.table.name(begin, name) };
            if let Some(name) = name {
                self.add(name, &ranges);
            }
        }
    }
}

/// The index in [`Units`] of the module's own debug information.
const OWN: usize = 0;
/// The index in [`Units`] of the debug information that dwz extracted from several modules.
const SHARED: usize = 1;

/// The units of debug information, with their offsets. There are two lists: one for the module's
/// own debug information, and one for information that several modules share.
struct Units<'a>([Vec<(usize, Unit<Slice<'a>>)>; 2]);

impl<'a> Units<'a> {
    /// Returns the unit that contains an offset, and the position of the offset within the unit.
    fn at(&self, which: usize, place: usize) -> Option<(&Unit<Slice<'a>>, UnitOffset)> {
        let units = &self.0[which];
        let after = units.partition_point(|&(begin, _)| begin <= place);
        let (begin, unit) = units.get(after.checked_sub(1)?)?;
        Some((unit, UnitOffset(place - begin)))
    }
}

fn units<'a>(dwarf: &gimli::Dwarf<Slice<'a>>) -> Vec<(usize, Unit<Slice<'a>>)> {
    let mut units = Vec::new();
    let mut headers = dwarf.units();
    while let Ok(Some(header)) = headers.next() {
        let Some(begin) = header.offset().as_debug_info_offset() else { continue };
        if let Ok(unit) = dwarf.unit(header) {
            units.push((begin.0, unit));
        }
    }
    units
}

/// Reads address ranges. Omits ranges that begin at 0, because the linker has removed the code in
/// such a range.
fn ranges(mut from: gimli::RangeIter<Slice>) -> Vec<(u64, u64)> {
    let mut ranges = Vec::new();
    while let Ok(Some(range)) = from.next() {
        if range.begin != 0 && range.begin < range.end {
            ranges.push((range.begin, range.end));
        }
    }
    ranges
}

/// Returns the name of a function. This is the linkage name, which is mangled, or the plain name if
/// there is no linkage name. `units` has all units, and the index of the list that contains `unit`.
fn name_of<'a>(
    unit: UnitRef<'_, Slice<'a>>,
    entry: &DebuggingInformationEntry<'_, '_, Slice<'a>>,
    units: (&Units<'a>, usize),
    references: usize,
) -> Option<&'a str> {
    let value = |name| entry.attr_value(name).ok().flatten();
    let text = |value: AttributeValue<Slice<'a>>| {
        let text = unit.attr_string(value).ok()?;
        std::str::from_utf8(text.slice()).ok().filter(|text| !text.is_empty())
    };
    let for_linker = value(gimli::DW_AT_linkage_name).or(value(gimli::DW_AT_MIPS_linkage_name));
    if let Some(name) = for_linker.and_then(text) {
        return Some(name);
    }
    let (all, own) = units;
    let origin = value(gimli::DW_AT_abstract_origin).or(value(gimli::DW_AT_specification));
    let of_origin = origin.and_then(|origin| {
        let references = references.checked_sub(1)?;
        let (unit, at, which) = match origin {
            AttributeValue::UnitRef(at) => (unit, at, own),
            AttributeValue::DebugInfoRef(at) => {
                let (of, at) = all.at(own, at.0)?;
                (UnitRef::new(unit.dwarf, of), at, own)
            }
            AttributeValue::DebugInfoRefSup(at) => {
                let (of, at) = all.at(SHARED, at.0)?;
                (UnitRef::new(unit.dwarf.sup()?, of), at, SHARED)
            }
            _ => return None,
        };
        name_of(unit, &unit.entry(at).ok()?, (all, which), references)
    });
    of_origin.or_else(|| value(gimli::DW_AT_name).and_then(text))
}

/// Removes the suffix that the compiler adds to the name of a part or a copy of a function, as in
/// `parse.cold` or `_Z5parsev.part.0`.
fn without_clone(name: &str) -> &str {
    const MARKS: [&str; 6] = ["cold", "part", "isra", "constprop", "lto_priv", "llvm"];
    let is_mark = |(at, _): &(usize, &str)| {
        let word = name[at + 1..].split('.').next();
        word.is_some_and(|word| MARKS.contains(&word))
    };
    name.match_indices('.').find(is_mark).map_or(name, |(at, _)| &name[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_of_compiler_generated_function_clones_are_removed() {
        let cut = ["f.cold", "f.part.0", "f.isra.0.cold", "_Z1fv.constprop.2", "f.llvm.123", "f"];
        let [rest @ .., last] = cut.map(without_clone);
        assert_eq!((rest, last), (["f", "f", "f", "_Z1fv", "f"], "f"));
        let rust = "_ZN60_$LT$alloc..string..String$u20$as$u20$core..fmt..Display$GT$3fmt17h0E";
        assert_eq!(without_clone(rust), rust);
    }
}

//! Reads functions, inlined functions and lines from DWARF debug information, parts of which may be
//! in other files.

use super::debug_files::DebugFiles;
use super::files::{Elf, Files};
use addr2line::{gimli, Context, LookupContinuation, LookupResult, SplitDwarfLoad};
use gimli::{Dwarf, DwarfPackage, EndianSlice, RunTimeEndian, Section, UnitRef};
use object::read::Object;
use std::path::Path;
use std::sync::Arc;

pub(super) type Slice<'a> = EndianSlice<'a, RunTimeEndian>;

/// A function in debug information.
pub(super) struct Found<'a> {
    /// The name, which may be mangled. `None` if it is unknown.
    pub name: Option<&'a str>,
    pub file: Option<String>,
    pub line: Option<u32>,
}

/// The debug information of one module.
pub(super) struct DebugInfo<'a> {
    context: Context<Slice<'a>>,
    pub dwarf: Arc<Dwarf<Slice<'a>>>,
    package: Option<DwarfPackage<Slice<'a>>>,
    from: &'a DebugFiles<'a>,
}

impl<'a> DebugInfo<'a> {
    /// Opens the debug information in the file at `path`. Returns `None` if the file has no debug
    /// information.
    pub fn open(object: &Elf<'a>, path: &Path, from: &'a DebugFiles<'a>) -> Option<Self> {
        let files = from.files;
        let mut dwarf = Dwarf::load(|id| section(files, object, Some(id.name()))).ok()?;
        if dwarf.debug_info.reader().is_empty() {
            return None;
        }
        if let Some(shared) = from.supplementary(object, path) {
            dwarf.load_sup(|id| section(files, &shared, Some(id.name()))).ok()?;
        }
        let package = from.packages(path).iter().find_map(|place| {
            let object = files.open(place)?;
            let empty = section(files, &object, None).ok()?;
            DwarfPackage::load(|id| section(files, &object, id.dwo_name()), empty).ok()
        });
        let dwarf = Arc::new(dwarf);
        Some(DebugInfo {
            context: Context::from_arc_dwarf(dwarf.clone()).ok()?,
            dwarf,
            package,
            from,
        })
    }

    /// Returns the functions at an address. The first one contains the address, and the others were
    /// inlined there, the innermost last. Returns an empty list if no function is known.
    pub fn functions(&self, address: u64) -> Vec<Found<'a>> {
        let mut lookup = self.context.find_frames(address);
        let mut frames = loop {
            match lookup {
                LookupResult::Output(Ok(frames)) => break frames,
                LookupResult::Output(Err(_)) => return Vec::new(),
                LookupResult::Load { load, continuation } => {
                    lookup = continuation.resume(self.split(&load));
                }
            }
        };
        let mut found = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            let name =
                frame.function.and_then(|function| std::str::from_utf8(function.name.slice()).ok());
            if name.is_none() && self.is_split(address) {
                // Without the file of split debug information, it is unknown whether this line
                // belongs to an inlined function.
                return Vec::new();
            }
            let location = frame.location.as_ref();
            found.push(Found {
                name: name.filter(|name| !name.is_empty()),
                file: location.and_then(|location| location.file).map(str::to_string),
                line: location.and_then(|location| location.line),
            });
        }
        // addr2line returns the innermost function first.
        found.reverse();
        found
    }

    /// Returns the unit that contains an address, even if the unit is in split debug information.
    pub fn unit(&self, address: u64) -> Option<UnitRef<'_, Slice<'a>>> {
        let mut lookup = self.context.find_dwarf_and_unit(address);
        loop {
            match lookup {
                LookupResult::Output(unit) => return unit,
                LookupResult::Load { load, continuation } => {
                    lookup = continuation.resume(self.split(&load));
                }
            }
        }
    }

    /// Returns whether the functions at an address are in split debug information.
    fn is_split(&self, address: u64) -> bool {
        let unit = self.context.find_dwarf_and_unit(address).skip_all_loads();
        unit.is_some_and(|unit| unit.dwo_id.is_some())
    }

    /// Reads split debug information, from a package or from a separate file.
    fn split(&self, load: &SplitDwarfLoad<Slice<'a>>) -> Option<Arc<Dwarf<Slice<'a>>>> {
        let packed = self.package.as_ref().and_then(|package| {
            package.find_cu(load.dwo_id, &load.parent).ok().flatten().map(Arc::new)
        });
        packed.or_else(|| {
            let compiled_in = load.comp_dir.map_or(&[][..], |folder| folder.slice());
            let places = self.from.split(compiled_in, load.path?.slice());
            places.iter().find_map(|place| self.split_in(place, load))
        })
    }

    /// Reads the split debug information in the file at `path`, if the file belongs to this module.
    fn split_in(
        &self,
        path: &Path,
        load: &SplitDwarfLoad<Slice<'a>>,
    ) -> Option<Arc<Dwarf<Slice<'a>>>> {
        let files = self.from.files;
        let object = files.open(path)?;
        let mut dwarf = Dwarf::load(|id| section(files, &object, id.dwo_name())).ok()?;
        dwarf.make_dwo(&load.parent);
        let header = dwarf.units().next().ok()??;
        let unit = dwarf.unit(header).ok()?;
        (unit.dwo_id == Some(load.dwo_id)).then(|| Arc::new(dwarf))
    }
}

/// Reads a section. Returns an empty section if `name` is `None`.
fn section<'a>(
    files: &'a Files,
    object: &Elf<'a>,
    name: Option<&str>,
) -> Result<Slice<'a>, gimli::Error> {
    let endian = if object.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
    Ok(EndianSlice::new(name.map_or(&[], |name| files.section(object, name)), endian))
}

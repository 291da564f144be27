//! Looks up the functions and source lines of call stacks after the recording. Reads the program's
//! own files, and debug information that is found by build-id.

mod code;
mod debug_files;
mod dwarf;
mod files;
mod layout;
mod names;
mod table;

use crate::modules::{Frame, Module};
pub use code::{code_of, Code};
use debug_files::Places;
pub use layout::Layout;
pub use names::Function;
use names::Names;
use rayon::prelude::*;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};
pub use table::Source;

/// The functions of all frames.
pub struct Symbols {
    /// The source of the names, for each module.
    pub sources: Vec<Source>,
    /// The functions of each frame. The first one contains the frame's code, and the others were
    /// inlined there, the innermost last.
    functions: Vec<Vec<Function>>,
}

/// A row of the table `frames`.
pub struct Row<'a> {
    /// The index of the frame.
    pub frame: u32,
    /// The index of the frame's module.
    pub module: Option<u32>,
    /// The return address as an offset in the file of the module. For a frame without a module, the
    /// return address itself.
    pub offset: Option<u64>,
    /// The function.
    pub function: Cow<'a, str>,
    /// The source file.
    pub file: Option<&'a str>,
    /// The line of the call.
    pub line: Option<u32>,
    /// The frame into whose function the compiler inlined this function. `None` for other
    /// functions.
    pub inline_of: Option<u32>,
}

/// The settings of a lookup of names.
#[derive(Debug, Clone, Copy)]
pub struct Lookup<'a> {
    /// Directories with debug information. If `None`, nothing is looked up.
    pub folders: Option<&'a [PathBuf]>,
    /// The maximum time for fetching missing debug information from servers. If `None`, nothing is
    /// fetched.
    pub fetch_for: Option<Duration>,
}

/// Looks up the functions of all frames. Reads each module once, and several modules in parallel.
/// Before a file is fetched, calls `progress` with its number and the total number of files.
pub fn look_up(
    modules: &[Module],
    frames: &[Frame],
    lookup: Lookup,
    progress: &mut dyn FnMut(usize, usize),
) -> Symbols {
    let mut of_module: Vec<Vec<(u32, u64)>> = vec![Vec::new(); modules.len()];
    let mut functions = vec![Vec::new(); frames.len()];
    for (number, frame) in frames.iter().enumerate() {
        match frame {
            Frame::Code { module, offset } => {
                of_module[*module as usize].push((number as u32, *offset))
            }
            Frame::Unknown { address, .. } => functions[number] = vec![unnamed("", *address)],
            Frame::Named(name) => {
                functions[number] = vec![Function { name: name.clone(), ..Function::default() }]
            }
            Frame::Known { .. } => functions[number] = vec![Function::default()],
        }
    }
    let mut fetched = HashMap::new();
    let names_of = |module: usize, fetched: &HashMap<String, PathBuf>| {
        let offsets: Vec<u64> = of_module[module].iter().map(|&(_, offset)| offset).collect();
        names_in(&modules[module], &offsets, lookup.folders, fetched)
    };
    let mut names: Vec<Names> =
        (0..modules.len()).into_par_iter().map(|module| names_of(module, &fetched)).collect();
    if let Some(time) = lookup.fetch_for {
        let deadline = Instant::now() + time;
        let mut tried = HashSet::new();
        // A fetched file may need a supplementary file (made by dwz), which the second round
        // fetches.
        for _ in 0..2 {
            let missing = names.iter().flat_map(|names| names.missing.iter().cloned());
            let wanted: Vec<String> = missing.filter(|id| tried.insert(id.clone())).collect();
            for (number, id) in wanted.iter().enumerate() {
                progress(number + 1, wanted.len());
                let path = debug_files::fetch(id, deadline);
                fetched.extend(path.map(|path| (id.clone(), path)));
            }
            names.par_iter_mut().enumerate().for_each(|(module, names)| {
                if names.missing.iter().any(|id| wanted.contains(id) && fetched.contains_key(id)) {
                    *names = names_of(module, &fetched);
                }
            });
        }
    }
    let mut sources = Vec::new();
    for (names, frames) in names.into_iter().zip(of_module) {
        sources.push(names.source);
        for (found, (number, _)) in names.functions.into_iter().zip(frames) {
            functions[number as usize] = found;
        }
    }
    Symbols { sources, functions }
}

/// Looks up return addresses in one module. Names a function without a name by its module and
/// offset.
fn names_in(
    module: &Module,
    offsets: &[u64],
    folders: Option<&[PathBuf]>,
    fetched: &HashMap<String, PathBuf>,
) -> Names {
    let module_name = &*module.name();
    let mut names = match folders.filter(|_| !offsets.is_empty()) {
        Some(folders) => names::of_module(module, offsets, Places { folders, fetched }),
        None => Names::none(offsets.len()),
    };
    for (functions, &offset) in names.functions.iter_mut().zip(offsets) {
        match functions.first_mut() {
            None => functions.push(unnamed(module_name, offset)),
            Some(outer) if outer.name.is_empty() => {
                outer.name = unnamed(module_name, offset).name;
            }
            Some(_) => {}
        }
    }
    names
}

fn unnamed(module: &str, offset: u64) -> Function {
    let name =
        if module.is_empty() { format!("{offset:#x}") } else { format!("{module}+{offset:#x}") };
    Function { name, ..Function::default() }
}

impl Symbols {
    /// Stores names that another program has looked up. Each frame must have at least one function,
    /// and its outermost function is first.
    pub fn imported(modules: usize, functions: Vec<Vec<Function>>) -> Symbols {
        Symbols { sources: vec![Source::Imported; modules], functions }
    }

    /// Returns the functions of a frame, the outermost first, if they are from debug information.
    pub fn debug_information(&self, module: u32, frame: u32) -> Option<&[Function]> {
        let source = self.sources.get(module as usize)?;
        (*source == Source::Dwarf).then(|| &*self.functions[frame as usize])
    }

    /// Returns the functions of a frame. The first one contains the frame's code, and the others
    /// were inlined there, the innermost last.
    pub fn functions(&self, frame: u32) -> &[Function] {
        self.functions.get(frame as usize).map_or(&[], Vec::as_slice)
    }

    /// Returns the rows of the table `frames`: first one row for each frame, then the rows of
    /// inlined functions.
    pub fn rows<'a>(&'a self, frames: &[Frame]) -> Vec<Row<'a>> {
        let row = |number: u32, frame: &Frame, function: &'a Function, inline_of| {
            let (module, offset) = match *frame {
                Frame::Code { module, offset } => (Some(module), Some(offset)),
                Frame::Unknown { address, .. } => (None, Some(address)),
                Frame::Named(_) => (None, None),
                Frame::Known { module } => (module, None),
            };
            Row {
                frame: number,
                module,
                offset,
                function: Cow::Borrowed(&function.name),
                file: function.file.as_deref(),
                line: function.line,
                inline_of,
            }
        };
        let mut rows = Vec::new();
        for (number, (frame, functions)) in frames.iter().zip(&self.functions).enumerate() {
            rows.push(row(number as u32, frame, &functions[0], None));
        }
        for (number, (frame, functions)) in frames.iter().zip(&self.functions).enumerate() {
            let mut outer = number as u32;
            for function in &functions[1..] {
                let inner = rows.len() as u32;
                rows.push(row(inner, frame, function, Some(outer)));
                outer = inner;
            }
        }
        rows
    }
}

//! Functions and lines of the code that call stacks consist of, looked up offline: in the program's
//! own files, and in debug information that is found by build-id.

mod debug_files;
mod names;

use crate::modules::{Frame, Module};
use names::Names;
use rayon::prelude::*;
use std::borrow::Cow;
use std::path::PathBuf;

/// Where the names of a module come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// DWARF debug information: functions, inlined functions, files and lines.
    Dwarf,
    /// The symbol table.
    SymbolTable,
    /// The symbols that other modules can link to. Other functions have no name.
    DynamicSymbols,
    /// No names: the file is missing, was replaced, or is stripped.
    None,
    /// Another program has looked the names up, and the trace was imported from its file.
    Imported,
}

impl Source {
    /// The word for this source in the table `modules`.
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

/// The functions of all frames.
pub struct Symbols {
    /// Where the names of each module come from.
    pub sources: Vec<Source>,
    /// For each frame, the function that contains it, and then the functions that were inlined there,
    /// the innermost last.
    functions: Vec<Vec<Function>>,
}

/// A row of the table `frames`.
pub struct Row<'a> {
    /// Number of the frame.
    pub frame: u32,
    /// The module.
    pub module: Option<u32>,
    /// The return address as an offset in the file of the module. Without a module, the address itself.
    pub offset: Option<u64>,
    /// The function.
    pub function: Cow<'a, str>,
    /// The source file.
    pub file: Option<&'a str>,
    /// The line of the call.
    pub line: Option<u32>,
    /// The frame into whose function the compiler inlined this function.
    pub inline_of: Option<u32>,
}

/// Looks up all frames. Each module is read once, and several modules are read at the same time.
/// `folders` may have debug information. If `folders` is `None`, nothing is looked up.
pub fn look_up(modules: &[Module], frames: &[Frame], folders: Option<&[PathBuf]>) -> Symbols {
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
    let look_up_module = |(module, frames): (&Module, &Vec<(u32, u64)>)| {
        let module_name = module.path.rsplit('/').next().unwrap_or_default();
        let offsets: Vec<u64> = frames.iter().map(|&(_, offset)| offset).collect();
        let mut names = Names { source: Source::None, functions: vec![Vec::new(); offsets.len()] };
        if let Some(folders) = folders.filter(|_| !offsets.is_empty()) {
            names = names::of_module(module, &offsets, folders);
        }
        for (functions, &offset) in names.functions.iter_mut().zip(&offsets) {
            if functions.is_empty() {
                *functions = vec![unnamed(module_name, offset)];
            }
        }
        names
    };
    let looked_up: Vec<Names> = modules.par_iter().zip(&of_module).map(look_up_module).collect();
    let mut sources = Vec::new();
    for (names, frames) in looked_up.into_iter().zip(of_module) {
        sources.push(names.source);
        for (found, (number, _)) in names.functions.into_iter().zip(frames) {
            functions[number as usize] = found;
        }
    }
    Symbols { sources, functions }
}

fn unnamed(module: &str, offset: u64) -> Function {
    let name =
        if module.is_empty() { format!("{offset:#x}") } else { format!("{module}+{offset:#x}") };
    Function { name, ..Function::default() }
}

impl Symbols {
    /// Takes names that another program has looked up. Each frame has at least one function, the
    /// outermost first.
    pub fn imported(modules: usize, functions: Vec<Vec<Function>>) -> Symbols {
        Symbols { sources: vec![Source::Imported; modules], functions }
    }

    /// The rows of the table `frames`: first one row for each frame, then the rows of inlined functions.
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

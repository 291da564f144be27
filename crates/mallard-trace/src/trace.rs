//! Reads a trace: the manifest, the tables, and the call stacks with their functions.

use crate::error::Result;
use crate::hash::NumberMap;
use crate::manifest::Manifest;
use crate::modules::{Frame, Module};
use crate::names::is_wrapper;
use crate::site_row::{self, SiteRow};
use crate::symbols::{self, Function, Lookup};
use crate::tables::schema::{FRAMES, MODULES, SITES, STACKS};
use crate::tables::{Field, Schema, Table, Tables};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A trace: the directory of tables that [`crate::import::import`] makes.
pub struct Trace {
    folder: PathBuf,
    manifest: Manifest,
    is_redacted: bool,
    /// Functions of frames whose names `fetch_names` has found.
    found: BTreeMap<u32, Vec<Function>>,
}

impl Trace {
    /// Opens the trace in a directory. Reads only the manifest.
    pub fn open(folder: &Path) -> Result<Trace> {
        let (folder, manifest) = (folder.to_path_buf(), Manifest::read(folder)?);
        Ok(Trace { folder, manifest, is_redacted: false, found: BTreeMap::new() })
    }

    /// Returns the same trace, read without the paths of files, the program's arguments and
    /// environment, and the host name. The files are unchanged.
    pub fn redacted(self) -> Trace {
        let mut manifest = self.manifest;
        manifest.redact();
        Trace { manifest, is_redacted: true, ..self }
    }

    /// Returns the directory of the trace.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the manifest: what was recorded, what is missing, and the totals of the whole
    /// program.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Reads all sites, in the order of their call stacks.
    pub fn sites(&self) -> Result<Vec<SiteRow>> {
        site_row::read(&self.table(&SITES)?)
    }

    /// Reads the call stacks and their functions.
    pub fn stacks(&self) -> Result<Stacks> {
        let (stacks, frames) = (self.table(&STACKS)?, self.table(&FRAMES)?);
        let mut stacks = Stacks::read(&stacks, &frames, &self.table(&MODULES)?)?;
        stacks.name(&self.found);
        Ok(stacks)
    }

    /// Reads the list of modules, the files with code.
    pub(crate) fn modules(&self) -> Result<Vec<Module>> {
        let table = self.table(&MODULES)?;
        let rows = table.texts("path")?.into_iter().zip(table.texts("build_id")?);
        Ok(rows.map(|(path, build_id)| Module { path: path.into(), build_id }).collect())
    }

    /// Fetches the debug information of modules that had none when the trace was made, for at most
    /// `time`. `stacks` then returns the function names found in it. The files of the trace are
    /// unchanged. Before each file is fetched, `progress` gets its number and the total number of
    /// files.
    pub fn fetch_names(
        &mut self,
        time: Duration,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<()> {
        let modules = self.modules()?;
        let symbols = self.table(&MODULES)?.texts("symbols")?;
        let can_gain = |module: usize| {
            symbols.get(module).is_some_and(|from| from != "dwarf" && from != "imported")
        };
        let stacks = self.stacks()?;
        let frame = |number| match stacks.place_of(number) {
            (Some(module), Some(offset)) if can_gain(module) => {
                Frame::Code { module: module as u32, offset }
            }
            _ => Frame::Known { module: None },
        };
        let frames: Vec<Frame> = (0..stacks.frames() as u32).map(frame).collect();
        let lookup = Lookup { folders: Some(&[]), fetch_for: Some(time) };
        let symbols = symbols::look_up(&modules, &frames, lookup, progress);
        for (number, frame) in (0..).zip(&frames) {
            if let Frame::Code { module, .. } = *frame {
                let found = symbols.debug_information(module, number);
                self.found.extend(found.map(|functions| (number, functions.to_vec())));
            }
        }
        Ok(())
    }

    /// Opens any table. Fails if the number of rows differs from the number in the manifest. So a
    /// corrupt file cannot make a reader use more memory than the table needs.
    pub fn table(&self, schema: &'static Schema) -> Result<Table> {
        let table = Table::open(&self.folder, schema)?;
        let written = self.manifest.tables.iter().find(|written| written.name == schema.name);
        table.must_have(written.map_or(0, |written| written.rows), &self.folder)?;
        Ok(if self.is_redacted { table.redacted() } else { table })
    }
}

impl Trace {
    /// Copies a table, one row group at a time. Stops if writing to `tables` fails;
    /// [`Tables::finish`] then returns the error.
    pub fn copy(&self, schema: &'static Schema, tables: &mut Tables) -> Result<()> {
        let table = self.table(schema)?;
        let groups = table.groups();
        for &group in &groups {
            let read = |field: &Field| table.group_column(group, field.name);
            let columns = schema.fields.par_iter().map(read).collect::<Result<_>>()?;
            if !tables.write(schema, columns) {
                return Ok(());
            }
        }
        if groups.is_empty() {
            tables.write(schema, schema.empty());
        }
        Ok(())
    }
}

/// A function in a call stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameInfo<'a> {
    /// The demangled name, or `module+0x…`.
    pub function: &'a str,
    /// The source file; empty if unknown.
    pub file: &'a str,
    /// The line of the call.
    pub line: Option<u32>,
    /// The path of the module; empty if unknown.
    pub module: &'a str,
    /// Whether the compiler inlined the function into its caller.
    pub is_inlined: bool,
}

impl FrameInfo<'_> {
    /// Returns the file and line of a call without directories, such as `parser.cpp:120`. If the file
    /// is unknown, returns the module.
    pub fn place(&self) -> String {
        let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_string();
        match (name(self.file), self.line) {
            (file, _) if file.is_empty() => name(self.module),
            (file, Some(line)) => format!("{file}:{line}"),
            (file, None) => file,
        }
    }
}

/// The call stacks of a trace.
pub struct Stacks {
    /// Parent and frame of each node. The index of a parent is less than those of its children.
    nodes: Vec<(u32, u32)>,
    functions: Vec<String>,
    files: Vec<String>,
    lines: Vec<i64>,
    modules: Vec<i64>,
    offsets: Vec<i64>,
    module_paths: Vec<String>,
    /// For each frame with an inlined function, the frame of that function.
    inlined: NumberMap<u32, u32>,
}

impl Stacks {
    fn read(stacks: &Table, frames: &Table, modules: &Table) -> Result<Stacks> {
        let pairs = stacks.i64s("parent")?.into_iter().zip(stacks.i64s("frame")?);
        // Only a corrupt table has a node whose parent does not precede it.
        let parent_of = |node, parent| if (0..node).contains(&parent) { parent as u32 } else { 0 };
        let node = |(node, (parent, frame))| (parent_of(node, parent), frame as u32);
        let numbers = frames.i64s("frame")?.into_iter();
        let inlined = numbers.zip(frames.i64s("inline_of")?).filter(|&(_, outer)| outer >= 0);
        let mut functions = frames.texts("func")?;
        // Old versions of Mallard wrote an empty name for some inlined functions.
        functions.iter_mut().filter(|name| name.is_empty()).for_each(|name| name.push('?'));
        Ok(Stacks {
            nodes: (0..).zip(pairs).map(node).collect(),
            inlined: inlined.map(|(inner, outer)| (outer as u32, inner as u32)).collect(),
            functions,
            files: frames.texts("file")?,
            lines: frames.i64s("line")?,
            modules: frames.i64s("module")?,
            offsets: frames.i64s("offset")?,
            module_paths: modules.texts("path")?,
        })
    }

    /// Replaces the functions of frames by the functions in `found`. These frames had no inlined
    /// functions before.
    fn name(&mut self, found: &BTreeMap<u32, Vec<Function>>) {
        for (&frame, functions) in found {
            let (module, offset) = (self.modules[frame as usize], self.offsets[frame as usize]);
            let mut at = frame;
            for (i, function) in functions.iter().enumerate() {
                if i > 0 {
                    let inner = self.functions.len() as u32;
                    self.inlined.insert(at, inner);
                    at = inner;
                    self.functions.push(String::new());
                    self.files.push(String::new());
                    self.lines.push(-1);
                    self.modules.push(module);
                    self.offsets.push(offset);
                }
                self.functions[at as usize].clone_from(&function.name);
                self.files[at as usize] = function.file.clone().unwrap_or_default();
                self.lines[at as usize] = function.line.map_or(-1, i64::from);
            }
        }
    }

    /// Returns the functions of a call stack, the innermost first. The result is empty for the
    /// empty call stack and for an invalid index.
    pub fn functions(&self, node: i32) -> Vec<FrameInfo<'_>> {
        let mut functions = Vec::new();
        for frame in self.frames_of(node) {
            self.push_frame(frame, &mut functions);
        }
        functions
    }

    /// Returns the innermost function of a call stack that is not an allocation wrapper, or the
    /// innermost function if all are wrappers. Returns `None` for the empty call stack.
    pub(crate) fn allocating_function(&self, node: i32) -> Option<&str> {
        let first = self.innermost(node).next();
        let own = self.innermost(node).find(|info| !is_wrapper(info.function));
        own.or(first).map(|info| info.function)
    }

    /// Iterates over the functions of a call stack, the innermost first. Looks up each function
    /// only when the iterator reaches it, because a call stack with recursion has hundreds of
    /// functions and most callers need only the first few.
    pub fn innermost(&self, node: i32) -> impl Iterator<Item = FrameInfo<'_>> {
        self.frames_of(node).flat_map(|frame| self.functions_at(frame))
    }

    /// Splits a call stack into the call stack without the innermost frame, and that frame. Returns
    /// `None` for the empty call stack and for an invalid index. The shorter call stack always has
    /// a smaller index than `node`.
    pub fn split(&self, node: i32) -> Option<(i32, u32)> {
        let index = usize::try_from(node).ok().filter(|&node| node != 0)?;
        let &(parent, frame) = self.nodes.get(index)?;
        Some((parent as i32, frame))
    }

    /// Iterates over the frames of a call stack, the innermost first. There is one frame for each
    /// return address.
    pub fn frames_of(&self, node: i32) -> impl Iterator<Item = u32> + '_ {
        let mut node = node as u32;
        std::iter::from_fn(move || {
            let &(parent, frame) = self.nodes.get(node as usize).filter(|_| node != 0)?;
            node = parent;
            Some(frame)
        })
    }

    /// Returns the functions at a frame, the innermost first. There are several if the compiler
    /// inlined some.
    pub fn functions_at(&self, frame: u32) -> Vec<FrameInfo<'_>> {
        let mut functions = Vec::new();
        self.push_frame(frame, &mut functions);
        functions
    }

    /// Returns the module of a frame, as a row index in the table `modules`, and the return address
    /// as an offset in the module's file. Without a module, the offset is the return address
    /// itself.
    pub fn place_of(&self, frame: u32) -> (Option<usize>, Option<u64>) {
        let number = |column: &[i64]| column.get(frame as usize).copied().filter(|&n| n != -1);
        let module = number(&self.modules).and_then(|module| usize::try_from(module).ok());
        (module, number(&self.offsets).map(|offset| offset as u64))
    }

    /// Returns the parent and the frame of each node. The first node is the empty call stack.
    pub(crate) fn nodes(&self) -> &[(u32, u32)] {
        &self.nodes
    }

    /// Returns the number of frames.
    pub fn frames(&self) -> usize {
        self.functions.len()
    }

    /// Adds the functions of one frame, the innermost first.
    pub(crate) fn push_frame<'a>(&'a self, frame: u32, to: &mut Vec<FrameInfo<'a>>) {
        let begin = to.len();
        let mut next = Some(frame);
        while let Some(frame) = next {
            to.extend(self.frame(frame, to.len() > begin));
            next = self.inlined.get(&frame).copied().filter(|&inner| inner > frame);
        }
        to[begin..].reverse();
    }

    fn frame(&self, frame: u32, is_inlined: bool) -> Option<FrameInfo<'_>> {
        let frame = frame as usize;
        let module = usize::try_from(self.modules.get(frame).copied()?).ok();
        Some(FrameInfo {
            function: self.functions.get(frame)?,
            file: self.files.get(frame)?,
            line: u32::try_from(*self.lines.get(frame)?).ok(),
            module: module
                .and_then(|module| self.module_paths.get(module))
                .map_or("", String::as_str),
            is_inlined,
        })
    }
}

//! Converts the frames of call stacks to addresses in modules.

use super::format::{Place, PlanModule, BUILD_ID_MAX};
use crate::error::Result;
use crate::hash::NumberMap;
use crate::modules::Module;
use crate::names::{short, MISSING};
use crate::symbols::Layout;
use crate::trace::{FrameInfo, Stacks, Trace};
use std::collections::BTreeSet;

/// Prefixes of the file names of the C++ runtime.
const CPP_RUNTIMES: [&str; 3] = ["libstdc++.", "libc++.", "libc++abi."];

/// A recorded call stack, in the form that a plan uses.
pub(super) struct PlacedStack {
    /// The frames. The first is the caller of malloc or of the operator new.
    pub frames: Vec<Place>,
    /// Whether `frames` has all frames of the call stack. If not, the address of the next frame in
    /// its module is unknown.
    pub is_whole: bool,
}

/// The modules of a trace, and the position of each frame in them.
pub(super) struct Places<'a> {
    stacks: &'a Stacks,
    pub modules: Vec<Module>,
    layouts: Vec<Option<Layout>>,
    known: NumberMap<u32, Option<Place>>,
    /// For each frame, whether it is in an operator new of the C++ runtime.
    operators: NumberMap<u32, bool>,
    /// The modules with frames whose address in the module is unknown.
    pub missing: BTreeSet<usize>,
}

impl<'a> Places<'a> {
    pub fn read(trace: &Trace, stacks: &'a Stacks) -> Result<Places<'a>> {
        let modules = trace.modules()?;
        let layouts = modules.iter().map(Layout::read).collect();
        let (known, operators) = (NumberMap::default(), NumberMap::default());
        Ok(Places { stacks, modules, layouts, known, operators, missing: BTreeSet::new() })
    }

    /// Converts the frames of a call stack to addresses in modules.
    pub fn of(&mut self, node: i32) -> PlacedStack {
        let stacks = self.stacks;
        let mut placed = PlacedStack { frames: Vec::new(), is_whole: true };
        for frame in stacks.frames_of(node) {
            if placed.frames.is_empty() && self.is_operator(frame) {
                continue;
            }
            match self.place(frame) {
                Some(place) => placed.frames.push(place),
                None => {
                    // Under a plan, the program's stack walk stops at the same frame as the
                    // recorder's stack walk, so the call stack is whole.
                    let is_end =
                        stacks.functions_at(frame).iter().any(|f| f.function == MISSING[0]);
                    placed.is_whole = is_end;
                    break;
                }
            }
        }
        placed
    }

    /// Returns whether a frame is an operator new of the C++ runtime. When a program is recorded,
    /// the recorder's operator new jumps to that of the runtime, which calls malloc. When a plan is
    /// applied, the operator new itself allocates, so this frame is not on the call stack.
    fn is_operator(&mut self, frame: u32) -> bool {
        let stacks = self.stacks;
        *self.operators.entry(frame).or_insert_with(|| {
            let is_new = |of: &FrameInfo| {
                let file = of.module.rsplit('/').next().unwrap_or_default();
                CPP_RUNTIMES.iter().any(|runtime| file.starts_with(runtime))
                    && short(of.function).starts_with("operator new")
            };
            let functions = stacks.functions_at(frame);
            functions.iter().any(is_new)
        })
    }

    /// Returns the address of a frame in its module, or `None` if it is unknown.
    pub fn place(&mut self, frame: u32) -> Option<Place> {
        if let Some(&known) = self.known.get(&frame) {
            return known;
        }
        let place = match self.stacks.place_of(frame) {
            (Some(module), Some(offset)) => {
                let layout = self.layouts.get(module).and_then(Option::as_ref);
                let address = layout.and_then(|layout| layout.address(offset));
                if address.is_none() {
                    self.missing.insert(module);
                }
                address.map(|address| Place { module: module as u32, address })
            }
            _ => None,
        };
        self.known.insert(frame, place);
        place
    }

    /// Returns the address ranges of a module that have code.
    pub fn code(&self, module: usize) -> Vec<(u64, u64)> {
        self.layouts[module].as_ref().map_or(Vec::new(), |layout| layout.code().collect())
    }

    /// Returns a module in the form that a plan uses, or `None` if nothing identifies the module.
    pub fn module(&self, module: usize, is_program: bool) -> Option<PlanModule> {
        use std::os::unix::ffi::OsStrExt;
        let of = &self.modules[module];
        let build_id = bytes(&of.build_id).filter(|id| id.len() <= BUILD_ID_MAX)?;
        let key = self.layouts[module].as_ref().and_then(|layout| layout.key);
        let key = if build_id.is_empty() { key? } else { 0 };
        let name = of.path.file_name().unwrap_or_default().as_bytes().to_vec();
        Some(PlanModule { name, is_program, build_id, key })
    }
}

/// Reads hexadecimal digits.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    let pairs = (0..digits.len()).step_by(2).map(|at| digits.get(at..at + 2));
    pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect()
}

//! Looks up the function names of a plan's callers and frames.

use super::format::PlanModule;
use crate::modules::{Frame, Module};
use crate::symbols::{look_up, Layout, Lookup};
use std::path::Path;

/// The function at a return address of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named {
    /// The demangled name, or `module+0x…`.
    pub function: String,
    /// The source file; empty if unknown.
    pub file: String,
    /// The line of the call.
    pub line: Option<u32>,
}

/// Looks up return addresses of a plan's module in a file. Returns the functions at each address,
/// the innermost first. An address has several functions if the compiler inlined some of them.
/// Returns `None` if the file does not contain this module.
pub fn names_in(module: &PlanModule, file: &Path, addresses: &[u64]) -> Option<Vec<Vec<Named>>> {
    let build_id = module.build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    let of_file = Module { path: std::path::absolute(file).ok()?, build_id };
    let layout = Layout::read(&of_file)?;
    if module.build_id.is_empty() && layout.key != Some(module.key) {
        return None;
    }
    let offset = |&address: &u64| layout.offset(address).unwrap_or(u64::MAX);
    let code = |offset: u64| Frame::Code { module: 0, offset };
    let frames: Vec<Frame> = addresses.iter().map(offset).map(code).collect();
    let lookup = Lookup { folders: Some(&[]), fetch_for: None };
    let symbols = look_up(&[of_file], &frames, lookup, &mut |_, _| ());
    let named = |frame: u32| {
        let functions = symbols.functions(frame).iter().rev().map(|of| Named {
            function: of.name.clone(),
            file: of.file.clone().unwrap_or_default(),
            line: of.line,
        });
        functions.collect()
    };
    Some((0..frames.len() as u32).map(named).collect())
}

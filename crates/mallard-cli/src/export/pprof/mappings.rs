//! Finds the addresses at which files with code were mapped.

use super::proto::Mapping;
use mallard_measure::error::Failure;
use mallard_trace::tables::schema::{MAPPINGS, MODULES};
use mallard_trace::Trace;
use std::collections::HashMap;

/// A mapped part of a file.
struct Part {
    module: usize,
    start: u64,
    end: u64,
    file_offset: u64,
}

/// The mapped parts of all files. For a file that was mapped several times, only the first mapping
/// is used.
#[derive(Default)]
pub(super) struct Mappings {
    parts: Vec<Part>,
    /// The indices of the parts of each module.
    of_module: HashMap<usize, Vec<usize>>,
    /// The path and the build-id of each module.
    modules: Vec<(String, String)>,
}

impl Mappings {
    /// Reads the tables of modules and mappings.
    pub fn read(trace: &Trace) -> Result<Mappings, Failure> {
        let modules = trace.table(&MODULES)?;
        let modules = modules.texts("path")?.into_iter().zip(modules.texts("build_id")?);
        let mut mappings = Mappings { modules: modules.collect(), ..Mappings::default() };
        let table = trace.table(&MAPPINGS)?;
        let [modules, starts, ends, offsets] =
            ["module", "start", "end", "file_offset"].map(|column| table.i64s(column));
        let ranges = starts?.into_iter().zip(ends?).zip(offsets?);
        for (module, ((start, end), offset)) in modules?.into_iter().zip(ranges) {
            let (start, end, file_offset) = (start as u64, end as u64, offset as u64);
            let module = module as usize;
            if module < mappings.modules.len() && start < end {
                mappings.add(Part { module, start, end, file_offset });
            }
        }
        Ok(mappings)
    }

    fn add(&mut self, part: Part) {
        self.of_module.entry(part.module).or_default().push(self.parts.len());
        self.parts.push(part);
    }

    /// Returns the ID of the mapping and the address for an offset in the file of a module. If no
    /// mapping contains the offset, returns 0 and the offset.
    pub fn find(&mut self, module: usize, offset: u64) -> (u64, u64) {
        let parts = self.of_module.get(&module).map_or(&[][..], Vec::as_slice);
        let inside = parts.iter().find_map(|&index| {
            let part = &self.parts[index];
            let inside = offset.checked_sub(part.file_offset)?;
            (inside < part.end - part.start).then(|| (index as u64 + 1, part.start + inside))
        });
        inside.unwrap_or((0, offset))
    }

    /// Converts the parts into messages of the profile.
    pub fn into_messages(self, mut string: impl FnMut(String) -> i64) -> Vec<Mapping> {
        let mut messages = Vec::new();
        for (part, id) in self.parts.iter().zip(1..) {
            let (path, build_id) = &self.modules[part.module];
            messages.push(Mapping {
                id,
                start: part.start,
                end: part.end,
                file_offset: part.file_offset,
                file: string(path.clone()),
                build_id: string(build_id.clone()),
                has_functions: true,
                has_files: true,
                has_lines: true,
                has_inlined: true,
            });
        }
        messages
    }
}

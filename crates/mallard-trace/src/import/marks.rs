//! Assembles marks from their records. A program sets marks at the begin and the end of a region.

use crate::format::{is_mark, op, Record, NAME_PART};
use std::collections::HashMap;

/// The maximum number of different names. Marks with further names are left out.
const NAMES_MAX: usize = 1 << 16;
/// The maximum length of a name, so that a corrupt stream cannot exhaust the memory.
const NAME_BYTES_MAX: usize = 4096;

/// A mark whose name is complete.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub op: u8,
    pub t: u64,
    pub name: String,
}

/// A mark whose name is not complete yet, because more records with parts of the name follow.
struct Partial {
    thread: u32,
    op: u8,
    t: u64,
    bytes: usize,
    name: Vec<u8>,
}

/// The mark that is being assembled, and the names of all marks so far.
#[derive(Default)]
pub(super) struct Marks {
    partial: Option<Partial>,
    /// The node of the call stack tree that represents each name.
    nodes: HashMap<String, u32>,
}

impl Marks {
    /// Processes a record of a thread. Returns a mark if the record completes its name.
    pub fn take(&mut self, record: &Record, thread: u32) -> Option<Mark> {
        let mut partial = if is_mark(record.op()) {
            let bytes = (record.size() as usize).min(NAME_BYTES_MAX);
            Partial { thread, op: record.op(), t: record.t, bytes, name: Vec::new() }
        } else {
            debug_assert_eq!(record.op(), op::REGION_NAME);
            self.partial.take().filter(|partial| partial.thread == thread)?
        };
        let left = (partial.bytes - partial.name.len()).min(NAME_PART);
        partial.name.extend_from_slice(&record.name_part()[..left]);
        if partial.name.len() < partial.bytes {
            self.partial = Some(partial);
            return None;
        }
        self.partial = None;
        let name = String::from_utf8_lossy(&partial.name).into_owned();
        Some(Mark { op: partial.op, t: partial.t, name })
    }

    /// Returns the node of the call stack tree that represents a name. Calls `new` to make the node
    /// of a new name. Returns `None` if there are too many names.
    pub fn node(&mut self, name: &str, new: impl FnOnce(&str) -> u32) -> Option<u32> {
        if let Some(&node) = self.nodes.get(name) {
            return Some(node);
        }
        if self.nodes.len() >= NAMES_MAX {
            return None;
        }
        let node = new(name);
        self.nodes.insert(name.to_string(), node);
        Some(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_name_is_assembled_from_the_records_of_its_thread() {
        for name in ["", "a", "sixteen_letters_", "a name that takes three records, no less"] {
            let mut marks = Marks::default();
            let records = Record::mark(op::REGION_END, 7, name);
            let (last, before) = records.split_last().unwrap();
            assert!(before.iter().all(|record| marks.take(record, 1).is_none()));
            let mark = Mark { op: op::REGION_END, t: 7, name: name.to_string() };
            assert_eq!(marks.take(last, 1), Some(mark));
        }
    }

    #[test]
    fn a_region_name_whose_beginning_is_missing_is_omitted() {
        let records = Record::mark(op::REGION_BEGIN, 7, "a name that takes two records");
        let mut marks = Marks::default();
        assert_eq!(marks.take(&records[1], 1), None);
        assert_eq!(marks.take(&records[0], 1), None);
        assert_eq!(marks.take(&records[1], 2), None);
        let mut sized = Record::new(op::REGION_BEGIN, 7, 0, 1 << 39);
        sized.stack = 5;
        assert_eq!(marks.take(&sized, 1), None);
    }
}

//! Stores the items of a heaptrack file that other lines refer to by index: strings, code, call
//! stacks, and kinds of blocks.

use super::input::{Fault, Numbers};
use crate::import::{Known, KnownFrame};
use crate::modules::Module;
use crate::symbols::Function;
use std::collections::HashMap;

/// The maximum size of all strings together. The limit keeps a corrupt file from exhausting the
/// memory.
const STRING_BYTES_MAX: usize = 1 << 28;
/// The maximum number of pieces of code, of call stacks, and of kinds of blocks. The limit keeps a
/// corrupt file from exhausting the memory. Eight times as many blocks may be in use.
const NUMBERS_MAX: usize = 1 << 24;

fn too_many(what: &str) -> Fault {
    Fault::Line(format!("the file has more {what} than heaptrack writes"))
}

/// The call stacks as a tree. Each node has a parent and adds one piece of code.
#[derive(Default)]
pub(super) struct Stacks {
    /// The return address and the parent of each node. The first entry is node 1. Node 0 is the
    /// empty call stack.
    nodes: Vec<(u64, u32)>,
}

impl Stacks {
    /// Adds a node.
    pub fn add(&mut self, address: u64, parent: u64) -> Result<(), Fault> {
        if parent > self.nodes.len() as u64 {
            return Err(Fault::Line(format!("there is no call stack {parent:x} yet")));
        }
        if self.nodes.len() == NUMBERS_MAX {
            return Err(too_many("call stacks"));
        }
        self.nodes.push((address, parent as u32));
        Ok(())
    }

    /// Writes the nodes of a call stack to `to`, from the outermost node to `node`.
    pub fn path(&self, node: u64, to: &mut Vec<u32>) -> Result<(), Fault> {
        if node > self.nodes.len() as u64 {
            return Err(Fault::Line(format!("there is no call stack {node:x} yet")));
        }
        to.clear();
        let mut node = node as u32;
        while node != 0 {
            to.push(node);
            // The loop terminates, because a parent always has a smaller index than its child.
            node = self.nodes[node as usize - 1].1;
        }
        to.reverse();
        Ok(())
    }

    /// Returns the return address of a node.
    pub fn address(&self, node: u32) -> u64 {
        self.nodes[node as usize - 1].0
    }
}

/// The strings and the code of an interpreted file.
#[derive(Default)]
pub(super) struct Code {
    strings: Vec<String>,
    string_bytes: usize,
    known: Vec<KnownFrame>,
    modules: Vec<Module>,
    /// The indices in `modules` of strings that are paths of modules. The key is the index of the
    /// string.
    module_of: HashMap<u64, u32>,
}

impl Code {
    /// Adds a string.
    pub fn add_string(&mut self, text: String) -> Result<(), Fault> {
        self.string_bytes += text.len() + size_of::<String>();
        if self.string_bytes > STRING_BYTES_MAX {
            return Err(too_many("strings"));
        }
        self.strings.push(text);
        Ok(())
    }

    fn string(&self, number: u64) -> Result<&str, Fault> {
        let index = (number as usize).wrapping_sub(1);
        let text = self.strings.get(index).map(String::as_str);
        text.ok_or_else(|| Fault::Line(format!("there is no string {number:x} yet")))
    }

    /// Adds a piece of code. The line has its address, its module, and its functions with file and
    /// line number, the innermost function first.
    pub fn add(&mut self, numbers: &mut Numbers) -> Result<(), Fault> {
        if self.known.len() == NUMBERS_MAX {
            return Err(too_many("pieces of code"));
        }
        let address = numbers.must()?;
        let module = match numbers.next()? {
            None | Some(0) => None,
            Some(number) => Some(self.module(number)?),
        };
        let mut functions = Vec::new();
        while let Some(name) = numbers.next()? {
            let name = match name {
                0 => format!("{address:#x}"),
                name => self.string(name)?.to_string(),
            };
            // The last function of the line may lack its file and line number.
            let (file, line) = match numbers.next()? {
                None => (0, 0),
                Some(file) => (file, numbers.must()?),
            };
            let file = if file == 0 { None } else { Some(self.string(file)?.to_string()) };
            let line = file.is_some().then_some(line as u32);
            functions.push(Function { name, file, line });
        }
        if functions.is_empty() {
            functions.push(Function { name: format!("{address:#x}"), ..Function::default() });
        }
        functions.reverse();
        self.known.push(KnownFrame { module, functions });
        Ok(())
    }

    fn module(&mut self, string: u64) -> Result<u32, Fault> {
        let path = self.string(string)?.into();
        let next = self.modules.len() as u32;
        Ok(*self.module_of.entry(string).or_insert_with(|| {
            self.modules.push(Module { path, build_id: String::new() });
            next
        }))
    }

    /// Returns whether the file has neither code nor strings. Such a file is a raw file, in which
    /// call stacks consist of addresses.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty() && self.strings.is_empty()
    }

    /// Returns whether a piece of code with this index exists. Index 0 is unknown code.
    pub fn has(&self, number: u64) -> bool {
        (0..=self.known.len() as u64).contains(&number)
    }

    /// Returns the modules and the code of the file, or `None` for a raw file.
    pub fn into_known(self) -> Option<Known> {
        (!self.is_empty()).then_some(Known { modules: self.modules, frames: self.known })
    }
}

/// The blocks in use in an interpreted file. A kind of block is a size and a call stack. The file
/// does not distinguish blocks of the same kind, so a free is assumed to free the block of this
/// kind that was allocated last.
#[derive(Default)]
pub(super) struct Kinds {
    /// Size and call stack of each kind, and 1 + the slot of its latest block in use (0 if no block
    /// is in use).
    kinds: Vec<(u64, u64, u32)>,
    /// For each slot, 1 + the next slot in the list of its kind, or in the list of free slots. 0
    /// marks the end of a list.
    below: Vec<u32>,
    /// 1 + the first slot in the list of free slots (0 if the list is empty).
    free: u32,
}

impl Kinds {
    /// Adds a kind: a size and a call stack.
    pub fn add(&mut self, size: u64, stack: u64) -> Result<(), Fault> {
        if self.kinds.len() == NUMBERS_MAX {
            return Err(too_many("kinds of blocks"));
        }
        self.kinds.push((size, stack, 0));
        Ok(())
    }

    /// Returns whether the file has kinds of blocks. If so, its allocations and frees refer to
    /// kinds instead of addresses.
    pub fn is_used(&self) -> bool {
        !self.kinds.is_empty()
    }

    fn kind(&mut self, number: u64) -> Result<&mut (u64, u64, u32), Fault> {
        let kind = self.kinds.get_mut(number as usize);
        kind.ok_or_else(|| Fault::Line(format!("there is no kind of block {number:x} yet")))
    }

    /// Allocates a block of a kind. Returns its size, call stack and address.
    pub fn allocate(&mut self, number: u64) -> Result<(u64, u64, u64), Fault> {
        self.kind(number)?;
        if self.free == 0 {
            if self.below.len() == 8 * NUMBERS_MAX {
                return Err(too_many("blocks in use"));
            }
            self.below.push(0);
            self.free = self.below.len() as u32;
        }
        let slot = self.free;
        self.free = self.below[slot as usize - 1];
        let (size, stack, latest) = &mut self.kinds[number as usize];
        self.below[slot as usize - 1] = std::mem::replace(latest, slot);
        Ok((*size, *stack, address_of(slot)))
    }

    /// Frees the latest block of a kind. Returns its address.
    pub fn free(&mut self, number: u64) -> Result<u64, Fault> {
        let slot = self.kind(number)?.2;
        if slot == 0 {
            return Err(Fault::Line(format!("no block of the kind {number:x} is in use")));
        }
        let free = self.free;
        let below = std::mem::replace(&mut self.below[slot as usize - 1], free);
        self.kinds[number as usize].2 = below;
        self.free = slot;
        Ok(address_of(slot))
    }
}

/// Returns an invented address for the block in a slot, which differs from the address of every
/// other slot.
fn address_of(slot: u32) -> u64 {
    16 * u64::from(slot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_indistinguishable_heaptrack_blocks_the_newest_is_freed_first() {
        let mut kinds = Kinds::default();
        kinds.add(8, 1).unwrap();
        kinds.add(9, 1).unwrap();
        let first = kinds.allocate(0).unwrap().2;
        let other = kinds.allocate(1).unwrap().2;
        let second = kinds.allocate(0).unwrap().2;
        assert_eq!(kinds.free(0).unwrap(), second);
        assert_eq!(kinds.allocate(1).unwrap(), (9, 1, second));
        assert_eq!(kinds.free(0).unwrap(), first);
        assert!(kinds.free(0).is_err() && kinds.free(2).is_err());
        assert_eq!((kinds.free(1).unwrap(), kinds.free(1).unwrap()), (second, other));
    }
}

//! Finds the file that the code at an address comes from, and stores the frames of call stacks.

use crate::hash::NumberMap;
use crate::names::MISSING;
use crate::stacks::{FRAME_FIRST, FRAME_GAP};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// A file with code: the program or a library.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Module {
    /// The path of the file when the program ran. It may have any bytes.
    pub path: PathBuf,
    /// The build-id of the file as hexadecimal digits; empty if the file has no build-id.
    pub build_id: String,
}

impl Module {
    /// Returns the name of the file. Bytes that are not UTF-8 are replaced by U+FFFD.
    pub fn name(&self) -> Cow<'_, str> {
        self.path.file_name().unwrap_or_default().to_string_lossy()
    }
}

/// A part of a file, mapped into the memory of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// Number of the process.
    pub process: u32,
    /// Index in [`Modules::modules`].
    pub module: u32,
    /// The first address.
    pub start: u64,
    /// The address after the last byte.
    pub end: u64,
    /// Offset of the part in the file.
    pub offset: u64,
    /// When the mapping was reported, in ticks.
    pub t0: u64,
    /// When another module was reported at the same addresses, in ticks.
    pub t1: Option<u64>,
}

/// A frame of a call stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// Code of a known module.
    Code {
        /// Index in [`Modules::modules`].
        module: u32,
        /// The return address as an offset in the file.
        offset: u64,
    },
    /// Code at an address where no known module is mapped.
    Unknown {
        /// The address space, in which a module may be reported at this address later.
        space: u32,
        /// The return address.
        address: u64,
    },
    /// A name instead of an address, such as the name of a traced allocator.
    Named(String),
    /// Code whose functions another program has already looked up.
    Known {
        /// Index of the module, if it is known.
        module: Option<u32>,
    },
}

/// The maximum number of mappings. Further mappings are ignored, so that a corrupt stream cannot
/// exhaust the memory.
const MAPPINGS_MAX: usize = 1 << 16;
/// The maximum number of frames. All further addresses share one frame, so that a corrupt stream
/// cannot exhaust the memory.
const FRAMES_MAX: usize = 1 << 22;
/// How many mappings may be copied in total when address spaces are split. After that, spaces are
/// changed in place, so frames already found in them keep their old module.
const COPIES_MAX: usize = 1 << 20;

/// The mapped code of an address space. Key: start address. Value: (end address, offset in the
/// file, module).
type Space = BTreeMap<u64, (u64, u64, u32)>;

/// All modules, address spaces and frames of an event stream.
///
/// A process made by `fork` shares the address space of its parent. If a mapping contradicts the
/// space of its process, as after `dlclose`, the process gets a separate space. So the cache from
/// addresses to frames always stays valid.
pub struct Modules {
    modules: Vec<Module>,
    by_identity: HashMap<Module, u32>,
    mappings: Vec<Mapping>,
    spaces: Vec<Space>,
    space_of_process: NumberMap<u32, u32>,
    copies: usize,
    frames: Vec<Frame>,
    by_address: NumberMap<(u32, u64), u32>,
    by_offset: NumberMap<(u32, u64), u32>,
}

impl Default for Modules {
    fn default() -> Self {
        Modules {
            modules: Vec::new(),
            by_identity: HashMap::new(),
            mappings: Vec::new(),
            spaces: vec![Space::new()],
            space_of_process: NumberMap::default(),
            copies: 0,
            frames: MISSING.map(|name| Frame::Named(name.to_string())).to_vec(),
            by_address: NumberMap::default(),
            by_offset: NumberMap::default(),
        }
    }
}

impl Modules {
    /// Adds a process. Its address space is empty or, after `fork`, the address space of its
    /// parent.
    pub fn process(&mut self, process: u32, forked_from: Option<u32>) {
        let space = match forked_from {
            Some(parent) => self.space_of(parent),
            None => self.new_space(Space::new()),
        };
        self.space_of_process.insert(process, space);
    }

    /// Returns the address space of a process. A process without a PROCESS record has the first
    /// address space.
    #[inline]
    pub fn space_of(&self, process: u32) -> u32 {
        self.space_of_process.get(&process).copied().unwrap_or(0)
    }

    /// Parses the text of a module record and adds the mapping. Returns whether the text could be
    /// read.
    pub fn module(&mut self, process: u32, start: u64, text: impl AsRef<[u8]>, t: u64) -> bool {
        let mut parts = text.as_ref().splitn(4, |&byte| byte == b' ');
        let mut word = || std::str::from_utf8(parts.next()?).ok();
        let mut number = || u64::from_str_radix(word()?, 16).ok();
        let (Some(end), Some(offset)) = (number(), number()) else { return false };
        let (Some(build_id), Some(path)) = (word(), parts.next()) else { return false };
        if end <= start || self.mappings.len() >= MAPPINGS_MAX {
            return false;
        }
        let build_id = if build_id == "-" { "" } else { build_id };
        let path = PathBuf::from(OsStr::from_bytes(path));
        let module = Module { path, build_id: build_id.to_string() };
        let module = self.identify(module);
        self.map(Mapping { process, module, start, end, offset, t0: t, t1: None });
        true
    }

    fn identify(&mut self, module: Module) -> u32 {
        let next = self.modules.len() as u32;
        *self.by_identity.entry(module).or_insert_with_key(|module| {
            self.modules.push(module.clone());
            next
        })
    }

    fn map(&mut self, mapping: Mapping) {
        let &Mapping { process, module, start, end, offset, t0, .. } = &mapping;
        let mut space = self.space_of(process);
        let known = &self.spaces[space as usize];
        if known.get(&start) == Some(&(end, offset, module)) {
            return;
        }
        let overlapped: Vec<u64> = overlapping(known, start, end);
        if !overlapped.is_empty() {
            if self.copies + known.len() <= COPIES_MAX {
                self.copies += known.len();
                space = self.new_space(known.clone());
                self.space_of_process.insert(process, space);
            }
            for begin in overlapped {
                self.spaces[space as usize].remove(&begin);
            }
            for old in self.mappings.iter_mut().rev() {
                let is_over = old.t1.is_none() && old.process == process;
                if is_over && old.start < end && start < old.end {
                    old.t1 = Some(t0);
                }
            }
        }
        self.spaces[space as usize].insert(start, (end, offset, module));
        self.mappings.push(mapping);
    }

    fn new_space(&mut self, space: Space) -> u32 {
        self.spaces.push(space);
        self.spaces.len() as u32 - 1
    }

    /// Returns the frame of a return address.
    #[inline]
    pub fn frame(&mut self, space: u32, address: u64) -> u32 {
        match self.by_address.get(&(space, address)) {
            Some(&frame) => frame,
            None => self.new_frame(space, address),
        }
    }

    #[cold]
    fn new_frame(&mut self, space: u32, address: u64) -> u32 {
        if self.frames.len() >= FRAMES_MAX {
            return FRAME_GAP;
        }
        let next = self.frames.len() as u32;
        let frame = match locate(&self.spaces[space as usize], address) {
            Some((module, offset)) => {
                let frame = *self.by_offset.entry((module, offset)).or_insert(next);
                if frame == next {
                    self.frames.push(Frame::Code { module, offset });
                }
                frame
            }
            None => {
                self.frames.push(Frame::Unknown { space, address });
                next
            }
        };
        self.by_address.insert((space, address), frame);
        frame
    }

    /// Adds a frame that has a name instead of an address.
    pub fn named_frame(&mut self, name: String) -> u32 {
        self.frames.push(Frame::Named(name));
        self.frames.len() as u32 - 1
    }

    /// Renames a named frame, because the stream contains the name only after the first event.
    pub fn rename(&mut self, frame: u32, name: String) {
        if let Some(Frame::Named(old)) = self.frames.get_mut(frame as usize) {
            *old = name;
        }
    }

    /// Returns all mappings of files.
    pub fn mappings(&self) -> &[Mapping] {
        &self.mappings
    }

    /// Returns the files of all modules that are known so far.
    pub fn files(&self) -> &[Module] {
        &self.modules
    }

    /// Returns the frames from the index `first` on. Looks up again each frame whose module was
    /// unknown when the frame was added.
    pub fn frames_from(&self, first: usize) -> Vec<Frame> {
        let frames = self.frames.get(first..).unwrap_or_default();
        frames.iter().map(|frame| located(&self.spaces, frame).unwrap_or(frame.clone())).collect()
    }

    /// Returns the number of frames.
    pub fn frames(&self) -> usize {
        self.frames.len()
    }

    /// Returns all modules and frames. Looks up again each frame whose module was unknown when the
    /// frame was added.
    pub fn into_frames(self) -> (Vec<Module>, Vec<Frame>) {
        let Modules { modules, spaces, mut frames, .. } = self;
        for frame in &mut frames[FRAME_FIRST as usize..] {
            if let Some(code) = located(&spaces, frame) {
                *frame = code;
            }
        }
        (modules, frames)
    }
}

/// Returns the start addresses of the mappings that overlap [start, end).
fn overlapping(space: &Space, start: u64, end: u64) -> Vec<u64> {
    let before = space.range(..start).next_back().filter(|(_, (stop, ..))| *stop > start);
    before.into_iter().chain(space.range(start..end)).map(|(&begin, _)| begin).collect()
}

/// Returns the code of a frame whose module was unknown before. `None` if the module is known or
/// still unknown.
fn located(spaces: &[Space], frame: &Frame) -> Option<Frame> {
    let &Frame::Unknown { space, address } = frame else { return None };
    let (module, offset) = locate(&spaces[space as usize], address)?;
    Some(Frame::Code { module, offset })
}

/// Returns the module of a return address, and the offset in the file. A call may be the last
/// instruction of a mapping, so the lookup uses the address before the return address.
fn locate(space: &Space, address: u64) -> Option<(u32, u64)> {
    let call = address.checked_sub(1)?;
    let (&start, &(end, offset, module)) = space.range(..=call).next_back()?;
    (call < end).then(|| (module, offset.wrapping_add(address - start)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spaces() -> Modules {
        let mut modules = Modules::default();
        modules.process(1, None);
        assert!(modules.module(1, 0x1000, "2000 0 ab /bin/a", 1));
        modules
    }

    #[test]
    fn a_stack_frame_is_stored_as_an_offset_in_a_module_file() {
        let mut modules = spaces();
        let frame = modules.frame(1, 0x1800);
        assert_eq!(modules.frame(1, 0x1800), frame);
        // Here the call is the last instruction of the module.
        let last = modules.frame(1, 0x2000);
        let frames = modules.into_frames().1;
        assert_eq!(frames[frame as usize], Frame::Code { module: 0, offset: 0x800 });
        assert_eq!(frames[last as usize], Frame::Code { module: 0, offset: 0x1000 });
    }

    #[test]
    fn a_module_that_is_reported_late_resolves_earlier_frames() {
        let mut modules = spaces();
        let frame = modules.frame(1, 0x5010);
        assert!(modules.module(1, 0x5000, "6000 1000 - /lib/b c", 2));
        let (files, frames) = modules.into_frames();
        assert_eq!(frames[frame as usize], Frame::Code { module: 1, offset: 0x1010 });
        assert_eq!(files[1], Module { path: "/lib/b c".into(), build_id: String::new() });
    }

    #[test]
    fn a_forked_process_shares_frames_until_its_modules_differ() {
        let mut modules = spaces();
        modules.process(2, Some(1));
        let frame = modules.frame(1, 0x1800);
        assert_eq!(modules.space_of(2), 1);
        assert!(modules.module(2, 0x1000, "2000 0 cd /bin/b", 5));
        let space = modules.space_of(2);
        assert_ne!(modules.frame(space, 0x1800), frame);
        assert_eq!(modules.space_of(1), 1);
        assert_eq!(modules.mappings()[0].t1, None);
    }

    #[test]
    fn a_module_mapped_over_another_one_replaces_it() {
        let mut modules = spaces();
        let old = modules.frame(1, 0x1800);
        assert!(modules.module(1, 0x1800, "2800 0 cd /bin/b", 5));
        let new = modules.frame(modules.space_of(1), 0x1900);
        assert_eq!(modules.mappings()[0].t1, Some(5));
        let frames = modules.into_frames().1;
        assert_eq!(frames[old as usize], Frame::Code { module: 0, offset: 0x800 });
        assert_eq!(frames[new as usize], Frame::Code { module: 1, offset: 0x100 });
    }

    #[test]
    fn an_invalid_module_record_is_rejected() {
        let mut modules = spaces();
        for text in ["", "zz 0 - a", "2000 0", "2000 0 ab", "500 0 ab /bin/a"] {
            assert!(!modules.module(1, 0x1000, text, 1), "{text}");
        }
    }
}

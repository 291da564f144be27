//! Follows a recording while the program runs: which call stacks hold memory now, and which
//! allocate.
//!
//! [`Live`] reads the records of each thread, and sorts the events of all threads by time. It
//! keeps the blocks in use and a few sums for each call stack, but no events. So it needs 40 to 80
//! bytes of memory for each block in use.

use crate::format::{self, op, Kind, Record, RECORD_BYTES};
use crate::hash::NumberMap;
use crate::merge::{Merge, Timed};
use crate::modules::{Frame, Module, Modules};
use crate::stacks::{ThreadStack, Tree, ROOT};
use crate::stream::Event;
use crate::symbols::{self, Function, Lookup};
use crate::system_text::name_of_kernel;
use crate::trace::FrameInfo;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The maximum number of events that are held back until they can be sorted. Each uses 40 bytes. After a
/// pause, the ring has up to 8.4 million records, and all records of one thread are read before those of
/// the next thread.
const HELD_MAX: usize = 1 << 23;
/// The memory for more held events than these is freed when they are sorted.
const HELD_KEPT: usize = 1 << 16;
/// The maximum number of nodes in the call stack tree. Each uses 19 to 24 bytes.
const NODES_MAX: usize = 1 << 22;

/// What one call stack, or one thread, has allocated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sums {
    /// Bytes in use. For a thread, the bytes that it allocated and that are still in use.
    pub live_bytes: u64,
    /// Blocks in use.
    pub live_blocks: u64,
    /// Bytes allocated since the recording began, with those that realloc requested.
    pub bytes: u64,
    /// Blocks allocated since the recording began, with those that realloc returned.
    pub blocks: u64,
}

impl Sums {
    fn begin(&mut self, size: u64) {
        self.live_bytes += size;
        self.live_blocks += 1;
        self.bytes += size;
        self.blocks += 1;
    }

    fn end(&mut self, size: u64) {
        self.live_bytes -= size;
        self.live_blocks -= 1;
    }

    /// Adds the sums of another call stack or thread.
    pub fn add(&mut self, other: &Sums) {
        self.live_bytes += other.live_bytes;
        self.live_blocks += other.live_blocks;
        self.bytes += other.bytes;
        self.blocks += other.blocks;
    }
}

/// A running thread that has allocated.
#[derive(Debug, Clone, Default)]
pub struct LiveThread {
    /// The thread id in the system.
    pub system_id: u64,
    /// The name that the thread had when it allocated first.
    pub name: String,
    /// What the thread has allocated.
    pub sums: Sums,
    process: u32,
}

/// What is needed to read the records of a thread.
#[derive(Default)]
struct Source {
    process: u32,
    stack: ThreadStack,
}

/// A block in use.
#[derive(Debug, Clone, Copy)]
struct Block {
    size: u64,
    node: u32,
    thread: u32,
}

/// An event that waits until it can be sorted.
#[derive(Debug, Clone, Copy)]
struct Call {
    t: u64,
    addr: u64,
    what: u64,
    node: u32,
    thread: u32,
    process: u32,
}

impl Timed for Call {
    #[inline]
    fn t(&self) -> u64 {
        self.t
    }
}

/// The sums of a program that is being recorded.
pub struct Live {
    tree: Tree,
    modules: Modules,
    merge: Merge<Call>,
    sources: NumberMap<u32, Source>,
    threads: NumberMap<u32, LiveThread>,
    /// The block of each realloc that has begun, and the block's address, by thread.
    reallocs: NumberMap<u32, (u64, Option<Block>)>,
    /// The blocks in use of each process, by address.
    blocks: NumberMap<u32, NumberMap<u64, Block>>,
    /// The sums of each call stack, by the node of the tree.
    sums: Vec<Sums>,
    whole: Sums,
    unknown_frees: u64,
    /// The functions of the first frames, the outermost function of each first, and the module.
    functions: Vec<(Vec<Function>, String)>,
    /// Whether a thread looks up the functions of further frames.
    is_looking: bool,
}

impl Default for Live {
    fn default() -> Self {
        Live {
            tree: Tree::new(NODES_MAX),
            modules: Modules::default(),
            merge: Merge::new(HELD_MAX),
            sources: NumberMap::default(),
            threads: NumberMap::default(),
            reallocs: NumberMap::default(),
            blocks: NumberMap::default(),
            sums: Vec::new(),
            whole: Sums::default(),
            unknown_frees: 0,
            functions: Vec::new(),
            is_looking: false,
        }
    }
}

impl Live {
    /// Reads the next records of a thread: whole records with their texts and frames.
    pub fn read(&mut self, thread: u32, mut records: &[u8]) {
        while records.len() >= RECORD_BYTES {
            let record = Record::from_bytes(records);
            let tail = record.tail_bytes() as usize;
            let Some(bytes) = records.get(RECORD_BYTES..RECORD_BYTES + tail) else { return };
            self.event(thread, &Event::new(record, bytes));
            let length = RECORD_BYTES + tail.next_multiple_of(RECORD_BYTES);
            records = records.get(length..).unwrap_or_default();
        }
    }

    /// Counts all events before the time `t` on the clock of the recording. Until then, all threads
    /// must have been read.
    pub fn advance(&mut self, t: u64) {
        let mut merge = std::mem::replace(&mut self.merge, Merge::new(HELD_MAX));
        merge.before(t, |call| self.count(call));
        merge.shrink(HELD_KEPT);
        self.merge = merge;
    }

    /// Removes the blocks of a process that has ended at the time `t`.
    pub fn end(&mut self, process: u32, t: u64) {
        let what = format::pack(0, 0, op::PROCESS_END, 0);
        self.hold(Call { t, addr: 0, what, node: ROOT, thread: 0, process });
    }

    fn event(&mut self, thread: u32, event: &Event) {
        use Kind::*;
        let record = &event.record;
        match record.kind() {
            Allocation | ReallocFrom | ReallocTo | Free | UnknownCall => self.call(thread, event),
            Module => {
                self.modules.module(record.stack, record.addr, event.text_bytes(), record.t);
            }
            Process => {
                let text = event.text();
                let mut words = text.split(' ');
                let (begins, parent) = (words.next(), words.next());
                let parent = parent.and_then(|number| number.parse().ok());
                let is_fork = begins == Some("fork");
                self.modules.process(record.stack, parent.filter(|_| is_fork));
                if let Some(parent) = parent.filter(|_| begins == Some("exec")) {
                    self.end(parent, record.t);
                }
            }
            ProcessEnd => self.end(record.stack, record.t),
            ThreadStart => {
                self.sources.entry(record.stack).or_default().process = record.dur;
                let started = LiveThread {
                    system_id: record.addr,
                    name: name_of_kernel(event.text_bytes()),
                    sums: Sums::default(),
                    process: record.dur,
                };
                self.threads.insert(record.stack, started);
            }
            ThreadEnd => {
                let source = self.sources.entry(record.stack).or_default();
                source.stack = ThreadStack::default();
                let (process, what) = (source.process, format::pack(0, 0, op::THREAD_END, 0));
                let thread = record.stack;
                self.hold(Call { t: record.t, addr: 0, what, node: ROOT, thread, process });
            }
            // Blocks of traced allocators lie within blocks of malloc.
            TracedAllocation | TracedFree | TracedReset | Name => {}
            Memory | Cpu | Checkpoint | RegionBegin | RegionEnd | RegionName | Thread | Lost
            | End | Unknown => {}
        }
    }

    fn call(&mut self, number: u32, event: &Event) {
        let record = &event.record;
        let thread = self.sources.entry(number).or_default();
        let mut node = ROOT;
        if record.stack != 0 {
            node = thread.stack.keep(record.kept()).0;
            let space = self.modules.space_of(thread.process);
            for address in event.frames() {
                node = self.tree.child(node, self.modules.frame(space, address));
                thread.stack.push(node);
            }
        }
        let process = thread.process;
        let Record { t, addr, what, .. } = *record;
        self.hold(Call { t, addr, what, node, thread: number, process });
    }

    #[inline]
    fn hold(&mut self, call: Call) {
        if self.merge.push(call) {
            let mut merge = std::mem::replace(&mut self.merge, Merge::new(HELD_MAX));
            merge.half(|call| self.count(call));
            self.merge = merge;
        }
    }

    /// Counts an event. Events are counted in time order.
    fn count(&mut self, call: Call) {
        use Kind::*;
        let size = call.what & format::SIZE_MAX;
        let kind = Kind::of((call.what >> format::OP_SHIFT & 63) as u8);
        let mut remove = || {
            let old = self.blocks.get_mut(&call.process).and_then(|of| of.remove(&call.addr));
            self.unknown_frees += u64::from(old.is_none() && call.addr != 0);
            old
        };
        match kind {
            Allocation if call.addr != 0 => self.begin(call, size, call.node),
            Allocation => {} // failed
            Free => {
                let old = remove();
                self.remove(old);
            }
            ReallocFrom => {
                let old = remove();
                self.reallocs.insert(call.thread, (call.addr, old));
            }
            ReallocTo => match self.reallocs.remove(&call.thread).unwrap_or_default() {
                // The system had no memory, so the block is unchanged.
                (from, Some(block)) if call.addr == 0 && size > 0 => {
                    self.blocks.entry(call.process).or_default().insert(from, block);
                }
                (_, old) => {
                    self.remove(old);
                    if call.addr != 0 {
                        self.begin(call, size, call.node);
                    }
                }
            },
            ProcessEnd => {
                self.threads.retain(|_, thread| thread.process != call.process);
                let blocks = self.blocks.remove(&call.process).unwrap_or_default();
                blocks.into_values().for_each(|block| self.remove(Some(block)));
            }
            ThreadEnd => drop(self.threads.remove(&call.thread)),
            // No event of these kinds is held, except of the first, whose effect is unknown.
            UnknownCall | TracedAllocation | TracedFree | TracedReset | Module | Process
            | ThreadStart | Memory | Cpu | Checkpoint | RegionBegin | RegionEnd | RegionName
            | Thread | Name | Lost | End | Unknown => {}
        }
    }

    fn begin(&mut self, call: Call, size: u64, node: u32) {
        if self.sums.len() <= node as usize {
            self.sums.resize(self.tree.nodes().max(node as usize + 1), Sums::default());
        }
        self.sums[node as usize].begin(size);
        self.whole.begin(size);
        if let Some(thread) = self.threads.get_mut(&call.thread) {
            thread.sums.begin(size);
        }
        let blocks = self.blocks.entry(call.process).or_default();
        // If a block is already there, its free was lost.
        let lost = blocks.insert(call.addr, Block { size, node, thread: call.thread });
        self.remove(lost);
    }

    fn remove(&mut self, block: Option<Block>) {
        let Some(Block { size, node, thread }) = block else { return };
        self.sums[node as usize].end(size);
        self.whole.end(size);
        if let Some(thread) = self.threads.get_mut(&thread) {
            thread.sums.end(size);
        }
    }

    /// Returns the sums of the whole program.
    pub fn whole(&self) -> Sums {
        self.whole
    }

    /// Returns the number of frees of blocks that were allocated before the recording began, or
    /// whose allocation was lost.
    pub fn unknown_frees(&self) -> u64 {
        self.unknown_frees
    }

    /// Returns all call stacks that have allocated, each with its node and its sums.
    pub fn stacks(&self) -> impl Iterator<Item = (u32, &Sums)> {
        (0..).zip(&self.sums).filter(|(_, sums)| sums.blocks > 0)
    }

    /// Returns the running threads that have allocated, by their number.
    pub fn threads(&self) -> BTreeMap<u32, &LiveThread> {
        let all = self.threads.iter().filter(|(_, thread)| thread.sums.blocks > 0);
        all.map(|(&number, thread)| (number, thread)).collect()
    }

    /// Returns the frames of a call stack, the innermost first.
    pub fn frames(&self, mut node: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::from_fn(move || {
            let (parent, frame, _) = self.tree.node(node);
            (node != ROOT).then(|| {
                node = parent;
                frame
            })
        })
    }

    /// Returns the functions of a frame: the function that contains the frame, and the functions that were
    /// inlined there, the innermost first. `None` if the names are not looked up yet.
    pub fn functions(&self, frame: u32) -> Option<Vec<FrameInfo<'_>>> {
        let (functions, module) = self.functions.get(frame as usize)?;
        let mut infos = Vec::new();
        for (number, function) in functions.iter().enumerate().rev() {
            infos.push(FrameInfo {
                function: &function.name,
                file: function.file.as_deref().unwrap_or_default(),
                line: function.line,
                module,
                is_inlined: number > 0,
            });
        }
        Some(infos)
    }

    /// Returns the frames whose functions are unknown, so that another thread can look them up.
    /// `None` if there are none, or if a thread still looks up others.
    pub fn unnamed(&mut self) -> Option<Unnamed> {
        let begin = self.functions.len();
        if self.is_looking || begin >= self.modules.frames() {
            return None;
        }
        self.is_looking = true;
        let (modules, frames) = (self.modules.files().to_vec(), self.modules.frames_from(begin));
        Some(Unnamed { modules, frames })
    }

    /// Adds functions that a thread has looked up.
    pub fn name(&mut self, named: Named) {
        self.is_looking = false;
        self.functions.extend(named.0);
    }
}

/// Frames whose functions are not known yet.
pub struct Unnamed {
    modules: Vec<Module>,
    frames: Vec<Frame>,
}

/// Functions that were looked up.
pub struct Named(Vec<(Vec<Function>, String)>);

impl Unnamed {
    /// Looks up the functions, also in `folders` with debug information. Takes up to a few seconds for a
    /// large program, so call this in a separate thread.
    pub fn look_up(self, folders: &[PathBuf]) -> Named {
        let lookup = Lookup { folders: Some(folders), fetch_for: None };
        let symbols = symbols::look_up(&self.modules, &self.frames, lookup, &mut |_, _| ());
        let of_frame = |(number, frame): (u32, &Frame)| {
            let module = match frame {
                Frame::Code { module, .. } => self.modules.get(*module as usize),
                Frame::Unknown { .. } | Frame::Named(_) | Frame::Known { .. } => None,
            };
            let module = module.map_or(String::new(), |of| of.path.to_string_lossy().into_owned());
            (symbols.functions(number).to_vec(), module)
        };
        Named((0..).zip(&self.frames).map(of_frame).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes the bytes of records, each of which is followed by return addresses.
    fn bytes(records: &[(Record, &[u64])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (record, frames) in records {
            let stack = format::pack_stack(0, frames.len() as u16);
            bytes.extend(Record { stack, ..*record }.to_bytes());
            frames.iter().for_each(|frame| bytes.extend(frame.to_ne_bytes()));
            bytes.resize(bytes.len().next_multiple_of(RECORD_BYTES), 0);
        }
        bytes
    }

    /// Makes the record that a thread of process 1 starts.
    fn start(thread: u32) -> [u8; RECORD_BYTES] {
        Record { stack: thread, dur: 1, ..Record::new(op::THREAD_START, 0, 7, 0) }.to_bytes()
    }

    fn malloc(t: u64, addr: u64, size: u64) -> Record {
        Record::new(op::MALLOC, t, addr, size)
    }

    fn sums(live: &Live) -> [u64; 4] {
        let Sums { live_bytes, live_blocks, bytes, blocks } = live.whole();
        [live_bytes, live_blocks, bytes, blocks]
    }

    #[test]
    fn blocks_in_use_are_counted_for_each_call_stack() {
        let mut live = Live::default();
        let free = Record::new(op::FREE, 3, 0x100, 0);
        live.read(1, &start(1));
        live.read(1, &bytes(&[(malloc(1, 0x100, 10), &[7, 8]), (malloc(2, 0x200, 20), &[7, 9])]));
        live.read(1, &bytes(&[(free, &[7, 5])]));
        live.advance(10);
        assert_eq!(sums(&live), [20, 1, 30, 2]);
        let by_stack: Vec<[u64; 2]> =
            live.stacks().map(|(_, sums)| [sums.live_bytes, sums.bytes]).collect();
        assert_eq!(by_stack, [[0, 10], [20, 20]]);
        assert_eq!(live.threads()[&1].sums.bytes, 30);
    }

    #[test]
    fn a_free_by_another_thread_that_is_read_first_finds_the_block() {
        let mut live = Live::default();
        live.read(2, &bytes(&[(Record::new(op::FREE, 5, 0x100, 0), &[])]));
        live.read(1, &bytes(&[(malloc(4, 0x100, 10), &[7])]));
        live.advance(5);
        assert_eq!((sums(&live), live.unknown_frees()), ([10, 1, 10, 1], 0));
        live.advance(6);
        assert_eq!((sums(&live), live.unknown_frees()), ([0, 0, 10, 1], 0));
    }

    #[test]
    fn a_failed_realloc_leaves_the_block_unchanged() {
        let from = Record::new(op::REALLOC_FROM, 2, 0x100, 0);
        let to = |addr, size| Record::new(op::REALLOC_TO, 3, addr, size);
        for (to, expected) in [
            (to(0, 99), [10, 1, 10, 1]),
            (to(0, 0), [0, 0, 10, 1]),
            (to(0x100, 50), [50, 1, 60, 2]),
            (to(0x900, 5), [5, 1, 15, 2]),
        ] {
            let mut live = Live::default();
            live.read(1, &bytes(&[(malloc(1, 0x100, 10), &[7]), (from, &[]), (to, &[7])]));
            live.advance(10);
            assert_eq!(sums(&live), expected);
        }
    }

    #[test]
    fn blocks_of_an_ended_process_and_blocks_from_before_the_recording_are_not_in_use() {
        let mut live = Live::default();
        live.read(1, &bytes(&[(malloc(1, 0x100, 10), &[7])]));
        live.read(1, &bytes(&[(Record::new(op::FREE, 2, 0x900, 0), &[])]));
        live.advance(10);
        assert_eq!((sums(&live), live.unknown_frees()), ([10, 1, 10, 1], 1));
        live.end(0, 11);
        live.read(1, &bytes(&[(malloc(10, 0x200, 5), &[7])]));
        live.advance(12);
        assert_eq!(sums(&live), [0, 0, 15, 2]);
    }

    #[test]
    fn an_ended_thread_is_not_listed_and_its_blocks_stay_in_use() {
        let mut live = Live::default();
        live.read(1, &start(1));
        live.read(1, &bytes(&[(malloc(1, 0x100, 10), &[7])]));
        live.read(1, &Record { stack: 1, ..Record::new(op::THREAD_END, 2, 0, 0) }.to_bytes());
        live.advance(2);
        assert_eq!(live.threads().len(), 1);
        live.advance(3);
        assert_eq!((live.threads().len(), sums(&live)), (0, [10, 1, 10, 1]));
        let of_1 = |record| Record { dur: 0, ..record };
        live.read(1, &bytes(&[(of_1(Record::new(op::FREE, 4, 0x100, 0)), &[])]));
        live.advance(5);
        assert_eq!(sums(&live), [0, 0, 10, 1]);
    }

    #[test]
    fn a_record_without_its_last_bytes_is_ignored() {
        let mut live = Live::default();
        let whole = bytes(&[(malloc(1, 0x100, 10), &[7, 8])]);
        for end in 0..whole.len() {
            live.read(1, &whole[..end.min(RECORD_BYTES + 8)]);
        }
        live.advance(10);
        assert_eq!(sums(&live), [0; 4]);
    }

    #[test]
    fn functions_are_looked_up_in_batches() {
        let mut live = Live::default();
        live.read(1, &bytes(&[(malloc(1, 0x100, 10), &[7])]));
        live.advance(10);
        let unnamed = live.unnamed().unwrap();
        assert!(live.unnamed().is_none());
        let (node, _) = live.stacks().next().unwrap();
        let frame = live.frames(node).next().unwrap();
        assert_eq!(live.functions(frame), None);
        live.name(unnamed.look_up(&[]));
        assert_eq!(live.functions(frame).unwrap()[0].function, "0x7");
        assert!(live.unnamed().is_none());
    }
}

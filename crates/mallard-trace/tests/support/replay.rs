//! Helpers of the replay tests: traces made event by event, op streams as text, and a simulator
//! that replays them.

use super::{header, import_in, with_frames, StreamOf};
use mallard_trace::error::Error;
use mallard_trace::format::{self, pack_stack, Header, Record};
use mallard_trace::import;
use mallard_trace::replay::format::{op, Op, HEADER_BYTES, OP_BYTES, TARGET_BYTES, THREAD_BYTES};
use mallard_trace::replay::{compile, Compiled, Options, Plan};
use mallard_trace::tables::schema::FRAMES;
use mallard_trace::tables::{Column, Tables};
use mallard_trace::Trace;
use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// Functions of scripts. Their addresses begin at 0x1000.
pub const FUNCTIONS: [&str; 10] = [
    "main",
    "outer",
    "parse_document",
    "make_node(int)",
    "operator new(unsigned long)",
    "pthread_create",
    "start_thread",
    "Node* app::build<int>(int)",
    "other",
    "libx.so+0x77",
];

/// Returns the address of a function.
fn address(name: &str) -> u64 {
    let found = FUNCTIONS.iter().position(|function| *function == name);
    0x1000 + found.expect("a function of FUNCTIONS") as u64
}

/// Makes a trace event by event.
pub struct Script {
    stream: StreamOf,
    pub t: u64,
    stacks: HashMap<u32, Vec<u64>>,
    process: u32,
    /// The maximum number of outer frames that the next event shares with the previous event of its
    /// thread.
    keeps: usize,
    pub align: u8,
    pub flags: u16,
    pub dur: u32,
}

impl Script {
    pub fn new() -> Self {
        Script::with(&header())
    }

    pub fn with(header: &Header) -> Self {
        let mut stream = StreamOf::with(header);
        stream.text(format::op::PROCESS, 1000, 1, 42, 0, "start /bin/a");
        let stacks = HashMap::new();
        Script { stream, t: 1000, stacks, process: 1, keeps: 99, align: 0, flags: 0, dur: 0 }
    }

    /// Begins another process. New threads belong to this process.
    pub fn process(&mut self, number: u32, begins: &str) -> &mut Self {
        self.stream.text(format::op::PROCESS, self.t, number, 43, 0, begins);
        self.process = number;
        self
    }

    /// Makes the next event part of a new call, because it shares at most `frames` outer frames
    /// with the previous event of its thread.
    pub fn keeps(&mut self, frames: usize) -> &mut Self {
        self.keeps = frames;
        self
    }

    pub fn wait(&mut self, ns: u64) -> &mut Self {
        self.t += ns;
        self
    }

    /// Adds an event with its call stack, the outermost function first.
    pub fn event(
        &mut self,
        thread: u32,
        op: u8,
        addr: u64,
        size: u64,
        stack: &[&str],
    ) -> &mut Self {
        self.t += 1;
        if !self.stacks.contains_key(&thread) {
            let (start, process) = (format::op::THREAD_START, self.process);
            let id = 4000 + u64::from(thread);
            self.stream.text(start, self.t, thread, id, process, "worker");
        }
        let stack: Vec<u64> = stack.iter().map(|name| address(name)).collect();
        let before = self.stacks.entry(thread).or_default();
        let same = before.iter().zip(&stack).take_while(|(a, b)| a == b).count();
        let kept = same.min(std::mem::replace(&mut self.keeps, 99));
        let fresh = &stack[kept..];
        let record = Record {
            t: self.t,
            addr,
            what: format::pack(size, self.align, op, self.flags),
            stack: pack_stack(kept as u16, fresh.len() as u16),
            dur: self.dur,
        };
        self.stream.piece(u64::from(thread), &[with_frames(record, fresh)]);
        if !stack.is_empty() {
            *before = stack;
        }
        self
    }

    /// Adds a CPU time sample of a thread.
    pub fn cpu(&mut self, thread: u32, ns: u64) -> &mut Self {
        self.stream.record(format::op::CPU, self.t, thread, ns);
        self
    }

    pub fn malloc(&mut self, thread: u32, addr: u64, size: u64, stack: &[&str]) -> &mut Self {
        self.event(thread, format::op::MALLOC, addr, size, stack)
    }

    pub fn free(&mut self, thread: u32, addr: u64, stack: &[&str]) -> &mut Self {
        self.event(thread, format::op::FREE, addr, 0, stack)
    }

    pub fn realloc(
        &mut self,
        thread: u32,
        from: u64,
        to: u64,
        size: u64,
        stack: &[&str],
    ) -> &mut Self {
        self.event(thread, format::op::REALLOC_FROM, from, 0, stack);
        self.event(thread, format::op::REALLOC_TO, to, size, stack)
    }

    /// Adds a mark of a thread. `op` says whether it begins or ends a region.
    pub fn mark(&mut self, thread: u32, op: u8, name: &str) -> &mut Self {
        self.t += 1;
        let records = Record::mark(op, self.t, name);
        let events: Vec<Vec<u8>> =
            records.iter().map(|record| record.to_bytes().to_vec()).collect();
        self.stream.piece(u64::from(thread), &events);
        self
    }

    /// Adds a record to the stream.
    pub fn record(&mut self, op: u8, number: u32, addr: u64, size: u64) -> &mut Self {
        let record = Record { stack: number, ..Record::new(op, self.t, addr, size) };
        self.stream.0.record(&record).unwrap();
        self
    }

    /// Makes a trace of the script. Its frames get the names in [`FUNCTIONS`].
    pub fn trace(self, folder: &Path) -> Trace {
        let trace = import_in(folder, &self.stream.finish(), &import::Options::default()).unwrap();
        let path = trace.folder().to_path_buf();
        let frames = trace.table(&FRAMES).unwrap();
        let column = |name| frames.i64s(name).unwrap();
        let offsets = column("offset");
        let names = frames.texts("func").unwrap();
        let name = |(offset, name): (&i64, &'_ String)| {
            let known = FUNCTIONS.get((*offset as usize).wrapping_sub(0x1000));
            // A frame for the name of a marked region has no offset.
            let other = if *offset < 0 { name.as_str() } else { "?" };
            known.copied().unwrap_or(other).to_string()
        };
        let names: Vec<String> = offsets.iter().zip(&names).map(name).collect();
        let null = |values: Vec<i64>| values.into_iter().map(|v| (v >= 0).then_some(v));
        let small =
            |values: Vec<i64>| null(values).map(|v| v.map(|v| v as i32)).collect::<Vec<_>>();
        let columns = vec![
            Column::i32(column("frame").iter().map(|&frame| frame as i32)),
            Column::i32_or_null(small(column("module"))),
            Column::i64_or_null(null(offsets.clone())),
            Column::text(names.iter().map(String::as_str)),
            Column::text_or_null(offsets.iter().map(|_| None)),
            Column::i32_or_null(small(column("line"))),
            Column::i32_or_null(small(column("inline_of"))),
        ];
        fs::remove_file(path.join("frames.parquet")).unwrap();
        let mut tables = Tables::new(&path);
        tables.write(&FRAMES, columns);
        tables.finish().unwrap();
        Trace::open(&path).unwrap()
    }
}

pub const MAIN: &[&str] = &["main"];
pub const PARSE: &[&str] = &["main", "parse_document"];
pub const NODE: &[&str] =
    &["main", "parse_document", "make_node(int)", "operator new(unsigned long)"];
pub const CREATE: &[&str] = &["main", "pthread_create"];
pub const WORKER: &[&str] = &["start_thread", "other"];

pub fn plan(text: &str) -> Plan {
    Plan::parse(text, "a plan").unwrap()
}

pub fn region(function: &str, strategy: &str, ends: &str) -> Plan {
    let keys = format!("region = '{function}'\nstrategy = '{strategy}'\nends = '{ends}'");
    plan(&format!("[[rule]]\n{keys}"))
}

pub fn compiled_with(script: Script, plan: &Plan, options: &Options) -> (OpFile, Compiled) {
    let folder = tempfile::tempdir().unwrap();
    let trace = script.trace(folder.path());
    let path = folder.path().join("ops");
    let compiled = compile(&trace, plan, options, &path).unwrap();
    (OpFile::read(&path), compiled)
}

pub fn compiled(script: Script, plan: &Plan) -> (OpFile, Compiled) {
    compiled_with(script, plan, &Options::default())
}

/// Returns the error of a compilation, and checks that no file remains.
pub fn error_with(script: Script, plan: &Plan, options: &Options) -> Error {
    let folder = tempfile::tempdir().unwrap();
    let trace = script.trace(folder.path());
    let path = folder.path().join("ops");
    let error = compile(&trace, plan, options, &path).unwrap_err();
    assert_eq!(error.state(), "nothing was replayed");
    let names = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.count(), 2, "the stream and the trace alone are left");
    error
}

pub fn error(script: Script, plan: &Plan) -> Error {
    error_with(script, plan, &Options::default())
}

/// An op stream that was read from a file.
pub struct OpFile {
    bytes: Vec<u8>,
    pub threads: Vec<Vec<Op>>,
    /// For each target: the kind of allocator, whether it is shared, the first chunk, and the rule.
    pub targets: Vec<(u32, bool, u64, u32)>,
    pub recorded: Vec<u64>,
    pub starts_ns: Vec<u64>,
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap())
}

impl OpFile {
    pub fn read(path: &Path) -> OpFile {
        let bytes = fs::read(path).unwrap();
        let (threads, targets) = (u32_at(&bytes, 24) as usize, u32_at(&bytes, 28) as usize);
        let thread_at = |index: usize| HEADER_BYTES + index * THREAD_BYTES;
        let target_at = |index: usize| thread_at(threads) + index * TARGET_BYTES;
        let ops = |index: usize| {
            let (offset, ops) =
                (u64_at(&bytes, thread_at(index)), u64_at(&bytes, thread_at(index) + 8));
            let of = &bytes[offset as usize..offset as usize + ops as usize * OP_BYTES];
            of.chunks_exact(OP_BYTES).map(Op::from_bytes).collect()
        };
        let target = |index: usize| {
            let at = target_at(index);
            let is_shared = u32_at(&bytes, at + 4) == 1;
            (u32_at(&bytes, at), is_shared, u64_at(&bytes, at + 8), u32_at(&bytes, at + 16))
        };
        let all: Vec<Vec<Op>> = (0..threads).map(ops).collect();
        let count: usize = all.iter().map(Vec::len).sum();
        assert_eq!(bytes.len(), target_at(targets) + count * OP_BYTES);
        assert_eq!(u64_at(&bytes, 40), count as u64);
        OpFile {
            threads: all,
            targets: (0..targets).map(target).collect(),
            recorded: (0..threads).map(|index| u64_at(&bytes, thread_at(index) + 16)).collect(),
            starts_ns: (0..threads).map(|index| u64_at(&bytes, thread_at(index) + 24)).collect(),
            bytes,
        }
    }

    /// Returns the fields of the header after `targets`: slots, ops, live_peak, blocks_peak, calls,
    /// checksum.
    pub fn sums(&self) -> [u64; 6] {
        [0, 1, 2, 3, 4, 5].map(|index| u64_at(&self.bytes, 32 + 8 * index))
    }

    /// Returns the ops of a thread as text, without gaps.
    pub fn text(&self, thread: usize) -> Vec<String> {
        self.threads[thread].iter().map(text).collect()
    }
}

const NAMES: [&str; 25] = [
    "end",
    "malloc",
    "calloc",
    "aligned",
    "realloc",
    "new",
    "new_aligned",
    "free",
    "delete",
    "delete_aligned",
    "free_sized",
    "free_aligned",
    "free_null",
    "malloc_failed",
    "calloc_failed",
    "aligned_failed",
    "realloc_failed",
    "?",
    "open",
    "close",
    "publish",
    "wait",
    "start",
    "pause",
    "realloc_from",
];

/// Formats an op as text, such as `malloc 24 slot 3 target 1`.
fn text(of: &Op) -> String {
    let name = NAMES[usize::from(of.op())];
    let target = match of.target() {
        0 => String::new(),
        target => format!(" target {target}"),
    };
    let align = match of.align_log2() {
        0 | 4 => String::new(),
        align => format!(" align {align}"),
    };
    let body = match of.op() {
        op::END | op::OP_FREE_NULL | op::OPEN | op::CLOSE => String::new(),
        op::PUBLISH | op::PAUSE => format!(" {}", of.size()),
        op::WAIT => format!(" {} of thread {}", of.size(), of.slot),
        op::START => format!(" thread {}", of.slot),
        op::OP_MALLOC_FAILED..=op::OP_ALIGNED_FAILED => format!(" {}", of.size()),
        _ => format!(" {} slot {}", of.size(), of.slot),
    };
    format!("{name}{body}{align}{target}")
}

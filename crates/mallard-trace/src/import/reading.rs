//! Reads an event stream: resolves call stacks, sorts the events by time, and passes them to the
//! ledger, which runs in a separate thread.

use super::ledger_thread::LedgerThread;
use super::marks::Marks;
use super::samples::{self, Sample};
use crate::clock::Clock;
use crate::error::Result;
use crate::format::{self, flag, loss, op, Header, Kind, Record};
use crate::hash::NumberMap;
use crate::ledger::{Call, Counts, Ledger, Message};
use crate::manifest::{Losses, Repairs};
use crate::merge::Merge;
use crate::modules::Modules;
use crate::rounding::Rounding;
use crate::sites::Finished;
use crate::slices::{CpuTime, Slices, Width};
use crate::stacks::{ThreadStack, Tree, FRAME_CUT, FRAME_GAP, ROOT};
use crate::stream::{Event, Reader};
use crate::system_text::name_of_kernel;
use crate::tables::{Tables, Written};
use std::collections::HashMap;
use std::io::Read;

/// The maximum number of events that are stored until they can be sorted. Each event uses 48 bytes.
const HELD_MAX: usize = 1 << 21;
/// The maximum number of nodes in the call stack tree. Each uses 19 to 24 bytes.
const NODES_MAX: usize = 1 << 24;
/// The maximum number of threads, and of processes, so that a corrupt stream cannot exhaust the
/// memory.
const NUMBERS_MAX: usize = 1 << 20;
/// Number of records between two progress reports.
const STEP: u64 = 1 << 19;

/// Progress of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// This many records of the stream have been read.
    Records(u64),
    /// Functions are being looked up for this many addresses.
    Symbols(usize),
    /// A file with debug information is being fetched: its number, and the total number of files.
    Fetching(usize, usize),
    /// Figures are being computed for this many sites.
    Sites(usize),
}

/// The allocator whose blocks are in a table of blocks.
#[derive(PartialEq, Eq, Hash)]
enum Owner {
    /// The malloc of a process.
    Process(u32),
    /// A traced allocator.
    Allocator(u32),
}

/// A thread of the program.
#[derive(Default)]
pub(super) struct Thread {
    pub number: u64,
    pub process: u32,
    pub system_id: u64,
    pub name: String,
    pub t0: Option<u64>,
    pub t1: Option<u64>,
    pub cpu_ns: Option<u64>,
    pub events: u64,
    table: u32,
    stack: ThreadStack,
}

/// A process of the program.
#[derive(Default)]
pub(super) struct Process {
    pub number: u32,
    pub pid: u64,
    pub parent: Option<u32>,
    pub begins: String,
    pub path: String,
    pub t0: u64,
    pub t1: Option<u64>,
    pub status: Option<u64>,
    has_thread: bool,
    /// Whether the process has inherited the blocks of its parent by fork.
    is_forked: bool,
}

impl Process {
    fn new(number: u32, begins: String) -> Process {
        Process { number, begins, ..Process::default() }
    }
}

/// A traced allocator.
struct Allocator {
    table: u32,
    frame: u32,
    node: u32,
}

/// The state while a stream is read.
pub(super) struct Reading {
    start_pid: u32,
    tree: Tree,
    modules: Modules,
    merge: Merge<Call>,
    ledger: LedgerThread,
    tables: HashMap<Owner, u32>,
    /// The clock for the times of records that do not wait to be sorted.
    clock: Clock,
    threads: Vec<Thread>,
    by_number: NumberMap<u64, u32>,
    current: Option<u32>,
    processes: Vec<Process>,
    /// The index in `processes` of the latest process with each process number.
    by_process: NumberMap<u32, u32>,
    allocators: NumberMap<u32, Allocator>,
    marks: Marks,
    samples: Vec<Sample>,
    waiting: samples::Waiting,
    cpu: Vec<(i64, i32, i64)>,
    cpu_slices: Slices,
    width: Width,
    losses: Losses,
    repairs: Repairs,
}

/// The result of reading a stream, after its last event.
pub(super) struct ReadStream {
    pub modules: Modules,
    pub tree: Tree,
    pub threads: Vec<Thread>,
    pub processes: Vec<Process>,
    pub samples: Vec<Sample>,
    pub cpu_rows: Vec<(i64, i32, i64)>,
    pub cpu: CpuTime,
    pub clock: Clock,
    pub sites: Finished,
    pub rounding: Rounding,
    pub losses: Losses,
    pub repairs: Repairs,
    pub counts: Counts,
    pub written: Vec<Written>,
    pub duration_ns: i64,
}

impl Reading {
    pub fn new(header: &Header, tables: Tables, has_addresses: bool) -> Self {
        let (clock, mean) = (Clock::new(header), header.sample_bytes);
        let ledger = Ledger::new(clock, mean, tables, has_addresses);
        Reading {
            start_pid: header.pid,
            tree: Tree::new(NODES_MAX),
            modules: Modules::default(),
            merge: Merge::new(HELD_MAX),
            ledger: LedgerThread::start(ledger),
            tables: HashMap::new(),
            clock: Clock::new(header),
            threads: Vec::new(),
            by_number: NumberMap::default(),
            current: None,
            processes: Vec::new(),
            by_process: NumberMap::default(),
            allocators: NumberMap::default(),
            marks: Marks::default(),
            samples: Vec::new(),
            waiting: samples::Waiting::default(),
            cpu: Vec::new(),
            cpu_slices: Slices::default(),
            width: Width::default(),
            losses: Losses::default(),
            repairs: Repairs::default(),
        }
    }

    /// Reads all events. Fails only if the tables cannot be written.
    pub fn read<R: Read>(
        &mut self,
        reader: &mut Reader<R>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<()> {
        let mut next = STEP;
        while let Some(event) = reader.next_event() {
            self.event(&event);
            if reader.records() >= next {
                next = reader.records() + STEP;
                progress(Progress::Records(reader.records()));
                if self.ledger.has_failed() {
                    break;
                }
            }
        }
        progress(Progress::Records(reader.records()));
        Ok(())
    }

    fn event(&mut self, event: &Event) {
        let record = &event.record;
        match record.kind() {
            kind @ (Kind::Allocation
            | Kind::ReallocFrom
            | Kind::ReallocTo
            | Kind::Free
            | Kind::UnknownCall) => self.family(event, kind != Kind::UnknownCall),
            Kind::TracedAllocation | Kind::TracedFree | Kind::TracedReset => self.traced(record),
            Kind::Thread => self.current = self.thread(record.addr),
            Kind::Checkpoint => self.checkpoint(record),
            Kind::Module => {
                let text = event.text();
                self.begin_program(record.stack);
                let bytes = event.text_bytes();
                let is_good = self.modules.module(record.stack, record.addr, bytes, record.t);
                self.repairs.bad_texts += u64::from(!is_good);
                if let Some(rounding) = Rounding::of_module(&text) {
                    self.ledger.send(Message::Rounding(rounding));
                }
            }
            Kind::Process => self.process(record, &event.text()),
            Kind::ProcessEnd => self.process_end(record),
            Kind::ThreadStart => self.thread_start(record, &name_of_kernel(event.text_bytes())),
            Kind::ThreadEnd => {
                if let Some(thread) = self.thread(u64::from(record.stack)) {
                    self.threads[thread as usize].t1 = Some(record.t);
                }
            }
            Kind::Memory => self.memory(record, &event.text()),
            Kind::Cpu => self.cpu(record),
            Kind::Name => self.name(record, &event.text()),
            Kind::RegionBegin | Kind::RegionEnd | Kind::RegionName => self.mark(record),
            Kind::Lost => {
                *match record.stack {
                    loss::FULL => &mut self.losses.full,
                    loss::NESTED => &mut self.losses.nested,
                    loss::WRITE => &mut self.losses.write,
                    _ => &mut self.losses.unknown,
                } += record.size();
            }
            Kind::End => {} // `Reader` handles the end of the stream
            Kind::Unknown => self.repairs.unknown_records += 1,
        }
    }

    /// Returns the index of the thread with a number. Adds the thread if it is new. Returns `None`
    /// if there are too many threads.
    fn thread(&mut self, number: u64) -> Option<u32> {
        if let Some(&index) = self.by_number.get(&number) {
            return Some(index);
        }
        if self.threads.len() >= NUMBERS_MAX {
            return None;
        }
        // A thread without a THREAD_START record belongs to the first process, if there is one.
        let process = self.processes.first().map_or(0, |process| process.number);
        let index = self.threads.len() as u32;
        let table = self.table(Owner::Process(process));
        let thread = Thread { number, process, system_id: number, table, ..Thread::default() };
        self.threads.push(thread);
        self.by_number.insert(number, index);
        self.tell_ledger(index);
        Some(index)
    }

    fn tell_ledger(&mut self, index: u32) {
        let thread = &self.threads[index as usize];
        let is_forked = self.is_forked(thread.process);
        let (tid, process) = (thread.number as i32, thread.process as i32);
        self.ledger.send(Message::Thread { thread: index, tid, process, is_forked });
    }

    /// Returns the index of an allocator's table of blocks. Adds the table if it is new.
    fn table(&mut self, owner: Owner) -> u32 {
        let next = self.tables.len() as u32;
        *self.tables.entry(owner).or_insert(next)
    }

    fn thread_start(&mut self, record: &Record, name: &str) {
        let Some(index) = self.thread(u64::from(record.stack)) else { return };
        let table = self.table(Owner::Process(record.dur));
        let thread = &mut self.threads[index as usize];
        thread.process = record.dur;
        thread.table = table;
        thread.system_id = record.addr;
        thread.name = name.to_string();
        thread.t0 = Some(record.t);
        if let Some(&process) = self.by_process.get(&record.dur) {
            self.processes[process as usize].has_thread = true;
        }
        self.tell_ledger(index);
    }

    /// Handles the first module record of a process. A child after fork has the modules of its
    /// parent. But if the module record precedes the child's first thread, the child has executed
    /// another program, so its address space is new.
    fn begin_program(&mut self, number: u32) {
        let Some(&index) = self.by_process.get(&number) else { return };
        let process = &mut self.processes[index as usize];
        if process.is_forked && !process.has_thread {
            process.is_forked = false;
            self.modules.process(number, None);
        }
    }

    fn process(&mut self, record: &Record, text: &str) {
        if self.processes.len() >= NUMBERS_MAX {
            return;
        }
        let (begins, rest) = text.split_once(' ').unwrap_or((text, ""));
        let has_parent = matches!(begins, "fork" | "exec");
        let (parent, path) = match rest.split_once(' ').unwrap_or((rest, "")) {
            (number, path) if has_parent => (number.parse().ok(), path),
            _ => (None, rest),
        };
        if !matches!(begins, "start" | "attach" | "fork" | "exec") || has_parent && parent.is_none()
        {
            self.repairs.bad_texts += 1;
        }
        let number = record.stack;
        let is_fork = begins == "fork";
        self.modules.process(number, parent.filter(|_| is_fork));
        if begins == "exec" {
            // exec replaces the memory of the process, so the blocks of the old program are gone.
            let table = parent.map(|parent| self.table(Owner::Process(parent)));
            self.end_of_memory(table, record.t);
            if let Some(&index) = parent.and_then(|parent| self.by_process.get(&parent)) {
                self.processes[index as usize].t1 = Some(record.t);
            }
        }
        self.by_process.insert(number, self.processes.len() as u32);
        let begins = begins.to_string();
        self.processes.push(Process {
            pid: record.addr,
            parent,
            path: path.to_string(),
            t0: record.t,
            is_forked: is_fork,
            ..Process::new(number, begins)
        });
    }

    fn process_end(&mut self, record: &Record) {
        let number = record.stack;
        let table = self.table(Owner::Process(number));
        self.end_of_memory(Some(table), record.t);
        if let Some(&index) = self.by_process.get(&number) {
            let process = &mut self.processes[index as usize];
            process.t1 = Some(record.t);
            // All bits are set if another process waits for this process, because its status is
            // then unknown.
            process.status = Some(record.addr).filter(|&status| status != u64::MAX);
        }
    }

    /// Removes all blocks of a table at time `t`, because the memory of the process no longer
    /// exists.
    fn end_of_memory(&mut self, table: Option<u32>, t: u64) {
        let Some(table) = table else { return };
        let what = format::pack(0, 0, op::PROCESS_END, 0);
        self.hold(Call { t, addr: 0, what, dur: 0, node: 0, thread: 0, table, fresh: 0 });
    }

    /// Handles a call of malloc or a related function. The call stack of the thread is updated
    /// here, before events are sorted, because the stream has the events of a single thread in
    /// order. A call of an unknown kind only updates the call stack, which the next call stack
    /// refers to.
    #[inline]
    fn family(&mut self, event: &Event, is_known: bool) {
        let record = &event.record;
        let Some(index) = self.current_thread() else { return };
        let table = self.threads[index as usize].table;
        let node = if record.stack == 0 { ROOT } else { self.call_stack(event, index) };
        if is_known {
            self.call(record, (index, node, table), record.fresh() as u16);
        } else {
            self.repairs.unknown_records += 1;
        }
    }

    /// Updates the call stack of a thread, and returns the node of the call stack.
    #[inline]
    fn call_stack(&mut self, event: &Event, index: u32) -> u32 {
        let (record, thread) = (&event.record, &mut self.threads[index as usize]);
        let (mut node, had) = thread.stack.keep(record.kept());
        self.repairs.broken_stacks += u64::from(!had);
        let flags = record.flags();
        if flags & (flag::STACK_CUT | flag::STACK_GAP) != 0 {
            self.repairs.cut_stacks += u64::from(flags & flag::STACK_CUT != 0);
            self.repairs.gap_stacks += u64::from(flags & flag::STACK_GAP != 0);
            if flags & flag::STACK_CUT != 0 && record.kept() == 0 {
                node = self.tree.child(node, FRAME_CUT);
            }
            if flags & flag::STACK_GAP != 0 {
                node = self.tree.child(node, FRAME_GAP);
            }
        }
        if record.fresh() > 0 {
            let space = self.modules.space_of(thread.process);
            for address in event.frames() {
                node = self.tree.child(node, self.modules.frame(space, address));
                thread.stack.push(node);
            }
        }
        node
    }

    /// Adds a call of a thread to the events to sort. `node` is the call stack, and `table` is the
    /// table of blocks.
    #[inline]
    fn call(&mut self, record: &Record, (thread, node, table): (u32, u32, u32), fresh: u16) {
        let &Record { t, addr, what, dur, .. } = record;
        self.hold(Call { t, addr, what, dur, node, thread, table, fresh });
    }

    fn current_thread(&mut self) -> Option<u32> {
        match self.current {
            Some(index) => Some(index),
            // A stream without any THREAD record has a single thread.
            None => {
                self.current = self.thread(0);
                self.current
            }
        }
    }

    /// Handles a call of a traced allocator. The record has the allocator's number in place of a
    /// call stack.
    fn traced(&mut self, record: &Record) {
        let Some(thread) = self.current_thread() else { return };
        let (table, node) = self.allocator(record.stack);
        self.call(record, (thread, node, table), 0);
    }

    fn allocator(&mut self, number: u32) -> (u32, u32) {
        if let Some(allocator) = self.allocators.get(&number) {
            return (allocator.table, allocator.node);
        }
        let frame = self.modules.named_frame(format!("allocator {number}"));
        let node = self.tree.child(ROOT, frame);
        let table = self.table(Owner::Allocator(number));
        self.allocators.insert(number, Allocator { table, frame, node });
        (table, node)
    }

    fn name(&mut self, record: &Record, name: &str) {
        self.allocator(record.stack);
        if let Some(allocator) = self.allocators.get(&record.stack) {
            self.modules.rename(allocator.frame, name.to_string());
        }
    }

    /// Handles a record with a part of a mark. The mark becomes an event when its name is complete.
    fn mark(&mut self, record: &Record) {
        let Some(thread) = self.current_thread() else { return };
        let Some(mark) = self.marks.take(record, thread) else { return };
        let (tree, modules) = (&mut self.tree, &mut self.modules);
        let new_node = |name: &str| tree.child(ROOT, modules.named_frame(name.to_string()));
        let Some(node) = self.marks.node(&mark.name, new_node) else { return };
        let table = self.threads[thread as usize].table;
        let what = format::pack(0, 0, mark.op, 0);
        self.hold(Call { t: mark.t, addr: 0, what, dur: 0, node, thread, table, fresh: 0 });
    }

    fn memory(&mut self, record: &Record, text: &str) {
        let (numbers, mapped) = samples::parse(text);
        let Some(mapped) = self.waiting.add(record.stack, &numbers, mapped) else { return };
        let resident = samples::resident(&numbers, mapped);
        // The ledger adds the number of live bytes after it has processed all earlier events.
        let what = format::pack(0, 0, op::MEMORY, 0);
        let number = self.samples.len() as u64;
        let table = self.table(Owner::Process(record.stack));
        // After a fork, the child also has the blocks of its parent, which are missing in its table
        // of blocks.
        if let Some(resident) = resident.filter(|_| !self.is_forked(record.stack)) {
            self.ledger.send(Message::Resident { number, resident });
        }
        self.samples.push(Sample::new(record.stack, numbers));
        let call =
            Call { t: record.t, addr: number, what, dur: 0, node: 0, thread: 0, table, fresh: 0 };
        self.hold(call);
    }

    fn is_forked(&self, process: u32) -> bool {
        let index = self.by_process.get(&process);
        index.is_some_and(|&index| self.processes[index as usize].is_forked)
    }

    fn cpu(&mut self, record: &Record) {
        let Some(index) = self.thread(u64::from(record.stack)) else { return };
        let thread = &mut self.threads[index as usize];
        let used = record.addr.saturating_sub(thread.cpu_ns.unwrap_or(0));
        thread.cpu_ns = Some(record.addr.max(thread.cpu_ns.unwrap_or(0)));
        let ns = self.clock.ns(record.t);
        let slice = self.width.slice(ns);
        self.cpu_slices.add(self.width, slice, used as f64);
        self.cpu.push((ns, thread.number as i32, record.addr as i64));
    }

    fn checkpoint(&mut self, record: &Record) {
        let (t, ns) = (record.t, record.addr);
        self.clock.checkpoint(t, ns);
        self.ledger.send(Message::Checkpoint { t, ns });
        self.merge.before(t, |call| self.ledger.call(call));
    }

    #[inline]
    fn hold(&mut self, call: Call) {
        if self.merge.push(call) {
            self.merge.half(|call| self.ledger.call(call));
        }
    }

    /// Processes the events that still wait to be sorted, and waits until the ledger has written
    /// its tables. `cpu_ns` is the CPU time of the recorded processes, or `None` if the recorder
    /// did not measure it.
    pub fn finish(mut self, cpu_ns: Option<i64>) -> Result<ReadStream> {
        self.merge.all(|call| self.ledger.call(call));
        if self.processes.is_empty() {
            let pid = u64::from(self.start_pid);
            self.processes.push(Process { pid, ..Process::new(0, "start".to_string()) });
        }
        let total_ns = self.cpu_total().max(cpu_ns);
        let settled = self.ledger.finish()?;
        for (thread, events) in self.threads.iter_mut().zip(settled.events) {
            thread.events = events;
        }
        for live in settled.samples {
            let sample = &mut self.samples[live.number as usize];
            (sample.ns, sample.live, sample.parts) = (live.ns, live.live, live.parts);
        }
        // A program may continue after its last event. Its live bytes are constant until the last
        // sample.
        let sampled = self.samples.iter().map(|sample| sample.ns).max().unwrap_or(0);
        let sites = settled.sites.finish(settled.last_ns.max(sampled));
        self.repairs.inversions = self.merge.inversions();
        self.repairs.refused_nodes = self.tree.refused();
        self.repairs.merged_sites = sites.merged;
        Ok(ReadStream {
            modules: self.modules,
            tree: self.tree,
            threads: self.threads,
            processes: self.processes,
            samples: self.samples,
            cpu_rows: self.cpu,
            cpu: CpuTime { total_ns, slices: self.cpu_slices, width: self.width },
            clock: self.clock,
            sites,
            rounding: settled.rounding,
            losses: self.losses,
            repairs: self.repairs,
            counts: settled.counts,
            written: settled.written,
            duration_ns: settled.last_ns,
        })
    }

    /// Returns the total CPU time of all threads, or of all processes if that is longer. Returns
    /// `None` if the stream has no CPU times.
    fn cpu_total(&self) -> Option<i64> {
        let of_threads =
            self.threads.iter().filter_map(|thread| thread.cpu_ns).reduce(u64::saturating_add);
        let mut of_processes = NumberMap::<u32, i64>::default();
        for sample in &self.samples {
            let [.., user, system] = sample.numbers;
            if let (Some(user), Some(system)) = (user, system) {
                let most = of_processes.entry(sample.process).or_default();
                *most = user.saturating_add(system).max(*most);
            }
        }
        let of_processes = of_processes.values().copied().reduce(i64::saturating_add);
        of_threads.map(|ns| i64::try_from(ns).unwrap_or(i64::MAX)).max(of_processes)
    }
}

//! Computes the figures of one interval from the sums of a recording.

use mallard_record::system::Memory;
use mallard_trace::live::{Live, Sums};
use mallard_trace::names::{is_standard, is_system_library, is_wrapper, short};
use mallard_trace::trace::FrameInfo;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

/// The figures of a function, of a thread, or of the whole program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    /// Bytes in use.
    pub live_bytes: u64,
    /// Blocks in use.
    pub live_blocks: u64,
    /// How fast the bytes in use grew in the interval, in bytes per second.
    pub growth: f64,
    /// Bytes allocated per second in the interval.
    pub bytes_per_second: f64,
    /// Blocks allocated per second in the interval.
    pub blocks_per_second: f64,
}

impl Row {
    fn add(&mut self, now: &Sums, before: &Sums, seconds: f64) {
        let per_second = |now: u64, before: u64| (now as f64 - before as f64) / seconds;
        self.live_bytes += now.live_bytes;
        self.live_blocks += now.live_blocks;
        self.growth += per_second(now.live_bytes, before.live_bytes);
        self.bytes_per_second += per_second(now.bytes, before.bytes);
        self.blocks_per_second += per_second(now.blocks, before.blocks);
    }
}

/// What the list is ordered by, the largest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Sort {
    /// Bytes in use
    #[default]
    Use,
    /// Growth of the bytes in use
    Growth,
    /// Bytes allocated per second
    Bytes,
    /// Blocks allocated per second
    Blocks,
}

impl Sort {
    /// All orders.
    pub const ALL: [Sort; 4] = [Sort::Use, Sort::Growth, Sort::Bytes, Sort::Blocks];

    /// Returns the figure by which a row is ordered.
    pub fn key(self, row: &Row) -> f64 {
        match self {
            Sort::Use => row.live_bytes as f64,
            Sort::Growth => row.growth,
            Sort::Bytes => row.bytes_per_second,
            Sort::Blocks => row.blocks_per_second,
        }
    }
}

/// A function, with its largest call stack.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Function {
    /// The function and the place of the call, such as `parse  parser.cpp:120`.
    pub name: String,
    /// The figures.
    #[serde(flatten)]
    pub row: Row,
    /// The functions of the call stack that holds or allocates most, the innermost first.
    pub stack: Vec<String>,
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Thread {
    /// The name and the thread id.
    pub name: String,
    /// The figures. Blocks count for the thread that allocated them.
    #[serde(flatten)]
    pub row: Row,
    /// The share of the interval for which the thread used a CPU. `None` if unknown.
    pub cpu: Option<f64>,
}

/// The figures of one interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// The time since the recording began, in seconds.
    pub seconds: f64,
    /// The figures of the whole program.
    #[serde(flatten)]
    pub whole: Row,
    /// Resident bytes of all recorded processes. `None` before the first sample.
    pub resident_bytes: Option<u64>,
    /// The CPUs that all recorded processes used. `None` in the first interval.
    pub cpus: Option<f64>,
    /// Frees of blocks that were allocated before the recording began.
    pub unknown_frees: u64,
    /// Events that are missing, because the ring was full.
    pub lost: u64,
    /// The functions that have blocks or have allocated, in no order.
    pub functions: Vec<Function>,
    /// The number of running threads that have allocated.
    pub thread_count: u64,
    /// These threads.
    pub threads: Vec<Thread>,
}

/// The functions that have at least one of the largest figures have their call stack in `Function::stack`.
const STACKS: usize = 50;

/// A function and the place of a call in it, such as `parse  parser.cpp:120`.
#[derive(Clone, Copy)]
struct Named {
    /// The index of the function in `Names::functions`.
    function: usize,
    /// The index in `Names::shown`.
    shown: usize,
}

/// The names by which call stacks are grouped. Each frame is named once.
#[derive(Default)]
struct Names {
    functions: HashMap<String, Named>,
    shown: Vec<String>,
    /// For each frame, the innermost function that the user wrote, and the innermost function that is no
    /// allocation wrapper.
    frames: HashMap<u32, [Option<Named>; 2]>,
    /// For each call stack whose frames are named, its name.
    stacks: HashMap<u32, Named>,
}

impl Names {
    /// Returns the name of a call stack, which is its innermost function that the user wrote: not an
    /// allocation wrapper, and not of a standard or system library. If there is none, returns the innermost
    /// function that is no wrapper.
    fn of_stack(&mut self, live: &Live, node: u32) -> Named {
        if let Some(&named) = self.stacks.get(&node) {
            return named;
        }
        let mut fallback = None;
        for frame in live.frames(node) {
            let Some([own, no_wrapper]) = self.of_frame(live, frame) else {
                return self.add("(names are being looked up)", "");
            };
            fallback = fallback.or(no_wrapper);
            if let Some(own) = own {
                self.stacks.insert(node, own);
                return own;
            }
        }
        let named = fallback.unwrap_or_else(|| self.add("(no call stack)", ""));
        self.stacks.insert(node, named);
        named
    }

    fn of_frame(&mut self, live: &Live, frame: u32) -> Option<[Option<Named>; 2]> {
        if let Some(&known) = self.frames.get(&frame) {
            return Some(known);
        }
        let functions = live.functions(frame)?;
        let mut named = |is_wanted: fn(&&FrameInfo) -> bool| {
            let of = functions.iter().find(is_wanted)?;
            Some(self.add(&short(of.function), &of.place()))
        };
        let both = [named(is_own), named(|frame| !is_wrapper(frame.function))];
        self.frames.insert(frame, both);
        Some(both)
    }

    fn add(&mut self, function: &str, place: &str) -> Named {
        let known = self.functions.get(function);
        if let Some(&known) = known.filter(|_| place.is_empty()) {
            return known;
        }
        let function_index = known.map_or(self.functions.len(), |known| known.function);
        let named = Named { function: function_index, shown: self.shown.len() };
        self.shown.push(format!("{function}  {place}").trim_end().to_string());
        self.functions.entry(function.to_string()).or_insert(named);
        named
    }
}

fn is_own(frame: &&FrameInfo) -> bool {
    !is_wrapper(frame.function) && !is_standard(frame.function) && !is_system_library(frame.module)
}

/// What the system reports about the recorded processes.
#[derive(Default)]
pub struct System {
    /// The memory and CPU time of each running process.
    pub processes: BTreeMap<u32, Memory>,
    /// The CPU time of ended processes, in nanoseconds.
    pub ended_cpu_ns: u64,
    /// The CPU of each thread.
    pub threads: BTreeMap<u32, Cpu>,
}

/// The CPU time of a thread.
#[derive(Clone, Copy)]
pub struct Cpu {
    /// When the CPU time was read, and the CPU time in nanoseconds.
    read: (Instant, u64),
    /// The share of the time between the last two readings for which the thread used a CPU. `None`
    /// after the first reading.
    share: Option<f64>,
}

impl System {
    /// Adds the CPU time of a thread, which was read at the time `now`.
    pub fn add(&mut self, thread: u32, cpu_ns: u64, now: Instant) {
        let before = self.threads.get(&thread).map(|cpu| cpu.read);
        let since = |(then, ns): (Instant, u64)| {
            share(cpu_ns, ns, now.duration_since(then).as_secs_f64().max(1e-3))
        };
        self.threads.insert(thread, Cpu { read: (now, cpu_ns), share: before.map(since) });
    }

    /// Removes a process that has ended.
    pub fn end(&mut self, process: u32) {
        let ended = self.processes.remove(&process);
        self.ended_cpu_ns += ended.map_or(0, |memory| memory.user_ns + memory.system_ns);
    }
}

/// Computes figures, each for the time since the last ones.
#[derive(Default)]
pub struct Meter {
    seconds: f64,
    whole: Sums,
    stacks: Vec<Sums>,
    threads: BTreeMap<u32, Sums>,
    cpu_ns: Option<u64>,
    names: Names,
}

/// The figures of a function while they are summed up, and its call stack that holds or allocates most.
#[derive(Default)]
struct Summed {
    row: Row,
    weight: u64,
    shown: usize,
    node: u32,
}

impl Meter {
    /// Returns the figures at a time after the recording began.
    pub fn read(&mut self, live: &Live, system: &System, time: Duration, lost: u64) -> Figures {
        let seconds = (time.as_secs_f64() - self.seconds).max(1e-3);
        let mut whole = Row::default();
        whole.add(&live.whole(), &self.whole, seconds);
        let of_processes = || system.processes.values();
        let running_ns: u64 = of_processes().map(|memory| memory.user_ns + memory.system_ns).sum();
        let cpu_ns = system.ended_cpu_ns + running_ns;
        let has_memory = !system.processes.is_empty();
        let threads = self.threads(live, system, seconds);
        let figures = Figures {
            seconds: time.as_secs_f64(),
            whole,
            resident_bytes: has_memory.then(|| of_processes().map(|memory| memory.rss).sum()),
            cpus: self.cpu_ns.map(|before| share(cpu_ns, before, seconds)),
            unknown_frees: live.unknown_frees(),
            lost,
            functions: self.functions(live, seconds),
            thread_count: threads.len() as u64,
            threads,
        };
        self.seconds = time.as_secs_f64();
        self.whole = live.whole();
        self.cpu_ns = (cpu_ns > 0).then_some(cpu_ns);
        figures
    }

    fn functions(&mut self, live: &Live, seconds: f64) -> Vec<Function> {
        let mut functions: HashMap<usize, Summed> = HashMap::new();
        for (node, &sums) in live.stacks() {
            if self.stacks.len() <= node as usize {
                self.stacks.resize(node as usize + 1, Sums::default());
            }
            let before = std::mem::replace(&mut self.stacks[node as usize], sums);
            if sums.live_blocks == 0 && sums == before {
                continue; // nothing in use, and nothing allocated in the interval
            }
            let named = self.names.of_stack(live, node);
            let weight = sums.live_bytes + (sums.bytes - before.bytes);
            let summed = functions.entry(named.function).or_default();
            summed.row.add(&sums, &before, seconds);
            if weight >= summed.weight {
                (summed.weight, summed.shown, summed.node) = (weight, named.shown, node);
            }
        }
        let mut functions: Vec<Summed> = functions.into_values().collect();
        let mut with_stack = HashSet::new();
        for sort in Sort::ALL {
            functions.sort_by(|a, b| sort.key(&b.row).total_cmp(&sort.key(&a.row)));
            with_stack.extend(functions.iter().take(STACKS).map(|summed| summed.node));
        }
        let function = |Summed { row, shown, node, .. }: Summed| Function {
            name: self.names.shown[shown].clone(),
            row,
            stack: if with_stack.contains(&node) { stack(live, node) } else { Vec::new() },
        };
        functions.into_iter().map(function).collect()
    }

    fn threads(&mut self, live: &Live, system: &System, seconds: f64) -> Vec<Thread> {
        let (mut threads, mut all) = (Vec::new(), BTreeMap::new());
        for (number, thread) in live.threads() {
            all.insert(number, thread.sums);
            let before = self.threads.get(&number).copied().unwrap_or_default();
            let mut row = Row::default();
            row.add(&thread.sums, &before, seconds);
            let cpu = system.threads.get(&number).and_then(|cpu| cpu.share);
            threads.push(Thread {
                name: format!("{} ({})", thread.name, thread.system_id),
                row,
                cpu,
            });
        }
        self.threads = all;
        threads
    }
}

/// Returns the functions of a call stack, the innermost first.
fn stack(live: &Live, node: u32) -> Vec<String> {
    let infos = live.frames(node).filter_map(|frame| live.functions(frame)).flatten();
    let shown = |of: FrameInfo| format!("{}  {}", short(of.function), of.place());
    infos.map(|of| shown(of).trim_end().to_string()).collect()
}

/// Returns the share of an interval for which a CPU was used.
fn share(now_ns: u64, before_ns: u64, seconds: f64) -> f64 {
    now_ns.saturating_sub(before_ns) as f64 / 1e9 / seconds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_the_users_if_it_is_neither_a_wrapper_nor_in_a_library() {
        let frame = |function, module| FrameInfo {
            function,
            file: "",
            line: None,
            module,
            is_inlined: false,
        };
        assert!(is_own(&&frame("parse", "/bin/app")));
        assert!(!is_own(&&frame("operator new(unsigned long)", "/bin/app")));
        assert!(!is_own(&&frame("std::vector<int>::push_back(int)", "/bin/app")));
        assert!(!is_own(&&frame("strdup", "/lib/libc.so.6")));
    }

    #[test]
    fn a_thread_has_the_share_between_its_last_two_readings() {
        let mut system = System::default();
        let begin = Instant::now();
        system.add(1, 0, begin);
        assert_eq!(system.threads[&1].share, None);
        system.add(1, 1_000_000_000, begin + Duration::from_secs(4));
        assert_eq!(system.threads[&1].share, Some(0.25));
    }

    #[test]
    fn an_ended_process_has_cpu_time_but_no_memory() {
        let mut system = System::default();
        let memory = Memory { rss: 4096, user_ns: 5, system_ns: 6, ..Memory::default() };
        system.processes.insert(3, memory);
        system.end(3);
        assert_eq!((system.processes.len(), system.ended_cpu_ns), (0, 11));
    }

    #[test]
    fn rates_are_those_of_the_interval() {
        let sums = |live_bytes, bytes, blocks| Sums { live_bytes, live_blocks: 1, bytes, blocks };
        let mut row = Row::default();
        row.add(&sums(100, 1000, 50), &sums(300, 600, 30), 2.0);
        let expected = [-100.0, 200.0, 10.0];
        assert_eq!([row.growth, row.bytes_per_second, row.blocks_per_second], expected);
        assert_eq!((row.live_bytes, row.live_blocks), (100, 1));
    }

    #[test]
    fn a_program_without_samples_has_no_resident_bytes() {
        let mut meter = Meter::default();
        let live = Live::default();
        let figures = meter.read(&live, &System::default(), Duration::from_secs(1), 7);
        assert_eq!((figures.resident_bytes, figures.cpus, figures.lost), (None, None, 7));
        let memory = |user_ns| Memory { rss: 4096, user_ns, ..Memory::default() };
        let system = |ns| System { processes: [(1, memory(ns))].into(), ..System::default() };
        meter.read(&live, &system(1_000_000_000), Duration::from_secs(2), 0);
        let figures = meter.read(&live, &system(2_000_000_000), Duration::from_secs(4), 0);
        assert_eq!((figures.resident_bytes, figures.cpus), (Some(4096), Some(0.5)));
    }
}

//! Computes the figures of one interval from the sums of a recording.

use mallard_record::system::Memory;
use mallard_trace::live::{Live, Sums};
use mallard_trace::names::{is_standard, is_system_library, is_wrapper, short};
use mallard_trace::trace::FrameInfo;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::time::Duration;

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
    /// The threads that have allocated.
    pub threads: Vec<Thread>,
}

/// A call stack in words.
#[derive(Clone)]
struct Named {
    function: Rc<str>,
    shown: Rc<str>,
    stack: Rc<[String]>,
}

/// Computes figures, each for the time since the last ones.
#[derive(Default)]
pub struct Meter {
    seconds: f64,
    whole: Sums,
    stacks: HashMap<u32, Sums>,
    threads: BTreeMap<u32, (Sums, Option<u64>)>,
    cpu_ns: Option<u64>,
    /// The call stacks whose names are known, by node.
    named: HashMap<u32, Named>,
}

/// What the system reports about the recorded processes.
#[derive(Default)]
pub struct System {
    /// The memory and CPU time of each process.
    pub processes: BTreeMap<u32, Memory>,
    /// The CPU time of each thread, in nanoseconds.
    pub threads: BTreeMap<u32, u64>,
}

impl Meter {
    /// Returns the figures at a time after the recording began.
    pub fn read(&mut self, live: &Live, system: &System, time: Duration, lost: u64) -> Figures {
        let seconds = (time.as_secs_f64() - self.seconds).max(1e-3);
        let mut whole = Row::default();
        whole.add(&live.whole(), &self.whole, seconds);
        let of_processes = || system.processes.values();
        let cpu_ns = of_processes().map(|memory| memory.user_ns + memory.system_ns).sum();
        let has_memory = !system.processes.is_empty();
        let figures = Figures {
            seconds: time.as_secs_f64(),
            whole,
            resident_bytes: has_memory.then(|| of_processes().map(|memory| memory.rss).sum()),
            cpus: self.cpu_ns.map(|before| share(cpu_ns, before, seconds)),
            unknown_frees: live.unknown_frees(),
            lost,
            functions: self.functions(live, seconds),
            threads: self.threads(live, system, seconds),
        };
        self.seconds = time.as_secs_f64();
        self.whole = live.whole();
        self.cpu_ns = has_memory.then_some(cpu_ns);
        figures
    }

    fn functions(&mut self, live: &Live, seconds: f64) -> Vec<Function> {
        let mut functions: HashMap<Rc<str>, (Row, u64, Named)> = HashMap::new();
        let mut stacks = HashMap::new();
        for (node, &sums) in live.stacks() {
            let before = self.stacks.get(&node).copied().unwrap_or_default();
            stacks.insert(node, sums);
            if sums.live_blocks == 0 && sums == before {
                continue; // nothing in use, and nothing allocated in the interval
            }
            let named = match self.named.get(&node) {
                Some(named) => named.clone(),
                None => self.name(live, node),
            };
            let weight = sums.live_bytes + (sums.bytes - before.bytes);
            let (row, heaviest, largest) = functions
                .entry(named.function.clone())
                .or_insert_with(|| (Row::default(), 0, named.clone()));
            row.add(&sums, &before, seconds);
            if weight > *heaviest {
                (*heaviest, *largest) = (weight, named);
            }
        }
        self.stacks = stacks;
        let function = |(row, _, named): (Row, u64, Named)| Function {
            name: named.shown.to_string(),
            row,
            stack: named.stack.to_vec(),
        };
        functions.into_values().map(function).collect()
    }

    fn name(&mut self, live: &Live, node: u32) -> Named {
        let Some(stack) = live.functions(node) else {
            let waiting: Rc<str> = "(names are being looked up)".into();
            return Named { function: waiting.clone(), shown: waiting, stack: Rc::default() };
        };
        let shown = |of: &FrameInfo| format!("{}  {}", short(of.function), of.place());
        let own = own_function(&stack);
        let function = own.map_or("(no call stack)".to_string(), |of| short(of.function));
        let named = Named {
            shown: own.map_or(function.clone(), shown).trim_end().into(),
            function: function.into(),
            stack: stack.iter().map(shown).collect(),
        };
        self.named.insert(node, named.clone());
        named
    }

    fn threads(&mut self, live: &Live, system: &System, seconds: f64) -> Vec<Thread> {
        let mut threads = Vec::new();
        for (number, thread) in live.threads() {
            let cpu_ns = system.threads.get(&number).copied();
            let before = self.threads.insert(number, (thread.sums, cpu_ns));
            let (sums, cpu_before) = before.unwrap_or_default();
            let mut row = Row::default();
            row.add(&thread.sums, &sums, seconds);
            let cpu = cpu_ns.zip(cpu_before).map(|(now, before)| share(now, before, seconds));
            let name = format!("{} ({})", thread.name, thread.system_id);
            threads.push(Thread { name, row, cpu });
        }
        threads
    }
}

/// Returns the share of an interval for which a CPU was used.
fn share(now_ns: u64, before_ns: u64, seconds: f64) -> f64 {
    now_ns.saturating_sub(before_ns) as f64 / 1e9 / seconds
}

/// Returns the innermost function that the user wrote: not an allocation wrapper, and not of a
/// standard or system library. If there is none, returns the innermost function that is no wrapper.
fn own_function<'a>(stack: &'a [FrameInfo<'a>]) -> Option<&'a FrameInfo<'a>> {
    let is_own = |frame: &&FrameInfo| {
        !is_wrapper(frame.function)
            && !is_standard(frame.function)
            && !is_system_library(frame.module)
    };
    let is_no_wrapper = |frame: &&FrameInfo| !is_wrapper(frame.function);
    stack.iter().find(is_own).or_else(|| stack.iter().find(is_no_wrapper)).or(stack.first())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame<'a>(function: &'a str, module: &'a str) -> FrameInfo<'a> {
        FrameInfo { function, file: "", line: None, module, is_inlined: false }
    }

    #[test]
    fn a_stack_is_named_by_the_innermost_function_that_the_user_wrote() {
        let name = |stack: &[FrameInfo]| own_function(stack).map(|of| of.function.to_string());
        let (wrapper, standard) =
            ("operator new(unsigned long)", "std::vector<int>::push_back(int)");
        let stack = [
            frame(wrapper, "/lib/libstdc++.so.6"),
            frame(standard, "/bin/app"),
            frame("strdup", "/lib/libc.so.6"),
            frame("parse", "/bin/app"),
            frame("main", "/bin/app"),
        ];
        assert_eq!(name(&stack).as_deref(), Some("parse"));
        assert_eq!(name(&stack[..2]).as_deref(), Some(standard));
        assert_eq!(name(&stack[..1]).as_deref(), Some(wrapper));
        assert_eq!(name(&[]), None);
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

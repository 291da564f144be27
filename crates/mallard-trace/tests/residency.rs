//! Tests how the resident memory of a program is divided into parts. The parts of random programs
//! are compared with a list of their blocks. Also tests which sites grow.

use crate::support::run::seeds;
use crate::support::{call, trace_of, Random, StreamOf};
use mallard_trace::format::op;
use mallard_trace::residency::{rows, split, Parts, Split};
use mallard_trace::tables::schema::PROCESSES;
use mallard_trace::Trace;
use std::collections::{BTreeMap, BTreeSet};

const PAGE: u64 = 4096;

/// Bytes of a page that the program requested, and bytes that the malloc uses for them.
type Sums = (u64, u64);

/// The state of a process in the model.
#[derive(Default)]
struct Model {
    /// The live blocks. Key: address. Value: size.
    live: BTreeMap<u64, u64>,
    /// Pages that have ever had a block.
    had: BTreeSet<u64>,
    /// The mappings. Key: start. Value: (end, anonymous bytes).
    maps: BTreeMap<u64, (u64, u64)>,
    /// The values at the last report of the mappings: bytes of mappings without blocks. `untouched`
    /// are pages of blocks.
    stacks: u64,
    untouched: u64,
    is_mapped: bool,
}

/// Computes the bytes that glibc uses for a block: the size plus a header of 8 bytes, rounded up to
/// a multiple of 16, and at least 32. The end of a block with a separate mapping is the end of a
/// page.
fn taken(addr: u64, size: u64) -> u64 {
    if addr % PAGE == 16 && size >= 128 << 10 {
        return (size + 16).div_ceil(PAGE) * PAGE - 16;
    }
    ((size + 8).div_ceil(16) * 16).max(32)
}

impl Model {
    fn put(&mut self, addr: u64, size: u64) {
        self.live.insert(addr, size);
        self.had.extend(addr / PAGE..=(addr + taken(addr, size) - 1) / PAGE);
    }

    /// Computes the sums for each page.
    fn pages(&self) -> BTreeMap<u64, Sums> {
        let mut pages: BTreeMap<u64, Sums> = BTreeMap::new();
        for (&addr, &size) in &self.live {
            let end = addr + taken(addr, size);
            for page in addr / PAGE..=(end - 1) / PAGE {
                let (from, to) = ((page * PAGE).max(addr), (page + 1) * PAGE);
                let sums = pages.entry(page).or_default();
                sums.0 += to.min(addr + size).saturating_sub(from);
                sums.1 += to.min(end) - from;
            }
        }
        pages
    }

    /// Updates the model after the system has reported the mappings.
    fn remapped(&mut self) {
        let pages = self.pages();
        (self.stacks, self.untouched) = (0, 0);
        for (&start, &(end, bytes)) in &self.maps {
            let (first, last) = (start / PAGE, end / PAGE);
            if self.had.range(first..last).next().is_none() {
                self.stacks += bytes;
                continue;
            }
            let (whole, shared): (Vec<_>, Vec<_>) =
                pages.range(first..last).partition(|(_, page)| page.0 == PAGE);
            let pages = bytes / PAGE;
            let touched = pages.saturating_sub(shared.len() as u64).min(whole.len() as u64);
            self.untouched += whole.len() as u64 - touched;
        }
    }

    /// Computes the parts at one moment from the list of all blocks.
    fn parts(&self, rss: u64, anonymous: u64, recorder: u64) -> Parts {
        let stacks = self.stacks.min(anonymous);
        let recorder = recorder.min(rss - anonymous);
        let mut parts = Parts {
            resident: rss as i64,
            code: (rss - anonymous - recorder) as i64,
            recorder: recorder as i64,
            stacks: stacks as i64,
            ..Parts::default()
        };
        let heap = anonymous - stacks;
        if self.had.is_empty() {
            parts.stacks += heap as i64;
            return parts;
        }
        let pages = self.pages();
        let (whole, shared): (Vec<&Sums>, Vec<&Sums>) =
            pages.values().partition(|page| page.0 == PAGE);
        let asked: u64 = shared.iter().map(|page| page.0).sum();
        let taken: u64 = shared.iter().map(|page| page.1).sum();
        let whole = (whole.len() as u64).saturating_sub(self.untouched) * PAGE;
        let shared = shared.len() as u64 * PAGE;
        let (live, rounding, fragmented, kept) = if heap < shared {
            let part = |b: u64| (u128::from(b) * u128::from(heap) / u128::from(shared)) as u64;
            let (live, rounding) = (part(asked), part(taken - asked));
            (live, rounding, heap - live - rounding, 0)
        } else {
            let rest = heap - shared;
            let kept = rest.saturating_sub(whole);
            (asked + rest.min(whole), taken - asked, shared - taken, kept)
        };
        parts.live = live as i64;
        parts.rounding = rounding as i64;
        parts.fragmented = fragmented as i64;
        parts.kept = kept as i64;
        parts
    }
}

/// The address ranges of the random programs: two heaps, and a stack that never has blocks.
const REGIONS: [(u64, u64); 3] =
    [(0x10_0000, 0x30_0000), (0x7000_0000, 0x7200_0000), (0x7f00_0000, 0x7f01_0000)];

/// Returns a free address for a block of `size` bytes, or `None` if the random address is not free.
fn place(random: &mut Random, model: &Model, size: u64) -> Option<u64> {
    let (start, end) = REGIONS[random.below(2)];
    let addr = start + 16 * random.below(((end - start) / 16) as usize) as u64;
    let block_end = addr + taken(addr, size);
    let before = model.live.range(..block_end).next_back();
    let is_free = before.is_none_or(|(&other, &size)| other + taken(other, size) <= addr);
    (is_free && block_end <= end).then_some(addr)
}

/// Changes some mappings, and returns the text of the record that reports the changes.
fn remap(random: &mut Random, model: &mut Model) -> String {
    let mut text = String::new();
    for (start, end) in REGIONS {
        // Divide the range into one mapping, or into two mappings with a random border.
        let pages = (end - start) / PAGE;
        let border = start + PAGE * random.below(pages as usize) as u64;
        for (&start, _) in model.maps.range(start..end) {
            text += &format!(" map={start:x}-{end:x}:0");
        }
        model.maps.retain(|&other, _| other < start || other >= end);
        for (start, end) in [(start, border), (border, end)] {
            let bytes = random.below(((end - start) / PAGE) as usize + 1) as u64 * PAGE;
            if bytes > 0 {
                text += &format!(" map={start:x}-{end:x}:{bytes}");
                model.maps.insert(start, (end, bytes));
            }
        }
    }
    text
}

/// Makes a random program. Returns its event stream, and the parts at each moment.
fn program(seed: u64) -> (Vec<u8>, Vec<(i64, Parts)>) {
    let mut random = Random(seed);
    let mut model = Model::default();
    let mut stream = StreamOf::new();
    stream.text(op::PROCESS, 1000, 1, 42, 0, "start /bin/a");
    stream.thread(0, 1);
    let mut expected = Vec::new();
    for t in 1001..1000 + random.below(600) as u64 {
        let size = match random.below(10) {
            0 => random.below(6 << 20) as u64,
            1 => 0,
            _ => random.below(3000) as u64,
        };
        let known: Vec<u64> = model.live.keys().copied().collect();
        match random.below(8) {
            0..=3 => {
                if let Some(addr) = place(&mut random, &model, size) {
                    stream.piece(0, &[call(op::MALLOC, t, addr, size, 0, &[0x10])]);
                    model.put(addr, size);
                }
            }
            4 | 5 if !known.is_empty() => {
                let addr = known[random.below(known.len())];
                stream.piece(0, &[call(op::FREE, t, addr, 0, 0, &[0x10])]);
                model.live.remove(&addr);
            }
            6 if !known.is_empty() => {
                let addr = known[random.below(known.len())];
                let shrunk = random.below(model.live[&addr] as usize + 1) as u64;
                let begin = call(op::REALLOC_FROM, t, addr, shrunk, 0, &[0x10]);
                stream.piece(0, &[begin, call(op::REALLOC_TO, t, addr, shrunk, 1, &[])]);
                // A realloc to 0 bytes may return the block. Then it frees nothing.
                model.put(addr, shrunk);
            }
            7 => {
                let anonymous = random.below(40 << 20) as u64;
                let rss = anonymous + random.below(9 << 20) as u64;
                let mut text = format!("rss={rss} anonymous={anonymous}");
                // The system reports the mappings only at some of the samples.
                if random.below(2) == 0 {
                    text += &remap(&mut random, &mut model);
                    text += " recorder=4096";
                    model.remapped();
                    model.is_mapped = true;
                }
                stream.text(op::MEMORY, t, 1, 0, 0, &text);
                stream.checkpoint(t);
                if model.is_mapped {
                    expected.push((t as i64 - 1000, model.parts(rss, anonymous, 4096)));
                }
            }
            _ => {}
        }
    }
    (stream.finish(), expected)
}

#[test]
fn the_memory_breakdown_equals_that_computed_from_a_list_of_all_blocks() {
    for seed in seeds(40) {
        let (stream, expected) = program(seed);
        let (_folder, trace) = trace_of(&stream);
        let read: Vec<(i64, Parts)> =
            rows(&trace).unwrap().iter().map(|row| (row.t_ns, row.parts)).collect();
        assert_eq!(read, expected, "seed {seed}");
        if expected.is_empty() {
            continue;
        }
        // At any moment, the parts are those of the last row up to that moment.
        let mut random = Random(seed);
        let moments: Vec<i64> = (0..50).map(|_| random.below(700) as i64).collect();
        let split = split(&trace, &moments).unwrap();
        for (at, &moment) in moments.iter().enumerate() {
            let last = expected.iter().rev().find(|(t_ns, _)| *t_ns <= moment);
            let parts = last.map_or(Parts::default(), |&(_, parts)| parts);
            let found = [split.live[at], split.kept[at], split.code[at], split.resident[at]];
            assert_eq!(found, [parts.live, parts.kept, parts.code, parts.resident]);
        }
        let peak = expected.iter().map(|(_, parts)| parts.resident).max();
        assert_eq!(Some(trace.manifest().memory.peak.parts.resident), peak);
    }
}

#[test]
fn an_exited_process_has_no_memory_and_a_forked_one_is_omitted() {
    let mut stream = StreamOf::new();
    stream.text(op::PROCESS, 1000, 1, 42, 0, "start /bin/a");
    stream.text(op::PROCESS, 1000, 2, 43, 0, "start /bin/b");
    stream.text(op::PROCESS, 1000, 3, 44, 0, "fork 1 /bin/a");
    stream.thread(0, 1);
    for process in 1..=3 {
        stream.text(
            op::MEMORY,
            1010,
            process,
            0,
            0,
            "rss=8192 anonymous=4096 recorder=0 map=1000-2000:4096",
        );
    }
    stream.record(op::PROCESS_END, 1020, 2, 0);
    stream.text(op::MEMORY, 1030, 1, 0, 0, "rss=12288 anonymous=4096");
    stream.text(op::PROCESS, 1040, 4, 42, 0, "exec 1 /bin/c");
    stream.text(op::MEMORY, 1050, 4, 0, 0, "rss=4096 anonymous=0 recorder=0");
    let (_folder, trace) = trace_of(&stream.finish());
    let split = split(&trace, &[30, 5, 10, 25, 45, 60]).unwrap();
    assert_eq!(split.resident, [12288, 0, 16384, 8192, 0, 4096]);
    assert_eq!(split.stacks, [4096, 0, 8192, 4096, 0, 0]);
    let memory = &trace.manifest().memory;
    assert_eq!((memory.peak.t_ns, memory.end.t_ns), (10, 50));
}

#[test]
fn a_program_that_a_child_executes_has_separate_memory_and_blocks() {
    let mut stream = StreamOf::new();
    stream.text(op::PROCESS, 1000, 1, 42, 0, "start /bin/a");
    stream.thread(0, 1);
    // The child executed /bin/b before its first record, so its module record precedes its thread
    // record.
    stream.text(op::PROCESS, 1001, 2, 43, 0, "fork 1 /bin/b");
    stream.text(op::MODULE, 1001, 2, 0x5000, 0, "6000 0 - /bin/b");
    stream.thread(1, 2);
    stream.piece(1, &[call(op::FREE, 1002, 0x100, 0, 0, &[])]);
    stream.text(op::MEMORY, 1010, 2, 0, 0, "rss=8192 anonymous=4096 recorder=0");
    let (_folder, trace) = trace_of(&stream.finish());
    assert_eq!(split(&trace, &[10]).unwrap().resident, [8192]);
    let counts = &trace.manifest().counts;
    assert_eq!((counts.unknown_frees, counts.inherited_frees), (1, 0));
}

#[test]
fn an_exec_ends_a_process_and_the_status_of_a_grandchild_is_unknown() {
    let mut stream = StreamOf::new();
    stream.text(op::PROCESS, 1000, 1, 42, 0, "start /bin/a");
    stream.text(op::PROCESS, 1010, 2, 42, 0, "exec 1 /bin/b");
    stream.record(op::PROCESS_END, 1020, 2, u64::MAX);
    let (_folder, trace) = trace_of(&stream.finish());
    let processes = trace.table(&PROCESSES).unwrap();
    assert_eq!(processes.i64s("t1").unwrap(), [10, 20]);
    let statuses = processes.i64s("status").unwrap();
    assert!(statuses.iter().all(|&status| status < 0), "{statuses:?}");
}

#[test]
fn a_trace_without_mappings_has_no_memory_breakdown() {
    let mut stream = StreamOf::new();
    stream.piece(0, &[call(op::MALLOC, 1001, 0x100, 8, 0, &[0x10])]);
    stream.text(op::MEMORY, 1010, 0, 0, 0, "rss=8192 anonymous=4096");
    let (_folder, trace) = trace_of(&stream.finish());
    assert_eq!(split(&trace, &[1, 2]).unwrap(), Split::default());
    assert_eq!(trace.manifest().memory.sentence(), None);
}

/// Makes a program that runs for 1.6 s and has four sites. The first leaks, the second allocates
/// only at the start, the third allocates and frees, and the fourth repeatedly fills up and
/// empties.
fn growing_program() -> Vec<u8> {
    let mut stream = StreamOf::new();
    stream.text(op::PROCESS, 1000, 1, 42, 0, "start /bin/a");
    stream.thread(0, 1);
    let at = |site: u64, index: u64| site * 0x1000_0000 + index * 0x100;
    for step in 0..1600u64 {
        let t = 1000 + step * 1_000_000;
        let mut piece = vec![call(op::MALLOC, t, at(1, step), 100, 0, &[0x11])];
        if step < 100 {
            piece.push(call(op::MALLOC, t + 1, at(2, step), 5000, 0, &[0x22]));
        }
        piece.push(call(op::MALLOC, t + 2, at(3, 0), 100, 0, &[0x33]));
        piece.push(call(op::FREE, t + 3, at(3, 0), 0, 0, &[0x33]));
        if step % 400 < 200 {
            piece.push(call(op::MALLOC, t + 4, at(4, step % 400), 100, 0, &[0x44]));
        } else {
            piece.push(call(op::FREE, t + 4, at(4, step % 400 - 200), 0, 0, &[0x44]));
        }
        stream.piece(0, &piece);
    }
    stream.finish()
}

#[test]
fn only_the_site_that_grows_to_the_end_is_listed() {
    let (_folder, trace) = trace_of(&growing_program());
    let memory = &trace.manifest().memory;
    assert_eq!((memory.growing_sites, memory.growing.len()), (1, 1), "{memory:?}");
    let site = memory.growing[0];
    assert_eq!((site.live_bytes, site.live_allocs), (160_000, 1600));
    assert!(site.first_bytes > 0 && site.first_bytes < 20_000, "{site:?}");
    let function = functions(&trace, site.stack);
    assert!(function.contains("0x11"), "{function}");
}

fn functions(trace: &Trace, stack: i32) -> String {
    let stacks = trace.stacks().unwrap();
    stacks.functions(stack).iter().map(|frame| frame.function.to_string()).collect()
}

//! Tests that event streams become traces. A model of all blocks computes what the tables must
//! contain.

use crate::support::blocks::{program, Block};
use crate::support::run::{hide_panics_of_parquet, seeds};
use crate::support::{self, call, golden, header, import_in, trace_of, Random, StreamOf};
use mallard_trace::error::ErrorKind;
use mallard_trace::format::op;
use mallard_trace::import::Options;
use mallard_trace::tables::schema::{self, EVENTS, FRAMES, MAPPINGS, SAMPLES, STACKS, THREADS};
use mallard_trace::Trace;
use std::path::Path;

#[test]
fn the_golden_event_log_becomes_a_trace() {
    let (_folder, trace) = trace_of(&golden());
    let manifest = trace.manifest();
    assert_eq!(manifest.stream.ending, "complete");
    assert_eq!(manifest.losses.all(), 2);
    let counts = &manifest.counts;
    assert_eq!((counts.events, counts.failed, counts.frees, counts.marks), (12, 1, 2, 2));
    assert_eq!(manifest.repairs.unknown_records, 1);
    let events = trace.table(&EVENTS).unwrap();
    assert_eq!(events.rows(), 12);
    let threads = trace.table(&THREADS).unwrap();
    assert!(threads.texts("name").unwrap().contains(&"main".to_string()));
    let samples = trace.table(&SAMPLES).unwrap();
    assert_eq!(samples.i64s("rss").unwrap(), [4096]);
    assert_eq!(samples.i64s("system_ns").unwrap(), [9]);
    // The traced allocator is a site, named after the allocator.
    let stacks = trace.stacks().unwrap();
    let names: Vec<String> = trace
        .sites()
        .unwrap()
        .iter()
        .filter_map(|site| stacks.functions(site.stack).first().map(|f| f.function.to_string()))
        .collect();
    assert!(names.contains(&"orders of the day, and of the night".to_string()), "{names:?}");
    assert!(names.iter().any(|name| name.starts_with("orders of the day+0x")), "{names:?}");
    for schema in schema::ALL {
        let table = trace.table(schema).unwrap();
        let listed = manifest.tables.iter().find(|table| table.name == schema.name);
        assert_eq!(listed.expect(schema.name).rows, table.rows(), "{}", schema.name);
    }
}

#[test]
fn the_stack_frames_of_both_records_of_a_realloc_are_imported() {
    let mut stream = StreamOf::new();
    stream.text(op::PROCESS, 1000, 1, 42, 0, "start /bin/a");
    stream.thread(0, 1);
    stream.piece(
        0,
        &[
            call(op::MALLOC, 1001, 0x100, 8, 0, &[0x10, 0x20, 0x30]),
            call(op::REALLOC_FROM, 1002, 0x100, 8, 1, &[0x21, 0x31]),
            call(op::REALLOC_TO, 1003, 0x100, 9, 3, &[]),
        ],
    );
    let (_folder, trace) = trace_of(&stream.finish());
    assert_eq!(trace.table(&EVENTS).unwrap().i64s("fresh").unwrap(), [3, 2]);
}

/// Reads the blocks from the table `events`, in the order of their IDs.
fn blocks_of(trace: &Trace) -> Vec<Block> {
    let events = trace.table(&EVENTS).unwrap();
    let column = |name| events.i64s(name).unwrap();
    let stacks = trace.table(&STACKS).unwrap();
    let (parents, frames) = (stacks.i64s("parent").unwrap(), stacks.i64s("frame").unwrap());
    let addresses = trace.table(&FRAMES).unwrap().i64s("offset").unwrap();
    let stack_of = |mut node: i64| {
        let mut stack = Vec::new();
        while node > 0 {
            stack.insert(0, addresses[frames[node as usize] as usize] as u64);
            node = parents[node as usize];
        }
        stack
    };
    let (ops, times, tids) = (column("op"), column("t_ns"), column("tid"));
    let (allocs, old_allocs, nodes) = (column("alloc"), column("old_alloc"), column("stack"));
    let (sizes, addresses) = (column("size"), column("addr"));
    let mut blocks: Vec<Block> = Vec::new();
    for (row, &alloc) in allocs.iter().enumerate() {
        let (t, tid, size, old) = (times[row], tids[row], sizes[row], old_allocs[row]);
        if alloc < 0 {
            if let (true, Ok(old)) = (size == 0, usize::try_from(old)) {
                (blocks[old].t1, blocks[old].tid1) = (t, tid); // realloc to size 0
            }
            continue;
        }
        if matches!(ops[row] as u8, op::FREE..=op::FREE_ALIGNED_SIZED) {
            let block = &mut blocks[alloc as usize];
            (block.t1, block.tid1) = (t, tid);
        } else if alloc == old {
            let block = &mut blocks[alloc as usize];
            block.size = size;
            block.max_size = block.max_size.max(size);
            block.reallocs += 1;
        } else {
            let mut reallocs = 0;
            if let Some(block) = usize::try_from(old).ok().map(|old| &mut blocks[old]) {
                (block.t1, block.tid1) = (t, tid);
                reallocs = block.reallocs + 1;
            }
            assert_eq!(alloc, blocks.len() as i64);
            blocks.push(Block {
                t0: t,
                t1: -1,
                first_size: size,
                size,
                max_size: size,
                addr: addresses[row],
                tid0: tid,
                tid1: -1,
                reallocs,
                stack: stack_of(nodes[row]),
            });
        }
    }
    blocks
}

#[test]
fn blocks_of_random_programs_equal_those_of_a_model() {
    for seed in seeds(60) {
        let (stream, expected) = program(seed);
        let (_folder, trace) = trace_of(&stream);
        let counts = &trace.manifest().counts;
        assert_eq!(counts.unknown_frees + counts.missed_frees + counts.broken_reallocs, 0);
        assert_eq!(trace.manifest().repairs.inversions, 0);
        assert_eq!(trace.manifest().repairs.broken_stacks, 0);
        let blocks = blocks_of(&trace);
        assert_eq!(blocks.len(), expected.len(), "seed {seed}");
        for (block, expected) in blocks.iter().zip(&expected) {
            assert_eq!(block, expected, "seed {seed}");
        }
        check_sites(&trace, &expected);
        let times = trace.table(&EVENTS).unwrap().i64s("t_ns").unwrap();
        assert!(times.is_sorted(), "seed {seed}");
    }
}

/// Compares counts, live bytes and bytes at the peak, over all sites, with the model.
fn check_sites(trace: &Trace, blocks: &[Block]) {
    // The model computes the live bytes at the allocation of each block from t0, t1 and size alone.
    // This works only if no realloc has resized a block.
    if blocks.iter().any(|block| block.size != block.max_size || block.reallocs > 0) {
        return;
    }
    let live_at = |t: i64, block: &&Block| block.t0 <= t && (block.t1 < 0 || block.t1 > t);
    let live = |t: i64| blocks.iter().filter(|b| live_at(t, b)).map(|b| b.size).sum::<i64>();
    let peak_t = blocks.iter().map(|block| block.t0).max_by_key(|&t| (live(t), -t));
    let Some(peak_t) = peak_t else { return };
    let sites = trace.sites().unwrap();
    assert_eq!(trace.manifest().totals.sites.peak_bytes, live(peak_t));
    let at_peak: i64 = sites.iter().map(|site| site.at_peak_bytes).sum();
    assert_eq!(at_peak, live(peak_t));
    assert_eq!(sites.iter().map(|site| site.allocs).sum::<i64>(), blocks.len() as i64);
}

#[test]
fn the_share_of_each_site_at_the_peak_is_exact() {
    let mut stream = StreamOf::new();
    let mut random = Random(7);
    let mut events = Vec::new();
    let mut live: Vec<(u64, usize, u64)> = Vec::new();
    let mut now = [0u64; 5];
    let (mut peak, mut at_peak) = (0, now);
    for t in 1001..6000 {
        if live.len() < 3 || random.below(100) < 50 {
            let (site, size) = (random.below(5), 1 + random.below(1000) as u64);
            let addr = 0x10000 + 0x1000 * t;
            events.push(call(op::MALLOC, t, addr, size, 0, &[0x100 + site as u64]));
            live.push((addr, site, size));
            now[site] += size;
        } else {
            let (addr, site, size) = live.swap_remove(random.below(live.len()));
            events.push(call(op::FREE, t, addr, 0, 0, &[0x999]));
            now[site] -= size;
        }
        if now.iter().sum::<u64>() > peak {
            (peak, at_peak) = (now.iter().sum(), now);
        }
    }
    stream.piece(1, &events);
    let (_folder, trace) = trace_of(&stream.finish());
    let stacks = trace.stacks().unwrap();
    let sites = trace.sites().unwrap();
    for (site, bytes) in at_peak.iter().enumerate() {
        let name = format!("{:#x}", 0x100 + site);
        let found = sites.iter().find(|row| stacks.functions(row.stack)[0].function == name);
        assert_eq!(found.unwrap().at_peak_bytes, *bytes as i64);
    }
    assert_eq!(trace.manifest().totals.sites.peak_bytes, peak as i64);
    assert!(trace.manifest().totals.sites.v.value.unwrap() > 3.0);
}

#[test]
fn frees_that_are_missing_or_too_many_are_counted() {
    let mut stream = StreamOf::new();
    let events = [
        call(op::MALLOC, 1001, 0x1000, 8, 0, &[1]),
        call(op::MALLOC, 1002, 0x1000, 16, 0, &[2]),
        call(op::FREE, 1003, 0x1000, 0, 0, &[3]),
        call(op::FREE, 1004, 0x1000, 0, 0, &[3]),
        call(op::FREE, 1005, 0, 0, 0, &[3]),
        call(op::REALLOC_TO, 1006, 0x2000, 8, 0, &[3]),
        call(op::REALLOC_FROM, 1007, 0x2000, 8, 0, &[3]),
        call(op::FREE, 1008, 0x2000, 0, 7, &[]),
    ];
    stream.piece(1, &events);
    let (_folder, trace) = trace_of(&stream.finish());
    let manifest = trace.manifest();
    assert_eq!((manifest.counts.missed_frees, manifest.counts.null_frees), (1, 1));
    // The last realloc has a first record, and no second one. The last free comes after that first
    // record.
    assert_eq!((manifest.counts.unknown_frees, manifest.counts.broken_reallocs), (2, 2));
    assert_eq!(manifest.repairs.broken_stacks, 1);
    let blocks = trace.table(&EVENTS).unwrap().i64s("alloc").unwrap();
    assert_eq!(blocks, [0, 1, 1, -1, -1, 2, -1]);
    assert_eq!(manifest.totals.sites.live_allocs, 1);
}

#[test]
fn pages_at_the_peak_are_those_of_the_highest_peak() {
    const PAGE: u64 = 4096;
    let mut stream = StreamOf::new();
    let mut events = Vec::new();
    let mut t = 1000;
    // Three peaks: 1500 blocks on separate pages, 2000 adjacent blocks, and again 1500 on separate
    // pages.
    for (round, (count, distance)) in [(1500, PAGE), (2000, 64), (1500, PAGE)].iter().enumerate() {
        let addresses = (0..*count).map(|i| ((round as u64 + 1) << 32) + i * distance);
        for (op, addr) in addresses
            .clone()
            .map(|addr| (op::MALLOC, addr))
            .chain(addresses.map(|addr| (op::FREE, addr)))
        {
            t += 1;
            events.push(call(op, t, addr, if op == op::MALLOC { 64 } else { 0 }, 0, &[0x100]));
        }
    }
    // Blocks of a second site are in use at the end.
    for i in 0..1000 {
        t += 1;
        events.push(call(op::MALLOC, t, (1 << 40) + i * 2 * PAGE, PAGE, 0, &[0x200]));
    }
    stream.piece(1, &events);
    let (_folder, trace) = trace_of(&stream.finish());
    let sites = trace.sites().unwrap();
    let (first, second) = (&sites[0], &sites[1]);
    assert_eq!((first.l.n, first.l.value), (2000, Some(2000.0 * 64.0 / (32.0 * 4096.0))));
    assert_eq!((first.f.n, first.f.value), (2000, Some(0.0)));
    assert_eq!((second.l.n, second.l.value), (1000, Some(1.0)));
    assert_eq!(trace.manifest().totals.sites.l.value, Some(1.0));
}

#[test]
fn a_forked_process_has_its_own_blocks_and_the_code_of_its_parent() {
    let mut stream = StreamOf::new();
    stream.text(op::PROCESS, 1000, 1, 42, 0, "start /bin/a");
    stream.text(op::MODULE, 1000, 1, 0x1000, 0, "2000 0 - /nowhere/a");
    stream.thread(1, 1);
    stream.piece(1, &[call(op::MALLOC, 1001, 0x9000, 8, 0, &[0x1100])]);
    stream.text(op::PROCESS, 1002, 2, 43, 0, "fork 1 /bin/a");
    stream.thread(2, 2);
    stream.piece(
        2,
        &[
            call(op::FREE, 1003, 0x9000, 0, 0, &[0x1200]),
            call(op::MALLOC, 1004, 0x9000, 24, 0, &[0x1100]),
        ],
    );
    stream.record(op::PROCESS_END, 1005, 2, 0);
    stream.piece(1, &[call(op::FREE, 1006, 0x9000, 0, 0, &[0x1200])]);
    let (_folder, trace) = trace_of(&stream.finish());
    let counts = &trace.manifest().counts;
    assert_eq!((counts.inherited_frees, counts.unknown_frees, counts.frees), (1, 0, 1));
    let sites = trace.sites().unwrap();
    let site = sites.iter().find(|site| site.allocs == 2).expect("one site for both processes");
    assert_eq!((site.frees, site.live_allocs, site.live_bytes), (1, 1, 24));
    assert_eq!(trace.stacks().unwrap().functions(site.stack)[0].function, "a+0x100");
    assert_eq!(trace.table(&MAPPINGS).unwrap().rows(), 1);
}

#[test]
fn a_reset_of_a_traced_allocator_frees_its_blocks() {
    use mallard_trace::format::{pack, Record};
    let mut stream = StreamOf::new();
    let event =
        |op, t, addr, number| Record { t, addr, what: pack(64, 3, op, 0), stack: number, dur: 5 };
    for (op, t, addr, number) in [
        (op::ALLOCATE, 1001, 0x1000, 1),
        (op::ALLOCATE, 1002, 0x1000, 2), // a pool whose chunk is a block of an arena
        (op::ALLOCATE, 1003, 0x1040, 2),
        (op::DEALLOCATE, 1004, 0x1040, 2),
        (op::RESET, 1005, 0, 2),
    ] {
        stream.0.record(&event(op, t, addr, number)).unwrap();
    }
    stream.text(op::NAME, 1006, 2, 0, 0, "nodes");
    let (_folder, trace) = trace_of(&stream.finish());
    let (sites, stacks) = (trace.sites().unwrap(), trace.stacks().unwrap());
    let named = |name: &str| {
        let is_named =
            |row: &&mallard_trace::SiteRow| stacks.functions(row.stack)[0].function == name;
        sites.iter().find(is_named).unwrap()
    };
    assert_eq!((named("nodes").allocs, named("nodes").frees), (2, 2));
    assert_eq!((named("allocator 1").allocs, named("allocator 1").live_bytes), (1, 64));
    assert_eq!(trace.manifest().counts.missed_frees, 0);
}

#[test]
fn a_sampled_block_represents_several_blocks() {
    let mut stream =
        StreamOf::with(&mallard_trace::format::Header { sample_bytes: 1000, ..header() });
    stream.piece(1, &[call(op::MALLOC, 1001, 0x1000, 100, 0, &[1])]);
    let (_folder, trace) = trace_of(&stream.finish());
    let site = &trace.sites().unwrap()[0];
    assert_eq!((site.allocs, site.bytes), (11, 1051)); // 1 / (1 - e^-0.1) = 10.508
}

#[test]
fn a_trace_is_replaced_only_with_force() {
    let folder = tempfile::tempdir().unwrap();
    let options = |force| Options { force, ..Options::default() };
    import_in(folder.path(), &golden(), &options(false)).unwrap();
    let error = import_in(folder.path(), &golden(), &options(false)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Exists);
    assert!(error.help().contains("--force"));
    let (stream, _) = program(3);
    let trace = import_in(folder.path(), &stream, &options(true)).unwrap();
    assert!(trace.manifest().counts.events > 20);
    // A directory of that name that is not a trace is never replaced.
    let place = folder.path().join("a.mallard");
    std::fs::remove_dir_all(&place).unwrap();
    std::fs::create_dir(&place).unwrap();
    std::fs::write(place.join("mine"), "x").unwrap();
    let error = import_in(folder.path(), &golden(), &options(true)).err().unwrap();
    assert_eq!(error.what(), format!("{} exists and is not a trace", place.display()));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "no temporary folder is left");
}

#[test]
fn an_unwritable_destination_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let stream = folder.path().join("a.stream");
    std::fs::write(&stream, golden()).unwrap();
    let to = folder.path().join("missing/a.mallard");
    let error = mallard_trace::import::import(&stream, &to, &Options::default(), &mut |_| ());
    assert_eq!(error.err().unwrap().kind(), ErrorKind::System);
    let missing = folder.path().join("no.stream");
    let error = mallard_trace::import::import(&missing, &to, &Options::default(), &mut |_| ());
    assert_eq!(error.err().unwrap().kind(), ErrorKind::Missing);
}

#[test]
fn corrupt_newer_and_foreign_traces_have_different_errors() {
    let (folder, trace) = trace_of(&golden());
    let manifest = trace.folder().join("manifest.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    let newer = text.replacen("\"schema\": 1", "\"schema\": 2", 1).replacen("counts", "sums", 1);
    std::fs::write(&manifest, newer).unwrap();
    let kind = || Trace::open(trace.folder()).err().map(|error| error.kind());
    assert_eq!(kind(), Some(ErrorKind::Newer));
    std::fs::write(&manifest, &text[..text.len() / 2]).unwrap();
    assert_eq!(kind(), Some(ErrorKind::Damaged));
    std::fs::write(&manifest, text.replace("mallard trace", "other")).unwrap();
    assert_eq!(kind(), Some(ErrorKind::Damaged));
    std::fs::remove_file(&manifest).unwrap();
    assert_eq!(kind(), Some(ErrorKind::Foreign));
    assert_eq!(Trace::open(&folder.path().join("no")).err().unwrap().kind(), ErrorKind::Missing);
}

#[test]
fn a_corrupt_table_is_an_error() {
    let (_folder, trace) = trace_of(&program(11).0);
    let path = trace.folder().join("sites.parquet");
    let whole = std::fs::read(&path).unwrap();
    hide_panics_of_parquet();
    for seed in seeds(500) {
        let mut random = Random(seed);
        let mut bytes = whole.clone();
        for _ in 0..=random.below(4) {
            let at = random.below(bytes.len());
            bytes[at] = random.below(256) as u8;
        }
        if seed % 5 == 0 {
            bytes.truncate(random.below(bytes.len()));
        }
        std::fs::write(&path, bytes).unwrap();
        if let Err(error) = trace.sites() {
            assert_eq!(error.kind(), ErrorKind::Damaged);
        }
    }
    std::fs::write(&path, b"PAR1").unwrap();
    assert!(trace.sites().is_err());
}

#[test]
fn randomly_changed_event_logs_are_safe_to_import() {
    let (stream, _) = program(5);
    for seed in seeds(60) {
        let mut random = Random(seed);
        let mut bytes = if seed % 2 == 0 { golden() } else { stream.clone() };
        for _ in 0..=random.below(20) {
            let at = 64 + random.below(bytes.len() - 64);
            bytes[at] = random.below(256) as u8;
        }
        bytes.truncate(bytes.len() - random.below(40));
        let (_folder, trace) = trace_of(&bytes);
        trace.sites().unwrap();
    }
}

#[test]
fn import_memory_does_not_grow_with_processes_times_mappings() {
    if std::env::var_os(ALONE).is_none() {
        // Run in a separate process, because peak memory can be measured only for a whole process.
        let test = "import::import_memory_does_not_grow_with_processes_times_mappings";
        alone(test, ":", Path::new("."));
        return;
    }
    const COUNT: u32 = 20_000;
    let mut stream = StreamOf::new();
    for number in 1..=COUNT {
        stream.text(op::PROCESS, 1000, number, 42, 0, "start /");
    }
    // Threads of the first process, whose number differs most from the number of the last process.
    for thread in 1..=COUNT {
        stream.thread(thread, 1);
    }
    for number in 0..COUNT {
        let start = 0x10000 * u64::from(number);
        let text = format!("{:x} 0 - /a{number}", start + 0x2000);
        stream.text(op::MODULE, 1000, 1, start + 0x1000, 0, &text);
    }
    for number in 0..500u32 {
        let start = 0x10000 * u64::from(number);
        let text = format!("{:x} 0 - /b{number}", start + 0x3000);
        stream.text(op::MODULE, 1000, 1, start + 0x1800, 0, &text);
    }
    let (_folder, trace) = trace_of(&stream.finish());
    assert_eq!(trace.table(&MAPPINGS).unwrap().rows(), u64::from(COUNT) + 500);
    let peak_kib = field_of("status", |line| line.strip_prefix("VmHWM:")?.strip_suffix(" kB"));
    // After the name of the program, the 12th field is the CPU time in user mode.
    let ticks = field_of("stat", |line| line.rsplit_once(") ")?.1.split(' ').nth(11));
    assert!(peak_kib < 400 << 10 && ticks < 60 * 100, "{peak_kib} KiB, {ticks} ticks of CPU time");
}

/// Reads a number from a file in /proc/self.
fn field_of(file: &str, find: impl Fn(&str) -> Option<&str>) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/self/{file}")).unwrap();
    text.lines().find_map(find).unwrap().trim().parse().unwrap()
}

#[test]
fn an_import_to_a_full_disk_leaves_no_file_behind() {
    if let Some(folder) = std::env::var_os(ALONE) {
        return import_to_a_full_disk(Path::new(&folder));
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.stream"), program(9).0).unwrap();
    // Limit the size of each file to 1 or 2 KiB, so that writing fails as on a full disk.
    let limits = "trap '' XFSZ; ulimit -f 2";
    let text =
        alone("import::an_import_to_a_full_disk_leaves_no_file_behind", limits, folder.path());
    assert!(text.contains("cannot write the tables"), "{text}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

fn import_to_a_full_disk(folder: &Path) {
    let (stream, to) = (folder.join("a.stream"), folder.join("a.mallard"));
    let error = mallard_trace::import::import(&stream, &to, &Options::default(), &mut |_| ());
    let error = error.err().expect("an error");
    assert_eq!(error.kind(), ErrorKind::System);
    println!("{error}");
}

/// The environment variable that is set in a process which runs only one test.
const ALONE: &str = "MALLARD_TEST_ALONE";

/// Runs a test again in a separate process, after shell commands. Returns the output of the test.
fn alone(test: &str, commands: &str, folder: &Path) -> String {
    let child = std::process::Command::new("sh")
        .args(["-c", &format!("{commands}; exec \"$0\" \"$@\"")])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(ALONE, folder)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout).into_owned();
    assert!(child.status.success(), "{text}{}", String::from_utf8_lossy(&child.stderr));
    text
}

#[test]
fn the_time_of_timed_calls_is_scaled_to_all_calls() {
    use mallard_trace::format::{pack, pack_stack, Record};
    let malloc = |t: u64, dur| {
        let what = pack(64, 4, op::MALLOC, 0);
        support::with_frames(Record { t, addr: t << 4, what, stack: pack_stack(0, 1), dur }, &[1])
    };
    let mut stream = StreamOf::new();
    stream.piece(1, &[malloc(9_000_000, 5_000_000), malloc(9_000_001, 100)]);
    stream.piece(1, &[malloc(9_000_002, 0), malloc(9_000_003, 0)]);
    let (_folder, trace) = trace_of(&stream.finish());
    let site = &trace.sites().unwrap()[0];
    // A call for a small block counts at most one millisecond.
    assert_eq!((site.timed_calls, site.call_ns), (2, 2 * 1_000_100));
}

#[test]
fn cpu_time_after_the_last_sample_counts_as_well() {
    let mut stream = StreamOf::new();
    stream.piece(1, &[call(op::MALLOC, 1001, 0x1000, 100, 0, &[1])]);
    stream.record(op::CPU, 1002, 1, 5_000);
    let stream = stream.finish();
    let cpu_ns = |noted: u64| {
        let mut options = Options { without_symbols: true, ..Options::default() };
        options.notes.recorded_cpu_ns = Some(noted);
        let folder = tempfile::tempdir().unwrap();
        let trace = import_in(folder.path(), &stream, &options).unwrap();
        trace.manifest().totals.cpu_ns
    };
    assert_eq!((cpu_ns(80_000), cpu_ns(4_000)), (Some(80_000), Some(5_000)));
}

/// Makes a stream with 1000 blocks of 16 bytes. realloc resizes most of them without moving them.
fn resized_blocks(sample_bytes: u64, is_freed: bool) -> Vec<u8> {
    let mut stream = StreamOf::with(&mallard_trace::format::Header { sample_bytes, ..header() });
    let mut t = 1000;
    let mut events = Vec::new();
    let mut add = |op, addr, size| {
        t += 1;
        let fresh: &[u64] = if t == 1001 { &[1] } else { &[] };
        events.push(call(op, t, addr, size, u16::from(t > 1001), fresh));
    };
    for block in 1..=1000 {
        let addr = block << 16;
        add(op::MALLOC, addr, 16);
        let size = match block {
            1..=600 => 5000,
            601 => 4,
            _ => continue,
        };
        add(op::REALLOC_FROM, addr, 0);
        add(op::REALLOC_TO, addr, size);
        if is_freed {
            add(op::FREE, addr, 0);
        }
    }
    stream.piece(1, &events);
    stream.finish()
}

#[test]
fn block_sizes_are_updated_by_realloc() {
    let (_folder, trace) = trace_of(&resized_blocks(0, false));
    let site = &trace.sites().unwrap()[0];
    for of in [site, &trace.manifest().totals.sites] {
        assert_eq!((of.allocs, of.live_bytes), (1000, 600 * 5000 + 4 + 399 * 16));
        assert_eq!((of.size_min, of.size_max), (4, 5000));
        // Only 400 of the 1000 blocks have at most 16 bytes.
        assert_eq!((of.size_p50, of.size_p90), (5000, 5000));
        let classes = [600.0, 399.0, 1.0].map(|count: f64| count / 1000.0);
        let entropy: f64 = classes.iter().map(|share| -share * share.log2()).sum();
        assert!((of.v.value.unwrap() - entropy).abs() < 1e-9, "{:?}", of.v);
    }
}

#[test]
fn sampled_blocks_that_were_resized_leave_no_bytes_in_use_when_freed() {
    let (_folder, trace) = trace_of(&resized_blocks(1000, true));
    let site = &trace.sites().unwrap()[0];
    // The other 399 blocks of 16 bytes each stand for about 63 blocks.
    let each = 1.0 / (1.0 - (-0.016f64).exp());
    assert_eq!(site.live_bytes, (399.0 * 16.0 * each).round() as i64);
    assert_eq!(site.live_allocs, (399.0 * each).round() as i64);
    assert!((site.allocs - site.frees - site.live_allocs).abs() <= 1, "{site:?}");
    // The difference may be 1, because each number is rounded.
}

#[test]
fn a_realloc_to_size_0_frees_and_a_failed_realloc_does_not() {
    let mut stream = StreamOf::new();
    let events = [
        call(op::MALLOC, 1001, 0x1000, 100, 0, &[1]),
        call(op::MALLOC, 1002, 0x2000, 100, 1, &[]),
        call(op::REALLOC_FROM, 1003, 0x1000, 0, 1, &[]),
        call(op::REALLOC_TO, 1004, 0, 0, 1, &[]),
        call(op::REALLOC_FROM, 1005, 0x2000, 0, 1, &[]),
        call(op::REALLOC_TO, 1006, 0, 1 << 39, 1, &[]),
    ];
    stream.piece(1, &events);
    let (_folder, trace) = trace_of(&stream.finish());
    let counts = &trace.manifest().counts;
    assert_eq!((counts.frees, counts.failed, counts.missed_frees), (1, 1, 0));
    let site = &trace.sites().unwrap()[0];
    assert_eq!((site.allocs, site.frees, site.live_allocs, site.failed), (2, 1, 1, 1));
}

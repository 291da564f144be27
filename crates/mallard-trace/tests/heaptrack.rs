//! Tests that files of heaptrack become traces. Each random program is written in both forms of
//! heaptrack files, raw and interpreted. A model of all blocks computes what the traces must
//! contain.

use crate::support::run::seeds;
use crate::support::{self, Random};
use flate2::write::GzEncoder;
use mallard_trace::error::ErrorKind;
use mallard_trace::heaptrack::{import, is_heaptrack};
use mallard_trace::import::Options;
use mallard_trace::manifest::lack;
use mallard_trace::tables::schema::{EVENTS, MODULES, PROCESSES, SAMPLES, THREADS};
use mallard_trace::{Error, Trace};
use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::Path;

/// Writes a file and imports it as a heaptrack file.
fn import_bytes(folder: &Path, bytes: &[u8]) -> Result<Trace, Error> {
    let file = folder.join("file");
    std::fs::write(&file, bytes).unwrap();
    let options = Options { force: true, ..Options::default() };
    import(&file, &folder.join("a.mallard"), &options, &mut |_| ())
}

fn trace_of(text: &str) -> (tempfile::TempDir, Trace) {
    let folder = tempfile::tempdir().unwrap();
    let trace = import_bytes(folder.path(), text.as_bytes()).unwrap_or_else(|e| panic!("{e}"));
    (folder, trace)
}

/// The sums for one call stack: blocks, bytes, blocks in use at the end, bytes in use at the end,
/// and bytes in use at the peak of the program.
type Sums = [i64; 5];

/// A random program as a raw and as an interpreted file, with the totals that a model computed.
struct Program {
    raw: String,
    interpreted: String,
    /// The sums by call stack. A call stack is the names of its functions, the innermost first.
    sites: BTreeMap<String, Sums>,
    peak: i64,
    end_ms: i64,
}

fn program(seed: u64) -> Program {
    let mut random = Random(seed);
    let head = "v 10400 3\nX a program with arguments\nI 1000 5e298f\n";
    let (mut raw, mut text) = (head.to_string(), head.to_string());
    let functions = 1 + random.below(6);
    for function in 0..functions {
        let name = format!("function {function}");
        text += &format!("s {:x} {name}\n", name.len());
        text += &format!("i {:x} 0 {:x}\n", 0x1000 + function, function + 1);
    }
    let mut stacks: Vec<String> = Vec::new();
    for stack in 0..random.below(40) {
        let (function, parent) = (random.below(functions), random.below(stack + 1));
        raw += &format!("t {:x} {parent:x}\n", 0x1000 + function);
        text += &format!("t {:x} {parent:x}\n", function + 1);
        let outer = if parent == 0 { "" } else { &stacks[parent - 1] };
        stacks.push(format!("function {function}<{outer}"));
    }
    let mut kinds: HashMap<(usize, usize), usize> = HashMap::new();
    let mut live: Vec<(usize, usize, usize)> = Vec::new();
    let mut sites: BTreeMap<String, Sums> = BTreeMap::new();
    let (mut now, mut peak, mut ms) = (0, 0, 0);
    for step in 0..random.below(3000) {
        if random.below(50) == 0 {
            ms += 10 + random.below(3);
            let rss = 100 + random.below(50);
            let line = format!("c {ms:x}\nR {rss:x}\n");
            raw += &line;
            text += &line;
        }
        if live.is_empty() || random.below(5) < 3 {
            let (size, stack) = (random.below(4000), random.below(stacks.len() + 1));
            let next = kinds.len();
            let kind = *kinds.entry((size, stack)).or_insert_with(|| {
                text += &format!("a {size:x} {stack:x}\n");
                next
            });
            let addr = 0x10000 + 16 * step;
            raw += &format!("+ {size:x} {stack:x} {addr:x}\n");
            text += &format!("+ {kind:x}\n");
            live.push((kind, addr, step));
            let name = if stack == 0 { "" } else { &stacks[stack - 1] };
            let sums = sites.entry(name.to_string()).or_default();
            let size = size as i64;
            let more = [1, size, 1, size, 0];
            sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
            now += size;
            if now > peak {
                peak = now;
                sites.values_mut().for_each(|sums| sums[4] = sums[3]);
            }
        } else {
            let (kind, addr, _) = live.swap_remove(random.below(live.len()));
            raw += &format!("- {addr:x}\n");
            text += &format!("- {kind:x}\n");
            let (&(size, stack), _) = kinds.iter().find(|&(_, &number)| number == kind).unwrap();
            let name = if stack == 0 { "" } else { &stacks[stack - 1] };
            let sums = sites.get_mut(name).unwrap();
            sums[2] -= 1;
            sums[3] -= size as i64;
            now -= size as i64;
        }
    }
    text += "\n# strings: 1\n";
    Program { raw, interpreted: text, sites, peak, end_ms: ms as i64 }
}

/// Returns the sums of a trace by call stack. Addresses of a raw file are converted to the function
/// names of the model.
fn sites_of(trace: &Trace) -> BTreeMap<String, Sums> {
    let stacks = trace.stacks().unwrap();
    let mut sites: BTreeMap<String, Sums> = BTreeMap::new();
    for site in trace.sites().unwrap() {
        let mut name = String::new();
        for function in stacks.functions(site.stack) {
            let shown = match function.function.strip_prefix("0x") {
                // heaptrack writes the address of the last byte of the call instruction.
                Some(hex) => {
                    format!("function {}", i64::from_str_radix(hex, 16).unwrap() - 0x1001)
                }
                None => function.function.to_string(),
            };
            name += &format!("{shown}<");
        }
        let more = [site.allocs, site.bytes, site.live_allocs, site.live_bytes, site.at_peak_bytes];
        let sums = sites.entry(name).or_default();
        sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
    }
    sites
}

#[test]
fn raw_and_interpreted_heaptrack_files_of_random_programs_give_the_same_totals_as_a_model() {
    for seed in seeds(60) {
        let program = program(seed);
        for (form, text) in [("raw", &program.raw), ("interpreted", &program.interpreted)] {
            let (_folder, trace) = trace_of(text);
            let sites = sites_of(&trace);
            assert_eq!(sites, program.sites, "{form} {seed}");
            let totals = &trace.manifest().totals;
            assert_eq!(totals.sites.peak_bytes, program.peak, "{form} {seed}");
            let sum = |index: usize| program.sites.values().map(|sums| sums[index]).sum::<i64>();
            assert_eq!(trace.manifest().counts.allocations as i64, sum(0));
            assert_eq!(totals.sites.live_bytes, sum(3));
            assert_eq!(trace.manifest().counts.unknown_frees, 0);
            assert!(totals.duration_ns <= program.end_ms * 1_000_000);
            assert_eq!(trace.manifest().stream.ending, "complete");
        }
    }
}

#[test]
fn an_imported_trace_records_what_the_heaptrack_file_lacks() {
    let program = program(3);
    let (_folder, raw) = trace_of(&program.raw);
    let (_other, interpreted) = trace_of(&program.interpreted);
    let manifest = raw.manifest();
    assert_eq!(manifest.imported_from(), Some("heaptrack 1.4.0"));
    assert_eq!(manifest.lacks(), [lack::THREADS, lack::TIMES, lack::FREE_STACKS]);
    assert_eq!(
        manifest.origin().unwrap(),
        "imported from heaptrack 1.4.0: no threads, no lifetimes finer than 10 ms, no call stacks of frees"
    );
    assert!(!interpreted.manifest().has(lack::ADDRESSES));
    assert_eq!(manifest.time_step_ns(), 10_000_000);
    assert_eq!(*manifest.notes.arguments.as_ref().unwrap()[0], *"a program with arguments");
    let addresses = |trace: &Trace| {
        let addresses = trace.table(&EVENTS).unwrap().i64s("addr").unwrap();
        addresses.into_iter().filter(|&address| address >= 0).count()
    };
    assert!(addresses(&raw) > 0);
    assert_eq!(addresses(&interpreted), 0);
    let whole = &interpreted.manifest().totals.sites;
    assert_eq!((whole.l.value, whole.f.value), (None, None));
    assert_eq!(raw.table(&THREADS).unwrap().texts("name").unwrap(), ["all threads"]);
    assert_eq!(raw.table(&PROCESSES).unwrap().texts("path").unwrap(), ["a"]);
    let rss = raw.table(&SAMPLES).unwrap().i64s("rss").unwrap();
    assert!(!rss.is_empty() && rss.iter().all(|rss| rss % 4096 == 0), "{rss:?}");
    assert_eq!(manifest.notes.peak_rss.map(|rss| rss as i64), rss.iter().max().copied());
}

#[test]
fn inlined_functions_files_and_modules_keep_their_names() {
    let text = "v 10400 3\ns 6 /bin/a\ns 5 outer\ns 5 inner\ns 3 a.c\ns 7 nameles\n\
                i 1234 1 3 4 a 2 4 14\ni 99 1\nt 1 0\nt 2 1\na 8 1\n+ 0\na 9 2\n+ 1\n";
    let (_folder, trace) = trace_of(text);
    let stacks = trace.stacks().unwrap();
    let sites = trace.sites().unwrap();
    let functions = stacks.functions(sites[0].stack);
    let shown: Vec<_> =
        functions.iter().map(|f| (f.function, f.file, f.line, f.module, f.is_inlined)).collect();
    assert_eq!(
        shown,
        [("inner", "a.c", Some(10), "/bin/a", true), ("outer", "a.c", Some(20), "/bin/a", false)]
    );
    let unnamed = stacks.functions(sites[1].stack);
    assert_eq!((unnamed[0].function, unnamed[0].module), ("0x99", "/bin/a"));
    assert_eq!(trace.table(&MODULES).unwrap().texts("symbols").unwrap(), ["imported"]);
}

#[test]
fn the_modules_in_a_raw_heaptrack_file_identify_its_code() {
    let this = std::env::current_exe().unwrap();
    let this = this.to_str().unwrap();
    let text = format!(
        "v 10400 3\nx {:x} {this}\nX this\nm 1 -\nm 1 x 10000 0 1000\nm 9 /gone lib 50000 0 10 200 30\n\
         t 10123 0\nt 50220 1\n+ 8 2 100\n",
        this.len()
    );
    let (_folder, trace) = trace_of(&text);
    let paths = trace.table(&MODULES).unwrap().texts("path").unwrap();
    assert_eq!(paths, [this, "/gone lib"]);
    let build_ids = trace.table(&MODULES).unwrap().texts("build_id").unwrap();
    assert!(build_ids[1].is_empty());
    let stacks = trace.stacks().unwrap();
    let functions = stacks.functions(trace.sites().unwrap()[0].stack);
    assert_eq!(functions[0].function, "gone lib+0x221");
    assert_eq!(functions.last().unwrap().module, this);
}

#[test]
fn a_heaptrack_file_may_be_plain_or_compressed() {
    let program = program(5);
    let folder = tempfile::tempdir().unwrap();
    let zstd = zstd::encode_all(program.raw.as_bytes(), 3).unwrap();
    let mut gzip = GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(program.raw.as_bytes()).unwrap();
    for bytes in [program.raw.as_bytes().to_vec(), zstd, gzip.finish().unwrap()] {
        let trace = import_bytes(folder.path(), &bytes).unwrap();
        assert_eq!(sites_of(&trace), program.sites);
        assert!(is_heaptrack(&folder.path().join("file")));
    }
    let stream = folder.path().join("stream");
    std::fs::write(&stream, support::golden()).unwrap();
    assert!(!is_heaptrack(&stream) && !is_heaptrack(folder.path()));
}

#[test]
fn a_truncated_heaptrack_file_is_rejected_and_leaves_no_trace() {
    let program = program(7);
    let text = program.interpreted.as_bytes();
    let zstd = zstd::encode_all(text, 3).unwrap();
    let mut gzip = GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(text).unwrap();
    let gzip = gzip.finish().unwrap();
    for whole in [text, zstd.as_slice(), gzip.as_slice()] {
        let folder = tempfile::tempdir().unwrap();
        let cut = &whole[..whole.len() / 2];
        let cut = cut.strip_suffix(b"\n").unwrap_or(cut);
        let error = import_bytes(folder.path(), cut).err().expect("an error");
        assert_eq!(error.kind(), ErrorKind::Truncated, "{error}");
        assert_eq!(error.state(), "nothing was written");
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }
}

#[test]
fn an_implausible_line_in_a_heaptrack_file_is_reported() {
    let head = "v 10400 3\n";
    for (lines, number, what) in [
        ("t 5 1\n", 2, "there is no call stack 1 yet"),
        ("+ 8 1 100\n", 2, "there is no call stack 1 yet"),
        ("+ 8 1\n", 2, "too few numbers"),
        ("+ 0\n", 2, "there is no kind of block 0 yet"),
        ("a 8 0\n- 0\n", 3, "no block of the kind 0 is in use"),
        ("s 1 a\ni 5 9\n", 3, "there is no string 9 yet"),
        ("s 1 a\ni 5 1 1 1\n", 3, "too few numbers"),
        ("s 1 a\nt 1 0\n", 3, "there is no code 1 yet"),
        ("s 9 a\n", 2, "a string has another length"),
        ("c x\n", 2, "'x' is not a number"),
        ("c ffffffffffffffff\n", 2, "the time is too large"),
        ("Z 1\n", 2, "heaptrack writes no such line"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let text = format!("{head}{lines}");
        let error = import_bytes(folder.path(), text.as_bytes()).err().expect(lines);
        assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
        assert!(error.what().contains(&format!("line {number}: ")), "{error}");
        assert!(error.what().contains(what), "{error}");
        assert!(!folder.path().join("a.mallard").exists());
    }
    let folder = tempfile::tempdir().unwrap();
    let error = import_bytes(folder.path(), b"t 5 1\n").err().unwrap();
    assert!(error.what().contains("does not begin with its version"), "{error}");
    let error = import_bytes(folder.path(), b"v 20000 4\n").err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Newer, "{error}");
}

#[test]
fn random_bytes_in_a_file_never_crash_the_import() {
    let program = program(11);
    let mut random = Random(12);
    for form in [&program.raw, &program.interpreted] {
        for _ in 0..200 {
            let mut bytes = form.as_bytes().to_vec();
            for _ in 0..1 + random.below(4) {
                let at = random.below(bytes.len());
                bytes[at] = match random.below(3) {
                    0 => random.next() as u8,
                    1 => b"0123456789abcdef -+tasicRvm\n"[random.below(28)],
                    _ => bytes[random.below(bytes.len())],
                };
            }
            let folder = tempfile::tempdir().unwrap();
            if let Err(error) = import_bytes(folder.path(), &bytes) {
                assert!(!folder.path().join("a.mallard").exists(), "{error}");
            }
        }
    }
}

#[test]
fn names_with_invalid_utf_8_are_imported_with_replacement_characters() {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = b"v 10400 3\ns 3 a\xff;\ni 5 0 1\nt 1 0\na 8 1\n+ 0\n".to_vec();
    let trace = import_bytes(folder.path(), &bytes).unwrap();
    let stacks = trace.stacks().unwrap();
    let functions = stacks.functions(trace.sites().unwrap()[0].stack);
    assert_eq!(functions[0].function, "a\u{fffd};");
    // The line A means that heaptrack was attached to a running program.
    bytes.extend_from_slice(b"A\n");
    let trace = import_bytes(folder.path(), &bytes).unwrap();
    assert!(!trace.manifest().has(lack::BEGINNING));
}

#[test]
fn a_program_without_allocations_has_a_trace() {
    let (_folder, trace) = trace_of("v 10400 3\nX true\nc a\n");
    assert_eq!(trace.manifest().counts.events, 0);
    assert!(trace.sites().unwrap().is_empty());
    let folder = tempfile::tempdir().unwrap();
    assert!(import_bytes(folder.path(), b"").is_err());
}

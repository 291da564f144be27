//! Reads the figures of a trace that advice rests on.

use super::code::Made;
use super::evidence::{Bound, Evidence, Memory, Owner, Program, Site};
use super::rules::may_wink_out;
use crate::allocators;
use crate::error::Failure;
use crate::look::frames::without_wrappers;
use crate::output::missing::{incomplete, losses};
use crate::output::shell::concerns_malloc;
use crate::output::shell::quoted;
use crate::output::units::{percent, time};
use crate::record::{self, shares, unrecorded, ServerWork};
use crate::replay::{cpu_ns, threads_at_once};
use crate::trial::linked_with;
use crate::turns::subject::failure;
use mallard_trace::manifest::{lack, Manifest};
use mallard_trace::names::{is_standard, is_wrapper, short};
use mallard_trace::regions::{self, Limits};
use mallard_trace::replay::default_process;
use mallard_trace::trace::Stacks;
use mallard_trace::{SiteRow, Trace};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The number of sites to keep for each property by which sites are ranked.
const SITES: usize = 12;
/// The number of functions to keep of each call stack.
const DEPTH: usize = 12;
/// A function with more callers than this, and blocks of more sizes than the next number, allocates for its
/// callers: it is a malloc of the program's own, such as Perl_safesysmalloc, and fills no structure.
const CALLERS_MAX: usize = 3;
const SIZES_MAX: usize = 3;
/// A process with a smaller share of the events or of the CPU time does not stand for the others.
const MOST_OF_WORK: f64 = 0.5;
/// A shorter run is mostly the start of a process.
const SHORT_NS: f64 = 10e6;

/// Reads everything that the trace itself tells.
pub fn gather(trace: &Trace, work: &ServerWork) -> Result<Evidence, Failure> {
    let manifest = trace.manifest();
    let regions = regions::find(trace, Limits::default())?;
    let cpu = cpu_ns(trace).map(|(_, likely, _)| likely);
    let stacks = trace.stacks()?;
    let program = program(trace, work, cpu)?;
    let linked = Some(&program.malloc).filter(|malloc| malloc.contains(".so"));
    let mut evidence = Evidence {
        memory: memory(manifest),
        sites: sites(trace, &stacks)?,
        validity: validity(manifest),
        notes: linked
            .map(|malloc| linked_with(malloc))
            .into_iter()
            .chain(notes(manifest))
            .chain(regions.notes)
            .collect(),
        program,
        regions: regions.all,
        recordings: 1,
        ..Evidence::default()
    };
    evidence.bound = bound(manifest, &evidence, None);
    evidence.program.source = evidence.sites.iter().find_map(|site| source(&stacks, site.node));
    Ok(evidence)
}

/// The source file of `main` on a call stack.
fn source(stacks: &Stacks, node: i32) -> Option<String> {
    let is_main = |name: &str| name == "main" || name.ends_with("::main");
    let frames = stacks.functions(node);
    let file = frames.iter().find(|of| is_main(of.function) && !of.file.is_empty())?.file;
    Some(file.to_string())
}

fn text<'a>(manifest: &'a Manifest, name: &str) -> Option<&'a str> {
    manifest.notes.get(name).and_then(Value::as_str)
}

fn number(manifest: &Manifest, name: &str) -> Option<f64> {
    manifest.notes.get(name).and_then(Value::as_f64)
}

fn program(trace: &Trace, work: &ServerWork, cpu_ns: Option<f64>) -> Result<Program, Failure> {
    let manifest = trace.manifest();
    let words = words(manifest);
    let path = text(manifest, "program").unwrap_or_default();
    let name = path.rsplit('/').next().unwrap_or_default();
    let folder_name = || trace.folder().file_stem().unwrap_or_default().to_string_lossy();
    let counts = &manifest.counts;
    Ok(Program {
        trace: trace.folder().display().to_string(),
        path: path.to_string(),
        source: None,
        name: if name.is_empty() { folder_name().into_owned() } else { name.to_string() },
        command: words
            .as_ref()
            .map(|words| words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")),
        cannot_run: cannot_run(manifest, work, words.as_deref()),
        malloc: allocators::base_of(trace)?.name,
        cpu_ns,
        cpu_measured: None,
        runs_do_the_same: work.is_that_of(manifest),
        wall_ns: number(manifest, "wall_ns").unwrap_or(manifest.totals.duration_ns as f64),
        threads: manifest.totals.threads,
        processes: manifest.totals.processes,
        threads_at_once: threads_at_once(trace, None)? as u64,
        cores: std::thread::available_parallelism().map_or(1, usize::from) as u64,
        status: number(manifest, "status").map(|status| status as i32),
        failure: failed(manifest, work),
        totals: manifest.totals.sites.clone(),
        calls: counts.events,
    })
}

/// The command line of the program, if the trace has it.
pub fn words(manifest: &Manifest) -> Option<Vec<String>> {
    let words = manifest.notes.get("arguments")?.as_array()?;
    let words: Vec<String> =
        words.iter().filter_map(|word| word.as_str().map(str::to_string)).collect();
    (!words.is_empty()).then_some(words)
}

/// Sets the variables that change how the recorded program allocates, unless the user has set them to
/// other values: this command runs the program as it was recorded.
#[allow(unsafe_code)]
pub fn restore_environment(manifest: &Manifest) {
    let variables = manifest.notes.get("environment").and_then(Value::as_object);
    for (name, value) in variables.into_iter().flatten() {
        if let Some(value) = value.as_str().filter(|_| concerns_malloc(name)) {
            if std::env::var_os(name).is_none() {
                // SAFETY: no other thread of this command reads the environment without the lock of Rust's
                // standard library.
                unsafe { std::env::set_var(name, value) };
            }
        }
    }
}

/// A text for the signal that ended the program of a trace. `None` if no signal ended it, or if the
/// signal ended a server.
pub fn crash(manifest: &Manifest, work: &ServerWork) -> Option<String> {
    let how = format!("it {}", failed(manifest, work)?);
    let is_crash = nix::libc::WIFSIGNALED(number(manifest, "status")? as i32);
    is_crash.then(|| match was_ended(manifest) {
        true => format!("{how}; for a server, --load gives it work"),
        false => how,
    })
}

/// How the recorded run failed. `None` if it succeeded, or if it was a server, which ends in any way.
fn failed(manifest: &Manifest, work: &ServerWork) -> Option<String> {
    let is_server = was_loaded(manifest) || work.load.is_some() && was_ended(manifest);
    failure(number(manifest, "status")? as i32).filter(|_| !is_server)
}

/// Whether the program was a server whose load has succeeded. `mallard record` then ends it.
fn was_loaded(manifest: &Manifest) -> bool {
    number(manifest, "loads").is_some()
}

/// Whether the user ended the program as one ends a server: by Ctrl-C or a plain `kill`.
fn was_ended(manifest: &Manifest) -> bool {
    let Some(status) = number(manifest, "status").map(|status| status as i32) else { return false };
    let signal = nix::libc::WTERMSIG(status);
    let is_usual = signal == nix::libc::SIGTERM || signal == nix::libc::SIGINT;
    nix::libc::WIFSIGNALED(status) && is_usual
}

/// Notes about the recorded run.
fn notes(manifest: &Manifest) -> Vec<String> {
    let warnings = manifest.notes.get("warnings").and_then(Value::as_array);
    let texts = warnings.into_iter().flatten().filter_map(Value::as_str);
    let mut notes: Vec<String> = texts.map(str::to_string).collect();
    // The wall time depends on the load of the machine too.
    let cpu = manifest.totals.cpu_ns.map_or(f64::INFINITY, |ns| ns as f64);
    if cpu < SHORT_NS {
        notes.push(format!(
            "the recorded run took {} of CPU time: mostly the start of a process, so give the program more work",
            time(cpu)
        ));
    }
    notes
}

/// Why the program of a trace cannot run again here. `None` if the program can run.
fn cannot_run(manifest: &Manifest, work: &ServerWork, words: Option<&[String]>) -> Option<String> {
    if let Some(crash) = crash(manifest, work) {
        return Some(crash);
    }
    if let Some(from) = manifest.imported_from() {
        return Some(format!("the trace was imported from {from}, and does not say how to run it"));
    }
    let (Some(_), Some(path)) = (words, text(manifest, "program")) else {
        return Some("the trace does not have its command line".to_string());
    };
    if !Path::new(path).is_file() {
        return Some(format!("there is no {path} here"));
    }
    let here = std::env::current_dir().ok();
    match (text(manifest, "folder"), here) {
        (Some(then), Some(here)) if Path::new(then) != here => {
            Some(format!("it was recorded in the folder {then}, and this is another one"))
        }
        _ => None,
    }
}

/// The largest part of the CPU time that an allocator could save. `measured`: the CPU time of the program
/// without the recorder. `None` estimates this time.
pub fn bound(manifest: &Manifest, evidence: &Evidence, measured: Option<f64>) -> Bound {
    let shares = match shares(manifest, measured) {
        Ok(shares) => shares,
        Err(unknown) => return Bound { unknown, ..Bound::default() },
    };
    let estimate = record::cpu_ns(manifest).map(|(_, likely, _)| likely);
    // Where wink-out is not advised, the frees at the end remain.
    let winked_out = evidence.regions.iter().filter(|region| may_wink_out(evidence, region));
    let ends = winked_out.map(|region| region.teardown_ns);
    let longest = ends.fold(0.0, f64::max);
    let teardown = measured.or(estimate).map(|cpu| (longest / cpu.max(1.0)).min(1.0));
    let all = shares.calls + shares.faults + teardown.unwrap_or(0.0);
    Bound {
        share: Some(all.min(1.0)),
        calls: Some(shares.calls),
        replayed: None,
        faults: Some(shares.faults),
        teardown,
        unknown: None,
    }
}

fn memory(manifest: &Manifest) -> Memory {
    let highest = manifest.memory.peak.parts.resident.max(0) as u64;
    Memory {
        peak_rss: number(manifest, "peak_rss").map_or(highest, |peak| peak as u64),
        summary: manifest.memory.clone(),
        live_peak: manifest.totals.sites.peak_bytes.max(0) as u64,
        leaked: manifest.totals.sites.live_bytes.max(0) as u64,
    }
}

/// The sites with the most time in calls, bytes, bytes at the peak and leaked bytes, and the growing
/// sites.
fn sites(trace: &Trace, stacks: &Stacks) -> Result<Vec<Site>, Failure> {
    let mut rows = trace.sites()?;
    let passing = passing(rows.iter().filter_map(|row| call(row, stacks)));
    let growing: BTreeSet<i32> =
        trace.manifest().memory.growing.iter().take(SITES).map(|site| site.stack).collect();
    let mut kept: BTreeSet<i32> = growing.clone();
    let keys: [fn(&SiteRow) -> i64; 4] =
        [|site| site.call_ns, |site| site.bytes, |site| site.at_peak_bytes, |site| site.live_bytes];
    for key in keys {
        rows.sort_by_key(|site| (std::cmp::Reverse(key(site)), site.stack));
        kept.extend(rows.iter().take(SITES).map(|site| site.stack));
    }
    rows.retain(|site| kept.contains(&site.stack) && site.stack != 0);
    rows.sort_by_key(|site| (std::cmp::Reverse(site.call_ns), site.stack));
    Ok(rows.into_iter().map(|row| site(row, stacks, &growing, &passing)).collect())
}

/// A site as one call of its function: the function, the caller, and the least and the largest block.
type Call<'a> = (&'a str, &'a str, [i64; 2]);

/// The functions that allocate for their callers.
fn passing<'a>(calls: impl Iterator<Item = Call<'a>>) -> BTreeSet<String> {
    let mut seen: BTreeMap<&str, (BTreeSet<&str>, BTreeSet<i64>)> = BTreeMap::new();
    for (function, caller, of_blocks) in calls {
        let (callers, sizes) = seen.entry(function).or_default();
        callers.insert(caller);
        sizes.extend(of_blocks);
    }
    seen.retain(|_, (callers, sizes)| callers.len() > CALLERS_MAX && sizes.len() > SIZES_MAX);
    seen.into_keys().map(str::to_string).collect()
}

fn call<'a>(row: &SiteRow, stacks: &'a Stacks) -> Option<Call<'a>> {
    let frames = without_wrappers(&stacks.functions(row.stack));
    let caller = frames.get(1).map_or("", |frame| frame.function);
    Some((frames.first()?.function, caller, [row.size_min, row.size_max]))
}

fn site(
    figures: SiteRow,
    stacks: &Stacks,
    growing: &BTreeSet<i32>,
    passing: &BTreeSet<String>,
) -> Site {
    let all = stacks.functions(figures.stack);
    let frames = without_wrappers(&all);
    let first = frames.first();
    let function = first.map_or("?", |frame| frame.function);
    let text = |text: &str| Some(text.to_string()).filter(|text| !text.is_empty());
    let is_of_library = |name: &str| name.is_empty() || is_wrapper(name) || is_standard(name);
    let is_own = |name: &str| !is_of_library(name) && !passing.contains(name);
    let own = frames.iter().find(|frame| is_own(frame.function)).or(first);
    let owner = own.map_or(Owner::default(), |frame| Owner {
        function: frame.function.to_string(),
        shown: short(frame.function),
        file: text(frame.file),
        line: frame.line,
    });
    Site {
        owner,
        node: figures.stack,
        function: function.to_string(),
        shown: short(function),
        file: first.and_then(|frame| text(frame.file)),
        line: first.and_then(|frame| frame.line),
        module: first.map_or(String::new(), |frame| frame.module.to_string()),
        stack: frames.iter().take(DEPTH).map(|frame| short(frame.function)).collect(),
        is_growing: growing.contains(&figures.stack),
        passes_on: passing.contains(function),
        made: Made::of(&all),
        figures,
    }
}

/// The file name of the recorded program, if the trace has it.
pub fn program_name(manifest: &Manifest) -> Option<&str> {
    text(manifest, "program")?.rsplit('/').next()
}

/// Why the process that is replayed does not stand for the others. `None` if it does most of the work.
pub fn other_processes(trace: &Trace) -> Result<Option<String>, Failure> {
    let process = default_process(trace)?.filter(|(.., share)| *share < MOST_OF_WORK);
    Ok(process.map(|(number, file, share)| {
        let name = file.rsplit('/').next().unwrap_or_default();
        let share = percent(share);
        format!("only process {number} ({name}) was looked at, which did {share} of the work")
    }))
}

/// Why the trace shows less than the whole run.
pub fn validity(manifest: &Manifest) -> Vec<String> {
    let lacks = |what: &String| format!("the recording lacks {what}");
    let mut all: Vec<String> = losses(manifest).iter().map(lacks).collect();
    all.extend(incomplete(manifest));
    if manifest.stream.sample_bytes > 0 {
        let each = manifest.stream.sample_bytes;
        all.push(format!("the trace has samples: about one block for each {each} bytes"));
    }
    if let Some(share) = unrecorded(manifest) {
        let share = percent(share);
        all.push(format!("{share} of the CPU time is of programs that were not recorded"));
    } else if let Some(what) = record::other_processes(manifest, "the program") {
        all.push(what);
    }
    if let Some(window) = text(manifest, "window") {
        all.push(format!("the trace has only the time {window} of the run"));
    }
    for what in [lack::THREADS, lack::FREE_STACKS, lack::ADDRESSES, lack::BEGINNING] {
        if !manifest.has(what) {
            all.push(format!("the trace has no {what}"));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::rules::sample;
    use super::*;
    use mallard_trace::duck::PAGE_BYTES;
    use mallard_trace::regions::Region;
    use mallard_trace::replay::End;
    use serde_json::json;

    fn manifest() -> Manifest {
        let notes = json!({"user_ns": 1e9, "system_ns": 0.0, "recording_ns_per_event": 0.0,
            "ns_per_free": 10.0, "minor_faults": 100.0, "ns_per_fault": 1000.0});
        let text = json!({"format": Manifest::format(), "schema": 1, "tool": "", "stream": {
            "version": 1, "clock": 1, "clock_hz": 1, "start_unix": 0, "pid": 1, "sample_bytes": 0,
            "records": 0, "ending": "complete"}, "losses": {}, "counts": {}, "repairs": {},
            "totals": {}, "tables": [], "notes": notes});
        serde_json::from_value(text).unwrap()
    }

    #[test]
    fn frees_at_ends_count_for_the_bound_only_where_wink_out_can_be_advised() {
        let region = Region { teardown_ns: 5e8, ..sample::region() };
        let teardown = |regions: &[Region], lacks: &[String]| {
            let (regions, validity) = (regions.to_vec(), lacks.to_vec());
            let evidence = Evidence { regions, validity, ..Evidence::default() };
            bound(&manifest(), &evidence, Some(1e9)).teardown.unwrap()
        };
        assert_eq!(teardown(std::slice::from_ref(&region), &[]), 0.5);
        let of = || region.clone();
        let cannot = [
            Region { instances: 29, ..of() },
            Region { unfinished: 1, ..of() },
            Region { inputs: 1, ..of() },
            Region { escapes: 1, ..of() },
            Region { foreign_frees: 1, ..of() },
        ];
        for region in cannot {
            assert_eq!(teardown(&[region], &[]), 0.0);
        }
        let twin = Region { escapes: 1, ends: End::Drained, ..of() };
        assert_eq!(teardown(&[of(), twin], &[]), 0.0);
        assert_eq!(teardown(&[of()], &["3 events are missing".to_string()]), 0.0);
    }

    #[test]
    fn page_faults_count_for_the_bound_as_far_as_blocks_can_have_caused_them() {
        let mut manifest = manifest();
        assert_eq!(bound(&manifest, &Evidence::default(), None).faults, Some(0.0));
        manifest.totals.sites.allocs = 10;
        manifest.totals.sites.bytes = 40 * PAGE_BYTES as i64;
        let faults = bound(&manifest, &Evidence::default(), None).faults.unwrap();
        assert!((faults - 50.0 * 1000.0 / 1e9).abs() < 1e-12, "{faults}");
    }

    #[test]
    fn a_function_with_many_callers_and_many_sizes_allocates_for_its_callers() {
        let of = |callers: usize, sizes: i64| {
            let callers = (0..callers).map(|number| format!("caller{number}"));
            let pairs: Vec<(String, i64)> = callers.zip((1..=sizes).cycle()).collect();
            passing(pairs.iter().map(|(caller, size)| ("my_malloc", caller.as_str(), [*size; 2])))
        };
        assert!(of(4, 4).contains("my_malloc"));
        // A function that makes one kind of object has many callers, and one that reads words has many sizes.
        assert!(of(9, 3).is_empty() && of(3, 3).is_empty());
        assert!(passing([("f", "g", [1, 9]), ("f", "h", [2, 8])].into_iter()).is_empty());
    }
}

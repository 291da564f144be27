//! Reads the facts for the advice from a trace.

use super::region::regions_of;
use super::{Bound, Facts, Memory, Owner, Program, Site};
use crate::advise::code::Made;
use crate::advise::options::{Options, Typed};
use crate::advise::reason::{CannotRun, Doubt, Gap, Note};
use crate::advise::rules::may_wink_out;
use crate::look::frames::without_wrappers;
use crate::output::debuginfod::how_to_name;
use crate::output::missing::{incomplete, losses};
use crate::record::recorded;
use crate::record::{self, follow, own_allocator, part, shares, unrecorded, ServerWork};
use crate::replay::{cpu_ns, threads_at_once};
use mallard_measure::comparison::linked_with;
use mallard_measure::error::Failure;
use mallard_measure::output::shell::{concerns_malloc, quoted_words};
use mallard_measure::rounds::subject::failure;
use mallard_trace::manifest::{lack, Manifest};
use mallard_trace::names::{is_standard, is_system_library, is_wrapper, short};
use mallard_trace::regions::{self, Limits, UNNAMED};
use mallard_trace::replay::default_process;
use mallard_trace::residency::MemorySummary;
use mallard_trace::trace::{FrameInfo, Stacks};
use mallard_trace::{SiteRow, Trace};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;

/// The number of sites to keep for each property by which sites are ranked.
const SITES: usize = 12;
/// The number of functions of each call stack to keep.
const DEPTH: usize = 12;
/// A function is an allocation wrapper, such as Perl_safesysmalloc, if it has more callers than
/// `CALLERS_MAX` and more block sizes than `SIZES_MAX`. Its blocks belong to no single structure.
const CALLERS_MAX: usize = 3;
const SIZES_MAX: usize = 3;
/// If the replayed process has a smaller share of the events or CPU time, this process does not
/// represent the program.
const MOST_OF_WORK: f64 = 0.5;
/// If a larger share of the events has an incomplete call stack, blocks of a region may be missed.
const CUT_MAX: f64 = 0.001;
/// If programs that were not recorded used more than this share of the CPU time, the recorded calls
/// show little about the whole run.
const MOSTLY: f64 = 0.5;
/// A run with less CPU time than this is mostly process startup.
const SHORT_NS: f64 = 10e6;

/// Reads all facts that the trace contains. `words` is the command line if this command made the
/// recording, and empty otherwise.
pub fn facts(trace: &Trace, options: &Options, words: &[OsString]) -> Result<Facts, Failure> {
    let manifest = trace.manifest();
    let regions = regions::find(trace, Limits::default())?;
    let cpu = cpu_ns(trace).map(|(_, likely, _)| likely);
    let stacks = trace.stacks()?;
    let mut program = program(trace, options, words, cpu)?;
    let is_unnamed = regions.notes.iter().any(|note| note == UNNAMED);
    let how = program_file(manifest).filter(|_| is_unnamed).map(how_to_name);
    let linked = Some(&program.malloc).filter(|malloc| malloc.contains(".so"));
    let linked = linked.map(|malloc| Note::Said(linked_with(malloc)));
    let sites = sites(trace, &stacks)?;
    program.source = sites.iter().find_map(|site| source(&stacks, site.node));
    let typed = Typed::of(options);
    let missing = missing(manifest, &program, &typed, words);
    let is_ended = crash(manifest, &options.work).map(|_| Doubt::EndedBySignal);
    let facts = Facts {
        memory: memory(manifest),
        sites,
        validity: validity(manifest),
        notes: linked
            .into_iter()
            .chain(notes(manifest))
            .chain(regions.notes.into_iter().chain(how).map(Note::Said))
            .collect(),
        doubts: missing.iter().cloned().chain(is_ended).chain(one_process(trace)?).collect(),
        records_all: match missing {
            Some(Doubt::Part { again, .. }) => again,
            _ => None,
        },
        is_mostly_missing: is_mostly_missing(manifest),
        min_gain: options.timing.min_gain,
        regions: regions.all,
        program,
        typed,
        ..Facts::default()
    };
    // The bound covers all regions, even if the user asks for one function.
    let bound = bound(manifest, &facts, None);
    let regions = match &options.region {
        Some(function) => regions_of(trace, function)?,
        None => facts.regions,
    };
    Ok(Facts { bound, regions, ..facts })
}

/// Returns whether programs that were not recorded used most of the CPU time, so that the recorded
/// calls show little.
fn is_mostly_missing(manifest: &Manifest) -> bool {
    let may_be_recorded = part(manifest).is_some() && own_allocator(manifest).is_none();
    may_be_recorded && unrecorded(manifest).is_some_and(|share| share > MOSTLY)
}

/// Returns a doubt if a part of the run was not recorded, because allocators may save something in
/// that part. The doubt has the command that records the whole run.
fn missing(
    manifest: &Manifest,
    program: &Program,
    typed: &Typed,
    words: &[OsString],
) -> Option<Doubt> {
    let what = part(manifest)?;
    if own_allocator(manifest).is_some() {
        return Some(Doubt::Part { what, again: None });
    }
    let others = record::other_processes(manifest, &program.name);
    let option = others.as_ref().and_then(|_| follow(manifest));
    if let (Some(what), None) = (&others, option) {
        return Some(Doubt::Part { what: what.clone(), again: None });
    }
    let follow = option.map_or(String::new(), |option| format!("{option} "));
    let command = program.command.as_deref().unwrap_or("PROG ARGS");
    let again = match words.is_empty() {
        true => typed.run(&format!("mallard record {follow}{}-- {command}", typed.load())),
        false => typed.advise("", &format!("{follow}-- {command}")),
    };
    Some(Doubt::Part { what: others.unwrap_or(what), again: Some(again) })
}

/// Finds the source file of `main` on a call stack.
fn source(stacks: &Stacks, node: i32) -> Option<String> {
    let is_main = |name: &str| name == "main" || name.ends_with("::main");
    let frames = stacks.functions(node);
    let file = frames.iter().find(|of| is_main(of.function) && !of.file.is_empty())?.file;
    Some(file.to_string())
}

/// Returns the file of the program, if its path is UTF-8.
fn program_file(manifest: &Manifest) -> Option<&str> {
    manifest.notes.program.as_ref()?.to_str()
}

fn program(
    trace: &Trace,
    options: &Options,
    words: &[OsString],
    cpu_ns: Option<f64>,
) -> Result<Program, Failure> {
    let (manifest, work) = (trace.manifest(), &options.work);
    let path = recorded::path(&manifest.notes.program).unwrap_or_default();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let folder_name = || trace.folder().file_stem().unwrap_or_default().to_string_lossy();
    let counts = &manifest.counts;
    Ok(Program {
        trace: trace.folder().display().to_string(),
        path: path.to_string_lossy().into_owned(),
        source: None,
        name: if name.is_empty() { folder_name().into_owned() } else { name.into_owned() },
        command: match words {
            [] => recorded::command_line(manifest),
            words => Some(quoted_words(words)),
        },
        cannot_run: match words {
            _ if options.no_try => Some(CannotRun::NotAsked),
            [] => cannot_run(manifest, work),
            _ => crash(manifest, work),
        },
        malloc: recorded::base_of(trace)?.name,
        cpu_ns,
        cpu_measured: None,
        run_takes: None,
        runs_do_the_same: work.is_that_of(manifest),
        wall_ns: manifest.notes.wall_ns.map_or(manifest.totals.duration_ns as f64, |ns| ns as f64),
        threads: manifest.totals.threads,
        processes: manifest.totals.processes,
        threads_at_once: threads_at_once(trace, None)? as u64,
        cores: std::thread::available_parallelism().map_or(1, usize::from) as u64,
        status: manifest.notes.status,
        failure: failed(manifest, work),
        totals: manifest.totals.sites.clone(),
        calls: counts.events,
    })
}

/// Sets the environment and the working directory of this process to those of the recorded program,
/// so that all runs do the same as the recorded run. Variables for malloc that the user has set now
/// keep their values. Returns the directory if this call has changed to it.
#[allow(unsafe_code)]
pub fn return_to(manifest: &Manifest) -> Option<PathBuf> {
    for (name, value) in recorded::variables(manifest) {
        let is_set_now = concerns_malloc(&name) && std::env::var_os(&name).is_some();
        if !is_set_now && !belongs_to_session(&name) {
            // SAFETY: no other thread of this command reads the environment without the lock of Rust's
            // standard library.
            unsafe { std::env::set_var(name, value) };
        }
    }
    let folder = recorded::path(&manifest.notes.folder)?;
    let is_other = std::env::current_dir().is_ok_and(|here| here != folder);
    (is_other && std::env::set_current_dir(&folder).is_ok()).then_some(folder)
}

/// Returns whether a variable belongs to the shell, the terminal or to Mallard, and not to the
/// program.
fn belongs_to_session(name: &str) -> bool {
    ["PWD", "OLDPWD", "SHLVL", "_", "TERM", "COLUMNS", "LINES", "LD_PRELOAD"].contains(&name)
        || name.starts_with("MALLARD_")
}

/// Returns the signal that terminated the recorded program. `None` if no signal did, or if the
/// program was a server.
fn crash(manifest: &Manifest, work: &ServerWork) -> Option<CannotRun> {
    let status = manifest.notes.status.filter(|status| nix::libc::WIFSIGNALED(*status))?;
    failed(manifest, work)?;
    Some(CannotRun::Ended { status, like_a_server: was_ended(manifest) })
}

/// Describes how the recorded run failed. Returns `None` if the run succeeded, or if the program
/// was a server, which may exit with any status.
fn failed(manifest: &Manifest, work: &ServerWork) -> Option<String> {
    let is_server = was_loaded(manifest) || work.load.is_some() && was_ended(manifest);
    failure(manifest.notes.status?).filter(|_| !is_server)
}

/// Returns whether the program was a server whose load has succeeded. `mallard record` then
/// terminates the server.
fn was_loaded(manifest: &Manifest) -> bool {
    manifest.notes.loads.is_some()
}

/// Returns whether the user terminated the program as users terminate servers, by Ctrl-C or a plain
/// `kill`.
fn was_ended(manifest: &Manifest) -> bool {
    let Some(status) = manifest.notes.status else { return false };
    let signal = nix::libc::WTERMSIG(status);
    let is_usual = signal == nix::libc::SIGTERM || signal == nix::libc::SIGINT;
    nix::libc::WIFSIGNALED(status) && is_usual
}

/// Returns notes about the recorded run.
fn notes(manifest: &Manifest) -> Vec<Note> {
    let warnings = manifest.notes.warnings.clone().unwrap_or_default();
    // Use the CPU time, because the wall time also depends on the load of the machine.
    let cpu = manifest.totals.cpu_ns.map(|ns| ns as f64).filter(|&cpu| cpu < SHORT_NS);
    warnings.into_iter().map(Note::of_warning).chain(cpu.map(Note::ShortRun)).collect()
}

/// Returns the reason why the program of a trace cannot run again on this machine. Returns `None`
/// if the program can run.
fn cannot_run(manifest: &Manifest, work: &ServerWork) -> Option<CannotRun> {
    if let Some(crash) = crash(manifest, work) {
        return Some(crash);
    }
    if let Some(from) = manifest.imported_from() {
        return Some(CannotRun::Imported(from.to_string()));
    }
    if manifest.notes.attached_after.is_some() {
        return Some(CannotRun::WasRunning);
    }
    let path = recorded::path(&manifest.notes.program);
    let (Some(_), Some(path)) = (recorded::words(manifest), path) else {
        return Some(CannotRun::NoCommandLine);
    };
    if !path.is_file() {
        return Some(CannotRun::NoFile(path));
    }
    let then = recorded::path(&manifest.notes.folder)?;
    let is_elsewhere = std::env::current_dir().is_ok_and(|here| here != then);
    is_elsewhere.then_some(CannotRun::NoFolder(then))
}

/// Computes the largest share of the CPU time that an allocator could save. `measured` is the CPU
/// time of the program without the recorder. If `measured` is `None`, this CPU time is estimated.
pub fn bound(manifest: &Manifest, facts: &Facts, measured: Option<f64>) -> Bound {
    let shares = match shares(manifest, measured) {
        Ok(shares) => shares,
        Err(unknown) => return Bound { unknown, ..Bound::default() },
    };
    let estimate = record::cpu_ns(manifest).map(|(_, likely, _)| likely);
    // Only regions that may be winked out count, because other regions keep their frees at the end.
    let winked_out = facts.regions.iter().filter(|region| may_wink_out(facts, region));
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
    // A recording that begins late does not contain the older blocks, whose memory therefore seems
    // to be free. So only the growth of memory is known.
    let MemorySummary { growing, growing_sites, growing_bytes, .. } = manifest.memory.clone();
    let growth = MemorySummary { growing, growing_sites, growing_bytes, ..Default::default() };
    let begins_late = manifest.notes.attached_after.is_some() || manifest.notes.window.is_some();
    Memory {
        peak_rss: manifest.notes.peak_rss.unwrap_or(highest),
        summary: if begins_late { growth } else { manifest.memory.clone() },
        live_peak: manifest.totals.sites.peak_bytes.max(0) as u64,
        leaked: manifest.totals.sites.live_bytes.max(0) as u64,
    }
}

/// Returns the sites with the most time in calls, bytes, bytes at the peak and leaked bytes, and
/// the growing sites.
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

/// One call at a site, as a tuple of the function, the caller of the function, and the smallest and
/// the largest block size in bytes.
type Call<'a> = (&'a str, &'a str, [i64; 2]);

/// Finds allocation wrappers such as `xmalloc`: functions with many callers and many block sizes.
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
    let mut frames =
        stacks.innermost(row.stack).skip_while(|of| is_wrapper(of.function)).peekable();
    let wrappers = stacks.innermost(row.stack).take(if frames.peek().is_some() { 0 } else { 2 });
    let mut frames = frames.chain(wrappers).map(|frame| frame.function);
    let function = frames.next()?;
    Some((function, frames.next().unwrap_or(""), [row.size_min, row.size_max]))
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
    // C library functions such as strdup, which return a new block, allocate for their callers too.
    let is_of_library = |frame: &FrameInfo| {
        let name = frame.function;
        let is_standard = name.is_empty() || is_wrapper(name) || is_standard(name);
        is_standard || is_system_library(frame.module)
    };
    let is_own = |frame: &&FrameInfo| !is_of_library(frame) && !passing.contains(frame.function);
    let own = frames.iter().find(is_own);
    let owner = own.or(first).map_or(Owner::default(), |frame| Owner {
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
        passes_on: passing.contains(function) || own.is_none(),
        made: Made::of(&all),
        figures,
    }
}

/// Returns the file name of the recorded program, if the trace has it.
pub fn program_name(manifest: &Manifest) -> Option<String> {
    let path = recorded::path(&manifest.notes.program)?;
    Some(path.file_name()?.to_string_lossy().into_owned())
}

/// Returns a doubt if the replayed process does less than half of the work, because such a process
/// does not represent the other processes.
fn one_process(trace: &Trace) -> Result<Option<Doubt>, Failure> {
    let process = default_process(trace)?.filter(|(.., share)| *share < MOST_OF_WORK);
    Ok(process.map(|(number, file, share)| Doubt::OneProcess { number, file, share }))
}

/// Returns the reasons why the trace shows less than the whole run.
pub fn validity(manifest: &Manifest) -> Vec<Gap> {
    let repairs = &manifest.repairs;
    let cut = (repairs.cut_stacks + repairs.gap_stacks) as f64;
    let are_cut = cut > CUT_MAX * manifest.stream.records as f64;
    let stacks = if are_cut { incomplete(manifest) } else { Vec::new() };
    let samples = Some(manifest.stream.sample_bytes).filter(|&each| each > 0);
    let others = unrecorded(manifest)
        .map(Gap::Programs)
        .or_else(|| record::other_processes(manifest, "the program").map(Gap::Said));
    let window = manifest.notes.window.clone();
    let parts = [lack::THREADS, lack::FREE_STACKS, lack::ADDRESSES, lack::BEGINNING];
    let missing = parts.into_iter().filter(|what| !manifest.has(what));
    let events = losses(manifest).into_iter().map(Gap::Events);
    events
        .chain(stacks.into_iter().map(Gap::Said))
        .chain(samples.map(Gap::Samples))
        .chain(others)
        .chain(window.map(Gap::Window))
        .chain(manifest.notes.attached_after.map(|_| Gap::Beginning))
        .chain(missing.map(Gap::No))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::rules::sample;
    use mallard_trace::measures::PAGE_BYTES;
    use mallard_trace::regions::Region;
    use mallard_trace::replay::End;
    use serde_json::json;

    fn manifest() -> Manifest {
        let notes = json!({"user_ns": 1_000_000_000, "system_ns": 0, "recording_ns_per_event": 0.0,
            "ns_per_free": 10.0, "minor_faults": 100, "ns_per_fault": 1000.0});
        let text = json!({"format": Manifest::format(), "schema": 1, "tool": "", "stream": {
            "version": 1, "clock": 1, "clock_hz": 1, "start_unix": 0, "pid": 1, "sample_bytes": 0,
            "records": 0, "ending": "complete"}, "losses": {}, "counts": {}, "repairs": {},
            "totals": {}, "tables": [], "notes": notes});
        serde_json::from_value(text).unwrap()
    }

    #[test]
    fn one_truncated_call_stack_among_thousands_does_not_make_a_recording_invalid() {
        let mut manifest = manifest();
        manifest.stream.records = 10_000;
        manifest.repairs.cut_stacks = 10;
        assert_eq!(validity(&manifest), []);
        manifest.repairs.gap_stacks = 1;
        assert_eq!(validity(&manifest).len(), 2);
    }

    #[test]
    fn frees_at_the_end_of_a_region_count_for_the_bound_only_if_wink_out_is_possible() {
        let region = Region { teardown_ns: 5e8, ..sample::region() };
        let teardown = |regions: &[Region], lacks: &[Gap]| {
            let (regions, validity) = (regions.to_vec(), lacks.to_vec());
            let facts = Facts { regions, validity, ..Facts::default() };
            bound(&manifest(), &facts, Some(1e9)).teardown.unwrap()
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
        assert_eq!(teardown(&[of()], &[Gap::Events("3 events".to_string())]), 0.0);
    }

    #[test]
    fn only_page_faults_that_blocks_can_have_caused_count_for_the_bound() {
        let mut manifest = manifest();
        assert_eq!(bound(&manifest, &Facts::default(), None).faults, Some(0.0));
        manifest.totals.sites.allocs = 10;
        manifest.totals.sites.bytes = 40 * PAGE_BYTES as i64;
        let faults = bound(&manifest, &Facts::default(), None).faults.unwrap();
        assert!((faults - 50.0 * 1000.0 / 1e9).abs() < 1e-12, "{faults}");
    }

    #[test]
    fn a_function_with_many_callers_and_block_sizes_is_an_allocation_wrapper() {
        let of = |callers: usize, sizes: i64| {
            let callers = (0..callers).map(|number| format!("caller{number}"));
            let pairs: Vec<(String, i64)> = callers.zip((1..=sizes).cycle()).collect();
            passing(pairs.iter().map(|(caller, size)| ("my_malloc", caller.as_str(), [*size; 2])))
        };
        assert!(of(4, 4).contains("my_malloc"));
        // A function that makes one kind of object has many callers but few sizes. A function that
        // reads words has many sizes but few callers.
        assert!(of(9, 3).is_empty() && of(3, 3).is_empty());
        assert!(passing([("f", "g", [1, 9]), ("f", "h", [2, 8])].into_iter()).is_empty());
    }
}

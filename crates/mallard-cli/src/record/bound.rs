//! Computes the bound of a recording, which is the maximum share of a program's CPU time that any
//! allocator could save.

use super::recorded;
use mallard_measure::output::shell::{assignments, quoted};
use mallard_measure::output::units::{count, percent, time};
use mallard_trace::manifest::Manifest;
use mallard_trace::measures::PAGE_BYTES;

/// Shares of the CPU time are unknown if more than this share of the events or of the CPU time was not
/// recorded.
const MISSING_MAX: f64 = 0.02;

/// The CPU time that recording adds to a program, divided by the time that the recorder measures in
/// its own code: lower limit, likely value and upper limit. The recorder also evicts data of the
/// program from the caches, and measures only a part of the calls. In 12 programs on two
/// processors, the quotient was 0.45 to 1.93, with a median of 1.2.
const RECORDING: (f64, f64, f64) = (0.5, 1.2, 1.9);
/// The maximum share of the CPU time that is attributed to recording.
const RECORDING_MAX: f64 = 0.9;
/// If calls and page faults seem to take more than this share of an estimated CPU time, the
/// estimate is too small.
const CREDIBLE_MAX: f64 = 0.9;
/// The reason why shares of the CPU time are unknown if calls and page faults seem to take more
/// than all of the CPU time.
const UNCLEAR: &str = "recording slowed the calls down too much, or threads waited in them";
/// If there are at least this many allocations, at least one in TIMED_LEAST must have been timed.
const UNTIMED_MIN: i64 = 1000;
const TIMED_LEAST: i64 = 64;
/// The reason why shares of the CPU time are unknown if too few calls were timed. Older recorders
/// did not time the operator new of another malloc library, and the recorder times no call of a
/// thread that makes fewer than 16.
const UNTIMED: &str =
    "too few calls were timed: an older mallard recorded them, or their threads make only a few each";

/// The maximum shares of the CPU time that calls of malloc's family and page faults take, together
/// at most 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shares {
    /// The share of the CPU time that calls of malloc and related functions take. The recorder
    /// times each call separately, but in the program, the processor does other work during the
    /// call. So the calls cost the program less, in loops of cheap calls half as much.
    pub calls: f64,
    /// The share of the CPU time that page faults take.
    pub faults: f64,
}

/// Returns the maximum share of the CPU time that calls of malloc's family and page faults take. No
/// allocator can save more, apart from locality. `None` for a sampled trace, a trace of a part of
/// the run, or a trace without the notes of `mallard record`.
pub fn bound(manifest: &Manifest) -> Option<f64> {
    shares(manifest, None).ok().map(|shares| shares.calls + shares.faults)
}

/// Returns why [`bound`] is unknown. `None` if it is known, or if a trace of this kind never has a
/// bound.
pub fn unknown(manifest: &Manifest) -> Option<String> {
    shares(manifest, None).err().flatten()
}

/// Returns the two parts of [`bound`], or why they are unknown. `measured` is the CPU time of the
/// program without the recorder, in ns. If `measured` is `None`, this time is estimated.
pub fn shares(manifest: &Manifest, measured: Option<f64>) -> Result<Shares, Option<String>> {
    // For a process that ran already, the CPU time in the notes is that of the recorded time alone.
    if let Some(part) = part(manifest).filter(|_| manifest.notes.attached_after.is_none()) {
        return Err(Some(part));
    }
    let (calls, faults) =
        spent(manifest).filter(|_| manifest.stream.sample_bytes == 0).ok_or(None)?;
    if is_untimed(manifest) {
        return Err(Some(UNTIMED.to_string()));
    }
    let (_, estimate, _) = cpu_ns(manifest).ok_or(None)?;
    let all = measured.unwrap_or(estimate).max(1.0);
    let most = if measured.is_some() { 1.0 } else { CREDIBLE_MAX };
    match calls + faults <= most * all {
        true => Ok(Shares { calls: calls / all, faults: faults / all }),
        false => Err(Some(UNCLEAR.to_string())),
    }
}

/// Returns whether far fewer calls were timed than the one allocation in 16 that the recorder
/// times.
fn is_untimed(manifest: &Manifest) -> bool {
    let of = &manifest.totals.sites;
    of.allocs >= UNTIMED_MIN && of.timed_calls < of.allocs / TIMED_LEAST
}

/// Returns the time of calls and of page faults, in ns. `None` without the notes of `mallard
/// record`.
fn spent(manifest: &Manifest) -> Option<(f64, f64)> {
    let notes = &manifest.notes;
    let calls = manifest.totals.sites.call_ns as f64 + free_ns(manifest, notes.ns_per_free?);
    let faults = faults_of_blocks(manifest, notes.minor_faults?, notes.ring_pages);
    Some((calls, faults * notes.ns_per_fault?))
}

/// Returns the maximum number of page faults that blocks caused, out of `all`: one for each block,
/// and one for each page of its length. Code, stacks and the start of the process cause other
/// faults, and each page of the recorder causes one. The memory was last sampled before the end, so
/// `ring_pages` has the pages of the ring at the end.
fn faults_of_blocks(manifest: &Manifest, all: u64, ring_pages: Option<u64>) -> f64 {
    let seen = manifest.memory.peak.parts.recorder as f64 / PAGE_BYTES as f64;
    let recorder = seen.max(ring_pages.unwrap_or(0) as f64);
    let blocks = &manifest.totals.sites;
    let pages = blocks.bytes as f64 / PAGE_BYTES as f64 + blocks.allocs as f64;
    (all as f64 - recorder).min(pages).max(0.0)
}

/// Returns the CPU time of the program without the time of recording, in ns: lower limit, likely
/// value and upper limit. `None` if the trace does not contain these times.
pub fn cpu_ns(manifest: &Manifest) -> Option<(f64, f64, f64)> {
    cpu_of_part(manifest, 1.0)
}

/// Returns what `cpu_ns` returns, for the recorded part of the run, which has `share` of the CPU
/// time. All of the recording was in this part.
pub fn cpu_of_part(manifest: &Manifest, share: f64) -> Option<(f64, f64, f64)> {
    let all = share * manifest.notes.cpu_ns()?;
    let recording = manifest.notes.recording_ns_per_event? * manifest.counts.events as f64;
    let without = |factor: f64| (all - factor * recording).max(all * (1.0 - RECORDING_MAX));
    let (least, likely, most) = RECORDING;
    (all > 0.0).then(|| (without(most), without(likely), without(least)))
}

/// Returns why the trace has only a part of the program's calls, so that the shares of the CPU time
/// are unknown. `None` if the trace has nearly all calls.
pub fn part(manifest: &Manifest) -> Option<String> {
    let (lost, events) = (manifest.losses.all(), manifest.counts.events);
    if let Some(function) = own_allocator(manifest) {
        return Some(format!(
            "the program has its own allocator ({function}), whose calls are not recorded"
        ));
    }
    // Without any event, nothing is known of the processes.
    let window = manifest.notes.window.as_ref();
    let window = window.map(|window| format!("only {window} of the run was recorded"));
    if manifest.counts.events == 0 && window.is_some() {
        return window;
    }
    if let Some(what) = other_processes(manifest, "it") {
        let again = follow(manifest).map_or(String::new(), |option| {
            let begin = format!("mallard record {option} {}--", load(manifest));
            format!(": {}", command(manifest, &begin))
        });
        return Some(what + &again);
    }
    if manifest.notes.attached_after.is_some() {
        return Some("the recording began in a running process".to_string());
    }
    if window.is_some() {
        return window;
    }
    if let Some(why) = &manifest.notes.stopped {
        return Some(format!("the recording stopped when {why}"));
    }
    if manifest.stream.ending != "complete" {
        return Some(format!("the recording is not complete ({})", manifest.stream.ending));
    }
    let is_much = lost as f64 > MISSING_MAX * (events + lost) as f64;
    is_much.then(|| format!("{} events are missing", count(lost)))
}

/// Returns the function by which the program allocates instead of malloc. `None` if the program
/// calls malloc.
pub fn own_allocator(manifest: &Manifest) -> Option<&str> {
    manifest.notes.allocates_by.as_deref()
}

/// Returns what is known about processes that were not recorded. `program` is the name of the
/// program in this sentence. `None` if there are no such processes, or if they took little CPU
/// time.
pub fn other_processes(manifest: &Manifest, program: &str) -> Option<String> {
    let share = unrecorded(manifest).map(|share| {
        let share = percent(share);
        match follow(manifest) {
            Some(_) => format!(
                "{share} of the CPU time was used by programs that {program} runs, which were not recorded"
            ),
            None => format!(
                "{share} of the CPU time was used by programs that {program} runs, which could not be recorded: \
                 they are linked statically, were started without LD_PRELOAD, may not read the recorder, \
                 or run in a sandbox"
            ),
        }
    });
    share.or_else(|| {
        Some(match forked(manifest) {
            0 => return None,
            1 => format!(
                "a process that {program} forked ran on after {program} exited, and was not recorded"
            ),
            n => format!(
                "{n} processes that {program} forked ran on after {program} exited, and were not recorded"
            ),
        })
    })
}

/// Returns the option with which `mallard record` records the other processes. `None` if the option
/// was given.
pub fn follow(manifest: &Manifest) -> Option<&'static str> {
    let has = |what: &str| manifest.notes.follow.iter().flatten().any(|of| of == what);
    match (has("fork"), has("exec")) {
        (true, true) => None,
        (false, false) if unrecorded(manifest).is_none() => Some("--follow fork"),
        _ => Some("--follow fork,exec"),
    }
}

/// Returns how many processes that the program had forked continued after its end, and were not
/// recorded.
fn forked(manifest: &Manifest) -> u64 {
    manifest.notes.forked.unwrap_or(0)
}

/// Returns how much of the program's CPU time was the time of recording, as a sentence without its
/// end.
pub fn cost(recording_ns: f64, all_ns: f64) -> String {
    let all = time(all_ns);
    // The time of recording is estimated from a part of the events, so it may seem larger than the
    // CPU time.
    match recording_ns > RECORDING_MAX * all_ns {
        true => format!("recording took nearly all of the program's {all} of CPU time"),
        false => {
            format!("recording took {} of the program's {all} of CPU time", time(recording_ns))
        }
    }
}

/// Returns the option that makes a server do the recorded work again. Empty for other programs.
fn load(manifest: &Manifest) -> String {
    manifest.notes.load.as_ref().map_or(String::new(), |load| format!("--load {} ", quoted(load)))
}

/// Returns the share of the CPU time that belongs to processes that were not recorded. `None` if
/// the share is small.
pub fn unrecorded(manifest: &Manifest) -> Option<f64> {
    let share = manifest.notes.unrecorded_ns? as f64 / manifest.notes.cpu_ns()?.max(1.0);
    (share > MISSING_MAX).then_some(share.min(1.0))
}

/// Returns a shell command that runs `begin` with the recorded program, arguments and environment.
fn command(manifest: &Manifest, begin: &str) -> String {
    let set = assignments(recorded::variables(manifest));
    let words = recorded::command_line(manifest).unwrap_or("PROG ARGS".to_string());
    format!("{set}{begin} {words}")
}

/// Returns the CPU time of all frees. If no free was timed, because the program has so few, a free
/// counts as much as an allocation.
fn free_ns(manifest: &Manifest, each: f64) -> f64 {
    let frees = (manifest.counts.frees + manifest.counts.unknown_frees) as f64;
    if each > 0.0 {
        return each * frees;
    }
    let allocations = manifest.counts.allocations.max(1) as f64;
    manifest.totals.sites.call_ns as f64 / allocations * frees
}

#[cfg(test)]
mod tests {
    use super::*;
    use mallard_trace::RunNotes;
    use serde_json::{json, Value};

    /// Returns the manifest of a usual run, with additional notes.
    fn with(notes: Value) -> Manifest {
        let mut of = manifest(60_000, 0.0, 1.0, 1.0);
        let mut all = json!(of.notes);
        all.as_object_mut().unwrap().extend(notes.as_object().unwrap().clone());
        of.notes = serde_json::from_value(all).unwrap();
        of
    }

    /// Returns a manifest of 1,000 events and a CPU time of 1 ms, with some costs in ns.
    fn manifest(calls: i64, recording: f64, per_free: f64, per_fault: f64) -> Manifest {
        let notes = json!({"user_ns": 700_000, "system_ns": 300_000, "recording_ns_per_event": recording,
            "ns_per_free": per_free, "minor_faults": 10, "ns_per_fault": per_fault});
        let text = json!({"format": Manifest::format(), "schema": 1, "tool": "", "stream": {
            "version": 1, "clock": 1, "clock_hz": 1, "start_unix": 0, "pid": 1, "sample_bytes": 0,
            "records": 0, "ending": "complete"}, "losses": {}, "counts": {}, "repairs": {},
            "totals": {}, "tables": [], "notes": notes});
        let mut of: Manifest = serde_json::from_value(text).unwrap();
        of.counts.events = 1000;
        of.counts.allocations = 600;
        of.counts.frees = 390;
        of.counts.unknown_frees = 10;
        of.totals.sites.call_ns = calls;
        of.totals.sites.allocs = 600;
        of.totals.sites.timed_calls = 37;
        of
    }

    #[test]
    fn cpu_shares_of_calls_and_page_faults_refer_to_the_time_without_recording() {
        // Of 1 ms, recording takes 1.2 times 1/6 ms. Calls take 60 + 400 * 0.25 us, and faults 10 *
        // 8 us.
        let of = manifest(60_000, 1000.0 / 6.0, 250.0, 8000.0);
        let found = shares(&of, None).unwrap();
        assert!((found.calls - 0.2).abs() < 1e-12 && (found.faults - 0.1).abs() < 1e-12);
        assert!((bound(&of).unwrap() - 0.3).abs() < 1e-12);
        // If the program is known to take 0.5 ms, the shares are relative to 0.5 ms.
        let known = shares(&of, Some(5e5)).unwrap();
        assert!((known.calls - 0.32).abs() < 1e-12 && (known.faults - 0.16).abs() < 1e-12);
        // If no free was timed, a free costs as much as an allocation, which is 60 us / 600.
        let untimed = shares(&manifest(60_000, 1000.0 / 6.0, 0.0, 8000.0), None).unwrap();
        assert!((untimed.calls - 0.125).abs() < 1e-12, "{untimed:?}");
    }

    #[test]
    fn implausible_cpu_shares_of_calls_and_page_faults_are_treated_as_unknown() {
        let costs = [0.0, 1.0, 300.0, 2_000.0, 1e5, 1e9];
        for calls in [0, 1, 60_000, 5_000_000, 1_000_000_000_000] {
            for (recording, per_free) in costs.iter().flat_map(|&a| costs.map(|b| (a, b))) {
                for per_fault in costs {
                    let of = manifest(calls, recording, per_free, per_fault);
                    let found = shares(&of, None);
                    let is_sane = |of: &Shares| of.calls >= 0.0 && of.calls + of.faults <= 0.9;
                    assert!(found.as_ref().map_or(true, is_sane), "{found:?} of {:?}", of.notes);
                    assert_eq!(unknown(&of).is_some(), found.is_err());
                }
            }
        }
    }

    #[test]
    fn page_faults_of_the_recorder_are_not_counted_as_page_faults_of_blocks() {
        let mut of = manifest(60_000, 0.0, 250.0, 8000.0);
        assert!((shares(&of, None).unwrap().faults - 0.08).abs() < 1e-12);
        of.memory.peak.parts.recorder = 6 * PAGE_BYTES as i64;
        assert!((shares(&of, None).unwrap().faults - 0.032).abs() < 1e-12);
        // The memory is sampled every 10 ms. At the end, the command knows how many pages the ring
        // has used.
        of.notes.ring_pages = Some(9);
        assert!((shares(&of, None).unwrap().faults - 0.008).abs() < 1e-12);
        of.notes.ring_pages = Some(5);
        of.totals.sites.allocs = 3;
        assert!((shares(&of, None).unwrap().faults - 0.024).abs() < 1e-12);
    }

    #[test]
    fn cpu_shares_are_unknown_if_recording_took_most_of_the_time() {
        // Recording takes 1.2 * 0.7 ms of 1 ms, and calls seem to take exactly the rest.
        let of = manifest(60_000, 700.0, 250.0, 0.0);
        assert!(unknown(&of).unwrap().contains("recording slowed the calls down"));
        assert_eq!(bound(&of), None);
        // A CPU time that was measured without the recorder is used, unless it is too small as
        // well.
        assert_eq!(shares(&of, Some(160_000.0)).unwrap().calls, 1.0);
        assert_eq!(shares(&of, Some(1.6e6)).unwrap().calls, 0.1);
        assert!(shares(&of, Some(150_000.0)).is_err());
    }

    #[test]
    fn a_partial_recording_has_no_cpu_shares_and_says_which_part_was_recorded() {
        let part_with = |name: &str, note: Value| {
            let of = with(json!({ name: note }));
            assert_eq!(bound(&of).is_none(), part(&of).is_some());
            part(&of).unwrap_or_default()
        };
        assert!(
            part_with("allocates_by", json!("_rjem_malloc")).contains("allocator (_rjem_malloc)")
        );
        assert_eq!(part_with("allocates_by", json!(null)), "");
        assert_eq!(part_with("window", json!("0.1s..0.3s")).matches("0.1s..0.3s").count(), 1);
        assert!(part_with("stopped", json!("the stream had 9 B")).contains("stopped when"));
        // The CPU time is 1 ms.
        assert_eq!(part_with("unrecorded_ns", json!(20_000)), "");
        assert!(part_with("unrecorded_ns", json!(30_000)).contains("3.0 % of the CPU time"));
        let of = with(json!({"unrecorded_ns": 1_000_000, "arguments": ["sh", "a b"],
            "environment": {"MALLOC_X": "1", "LD_PRELOAD": "x.so"}}));
        let command = "MALLOC_X=1 mallard record --follow fork,exec -- sh 'a b'";
        assert!(part(&of).unwrap().ends_with(command), "{:?}", part(&of));
        let mut of = manifest(60_000, 0.0, 1.0, 1.0);
        of.stream.ending = "cut".to_string();
        assert_eq!(part(&of).unwrap(), "the recording is not complete (cut)");
        assert_eq!(bound(&of), None);
        let mut of = manifest(60_000, 0.0, 1.0, 1.0);
        of.losses.full = 10;
        assert_eq!(part(&of), None);
        of.losses.full = 1000;
        assert!(part(&of).unwrap().contains("1,000 events are missing") && bound(&of).is_none());
    }

    #[test]
    fn unrecorded_processes_are_named_with_the_option_that_records_them() {
        let part_with = |notes: serde_json::Value| {
            let of = with(notes);
            assert_eq!(bound(&of).is_none(), part(&of).is_some());
            part(&of).unwrap_or_default()
        };
        assert_eq!(part_with(json!({"unrecorded_ns": 0, "forked": 0})), "");
        let forked = part_with(json!({"unrecorded_ns": 0, "forked": 1}));
        assert!(forked.starts_with("a process that it forked ran on after it exited"), "{forked}");
        assert!(forked.ends_with(": mallard record --follow fork -- PROG ARGS"), "{forked}");
        let both = part_with(json!({"unrecorded_ns": 0, "forked": 2, "follow": ["exec"]}));
        assert!(both.starts_with("2 processes") && both.contains("fork,exec --"), "{both}");
        let known = part_with(json!({"unrecorded_ns": 500_000, "follow": ["fork", "exec"]}));
        assert!(known.contains("50 %") && !known.contains("mallard"), "{known}");
    }

    #[test]
    fn the_estimated_time_of_recording_never_exceeds_the_run_time() {
        let of = cost(12e6, 48e6);
        assert_eq!(of, "recording took 12 ms of the program's 48 ms of CPU time");
        let of = cost(53e6, 48e6);
        assert_eq!(of, "recording took nearly all of the program's 48 ms of CPU time");
    }

    #[test]
    fn untimed_calls_have_no_cpu_share() {
        let mut of = manifest(60_000, 0.0, 1.0, 1.0);
        of.totals.sites.allocs = 16_000;
        of.totals.sites.timed_calls = 1000;
        assert!(bound(&of).is_some());
        of.totals.sites.timed_calls = 0;
        assert!(unknown(&of).unwrap().contains("too few calls were timed"));
        assert_eq!(bound(&of), None);
        // Sampled traces and imported traces have no such calls.
        of.stream.sample_bytes = 4096;
        assert_eq!(unknown(&of), None);
        of.stream.sample_bytes = 0;
        of.notes = RunNotes::default();
        assert_eq!(unknown(&of), None);
    }

    #[test]
    fn sampled_recordings_and_runs_without_cpu_time_have_no_cpu_shares() {
        let mut of = manifest(60_000, 0.0, 1.0, 1.0);
        of.stream.sample_bytes = 4096;
        assert_eq!(shares(&of, None), Err(None));
        let mut of = manifest(60_000, 0.0, 1.0, 1.0);
        (of.notes.user_ns, of.notes.system_ns) = (Some(0), Some(0));
        assert_eq!(bound(&of), None);
        of.notes.user_ns = None;
        assert_eq!(bound(&of), None);
    }
}

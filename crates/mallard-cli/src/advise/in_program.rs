//! Measures plans in runs of the program, with the plans applied.
//!
//! `libmallard-plan.so` allocates the blocks of a plan from local allocators in the unchanged
//! program. So a run shows effects that a replay cannot show, such as destructors and accesses to
//! the blocks. Two further savings need a change of the source. Inline allocator code avoids calls,
//! and wink-out skips the frees and destructors at the end of a region. Both savings are estimated
//! as shares of the CPU time.

use super::budget::Budget;
use super::candidate::{dropped, By, Candidate, Dropped, InProgram, Kind};
use super::measured::Measured;
use super::race::Kept;
use super::ranking::Entry;
use super::reason::Reason;
use super::runs::{bare, Ran, Runs, WithPlan};
use super::second_recording;
use mallard_measure::clock;
use mallard_measure::mallocs::applied::{AppliedPlan, Applies};
use mallard_measure::mallocs::Allocator;
use mallard_measure::rounds::subject::{Subject, Turn};
use mallard_measure::verdict::{Judgement, Verdict, Why};
use mallard_trace::plan::{self, Rules};
use mallard_trace::replay;
use mallard_trace::Trace;
use serde::Deserialize;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The minimum and maximum time that inline allocator code saves for each block of a plan, in
/// addition to the saving of the plan, because no library is called. The unit is the time of a
/// malloc/free pair in glibc on this machine. Through the library, a pair takes 61 instructions
/// with a pool, and 78 to 106 with an arena (tests/plan/instructions.py). A pair takes some 15
/// instructions inline, and 139 in glibc. On a machine where glibc takes 20 ns for a pair, inline
/// code saved the following times for each block in programs of tests/known. With pools, `sessions`
/// saved 1.5 ns and `lru_cache` 6 ns. With arenas, `lua` saved 4.5 ns, and `formulas` and
/// `requests` saved 11 to 13 ns. A program with a library written in C saves less, because the
/// library calls its arena, too.
const CALLS: (f64, f64) = (0.05, 0.6);
/// The same minimum and maximum for a plan that was compared with its control. The control makes
/// the same decisions about blocks, which take 23 to 62 of these instructions. So the comparison
/// does not measure the cost of the decisions, and inline code cannot save that cost again.
const CALLS_BESIDE_CONTROL: (f64, f64) = (0.05, 0.35);
const CALLS_OF_POOLS: (f64, f64) = (0.05, 0.35);
/// The time of a malloc and a free is measured in `ROUNDS` rounds of `PAIRS` pairs, and the fastest
/// round counts.
const ROUNDS: usize = 5;
const PAIRS: u32 = 20_000;
/// A run in which the library reads the clock takes at most this many times as long as a run
/// without the clock.
const TIMED_RUN: f64 = 2.5;
/// The default of `Report::free_ps`, in picoseconds, for a report without this member. The
/// library's own work for each free at the end of a region is assumed to take this time.
const TIMED_FREE_PS: u64 = 4000;

/// A plan that can be applied in the program. The plan stands for the changes of the source in
/// `entries`, which differ only in wink-out.
pub struct Applicable {
    entries: Vec<Entry>,
    file: PathBuf,
    applied: AppliedPlan,
}

impl Applicable {
    /// Returns the minimum and maximum time, in ns, that inline allocator code saves for each
    /// block.
    fn call_ns(&self, has_control: bool) -> (f64, f64) {
        let (least, most) = self.calls(has_control);
        let pair = ns_of_pair();
        (least * pair, most * pair)
    }

    fn calls(&self, has_control: bool) -> (f64, f64) {
        let plans = self.entries.iter().filter_map(|entry| entry.proposal.as_ref());
        let mut rules = plans.flat_map(|proposal| &proposal.plan.rules);
        match rules.all(|rule| rule.strategy.allocator() == replay::Allocator::Multipool) {
            true => CALLS_OF_POOLS,
            false if has_control => CALLS_BESIDE_CONTROL,
            false => CALLS,
        }
    }
}

/// The plans that can be applied, with their files in a temporary directory.
pub struct Plans {
    /// The plans that cannot be applied.
    pub dropped: Vec<Dropped>,
    all: Vec<Applicable>,
    own: Allocator,
    bare: Subject,
    folder: tempfile::TempDir,
}

impl Plans {
    /// Compiles the plans. Returns `None` if the library that applies plans is not installed, or if
    /// the program was not found.
    pub fn compile(trace: &Trace, groups: Vec<Vec<Entry>>, runs: &Runs) -> Option<Plans> {
        let (own, bare) = bare(runs).ok()?;
        let folder = tempfile::Builder::new().prefix("mallard-advise-").tempdir().ok()?;
        let mut plans = Plans { dropped: Vec::new(), all: Vec::new(), own, bare, folder };
        for (number, entries) in groups.into_iter().enumerate() {
            let file = plans.folder.path().join(format!("{number}.plan"));
            let applied = AppliedPlan::find(&file).ok()?;
            match compiled(trace, &entries, &file) {
                Ok(()) => plans.all.push(Applicable { entries, file, applied }),
                Err(why) => {
                    let lost = |of: Entry| {
                        let region = of.region();
                        dropped(of.name, of.kind, region, Reason::NotApplied(why.clone()))
                    };
                    plans.dropped.extend(entries.into_iter().map(lost));
                }
            }
        }
        Some(plans)
    }

    /// Returns how to run the program with each plan, and with the control of each plan.
    pub fn subjects(&self) -> Vec<WithPlan> {
        let both = |of: &Applicable| WithPlan {
            serves: self.subject(of, Applies::Serves),
            control: self.subject(of, Applies::Control),
        };
        self.all.iter().map(both).collect()
    }

    fn subject(&self, of: &Applicable, applies: Applies) -> Subject {
        let mut variables = of.applied.variables(&self.own, &self.bare.path, applies);
        // Turn off the reports of the library, because they would change the output of the program.
        let off = ["MALLARD_STATS", "MALLARD_PLAN_REPORT", "MALLARD_PLAN_TIMES"];
        variables.extend(off.map(|name| (name.into(), None)));
        Subject {
            name: of.entries[0].name.to_string(),
            variables,
            library: Some(of.applied.library.clone()),
            ..self.bare.clone()
        }
    }

    /// Returns the time that a race reserves for runs with the library's clock, and if possible for
    /// the second recording that wink-out needs.
    pub fn time_after_race(&self, former: &Measured, budget: &Budget) -> Kept {
        let winks_out = self.all.iter().flat_map(|of| &of.entries).any(Entry::winks_out);
        let needed = second_recording::time_needed(former);
        let is_kept = winks_out && former.recordings < 2 && needed < budget.left() / 2;
        let run = former.facts.program.run_takes.unwrap_or_default();
        let always = run.mul_f64(TIMED_RUN) * self.all.len() as u32;
        Kept { always, if_possible: if is_kept { needed } else { Duration::ZERO } }
    }

    /// Makes candidates from the race results of all plans, one for each change of the source that
    /// a plan stands for.
    pub fn settle(
        self,
        former: &Measured,
        plans: Vec<Option<Ran>>,
        trace: &Trace,
        runs: &Runs,
        budget: &Budget,
    ) -> Measured {
        let mut found = Measured { dropped: self.dropped.clone(), ..former.nothing() };
        let mut ran: Vec<(&Applicable, Ran)> = Vec::new();
        let without_time = self.all.iter().skip(plans.len());
        found.dropped.extend(without_time.flat_map(|of| lost(of, &Reason::NoTimeToMeasure)));
        for (of, plan) in self.all.iter().zip(plans) {
            match plan {
                Some(plan) => ran.push((of, plan)),
                None => {
                    let why = "the program behaved differently with it".to_string();
                    found.dropped.extend(lost(of, &Reason::NotApplied(why)));
                }
            }
        }
        ran.sort_by(|(_, a), (_, b)| b.as_it_is.saving.total_cmp(&a.as_it_is.saving));
        for (number, (of, ran)) in ran.into_iter().enumerate() {
            // Without runs of the control, the saving of a plan includes the cost of deciding about
            // each block. A change of the source does not have this cost, so the change saves more
            // than the measured saving.
            let is_worse = ran.beside_control.is_none() && ran.as_it_is.verdict != Verdict::Gain;
            if is_worse {
                found.dropped.extend(lost(of, &Reason::NoGain(ran.as_it_is.saving)));
                continue;
            }
            let has_control = ran.beside_control.is_some();
            let cpu_ns = found.facts.program.cpu_ns.unwrap_or(f64::INFINITY);
            let parts = self.parts(of, runs, budget, (cpu_ns, of.call_ns(has_control)));
            let file = kept(trace, &of.file, number).unwrap_or_default();
            let cpu = ran.beside_control.as_ref().unwrap_or(&ran.as_it_is).clone();
            let as_it_is = ran.as_it_is.clone();
            let shown = InProgram { cpu, as_it_is, calls: parts.calls, ends: 0.0, file };
            for entry in &of.entries {
                let ends = if entry.winks_out() { parts.ends } else { 0.0 };
                let shown = InProgram { ends, ..shown.clone() };
                found.candidates.push(candidate(entry, shown, &ran, former.facts.min_gain));
            }
        }
        found
    }

    /// Runs the program once with the plan, and reads the report of the library. The unchanged
    /// program takes the CPU time `cpu_ns`.
    fn parts(
        &self,
        of: &Applicable,
        runs: &Runs,
        budget: &Budget,
        (cpu_ns, call_ns): (f64, (f64, f64)),
    ) -> Parts {
        let report = of.file.with_extension("report");
        let mut subject = self.subject(of, Applies::Serves);
        subject.variables.push(("MALLARD_PLAN_REPORT".into(), Some(report.clone().into())));
        subject.variables.push(("MALLARD_PLAN_TIMES".into(), Some("1".into())));
        let turn = Turn { padding: 0, limit: clock::limit(budget.left()), watches: false };
        // For a server, the CPU time is that of one piece of work, but the report covers all work.
        if runs.runner.load.is_some() {
            return Parts::default();
        }
        if runs.runner.run_once(&subject, turn).is_err() {
            return Parts::default();
        }
        let text = std::fs::read_to_string(report).unwrap_or_default();
        Parts::of(&text, cpu_ns, call_ns)
    }
}

fn candidate(entry: &Entry, in_program: InProgram, ran: &Ran, min_gain: f64) -> Candidate {
    let proposal = entry.proposal.as_ref();
    Candidate {
        name: entry.name.clone(),
        kind: Kind::Strategy,
        rule: proposal.map(|proposal| proposal.rule),
        plan: proposal.map(|proposal| proposal.plan.clone()),
        region: entry.region(),
        site: entry.site(),
        by: By::Plan,
        cpu: with_parts(&in_program, min_gain),
        expected: Some(in_program.expected()),
        predicted: None,
        margin: ran.margin,
        replayed: None,
        allocator: None,
        pages: None,
        memory_by: By::Try,
        memory: ran.memory.clone(),
        peak_bytes: ran.peak_bytes,
        memory_at_end: None,
        end_bytes: (0, 0),
        account: entry.account.clone(),
        in_program: Some(in_program),
    }
}

/// Judges the change of the source that a plan stands for. The saving of the change is in the
/// middle of the interval of expected savings. If the plan itself is a loss, the change is no gain,
/// even if inline code or wink-out would save much in addition.
fn with_parts(of: &InProgram, min_gain: f64) -> Judgement {
    let (low, high) = of.expected();
    let saving = (of.cpu.saving + (of.calls.0 + of.calls.1 + of.ends) / 2.0).min(1.0);
    let verdict = match of.cpu.verdict {
        Verdict::Loss => Verdict::Loss,
        // As for a malloc, too few runs decide nothing, however much the plan seems to save.
        verdict if matches!(of.cpu.why, Some(Why::TooFewRounds { .. })) => verdict,
        _ if low > 0.0 && saving >= min_gain => Verdict::Gain,
        Verdict::Gain => Verdict::Gain,
        Verdict::NoDifference if high >= min_gain => Verdict::NotMeasurable,
        verdict => verdict,
    };
    Judgement { saving, low, high, verdict, ..of.cpu.clone() }
}

fn lost<'a>(of: &'a Applicable, why: &'a Reason) -> impl Iterator<Item = Dropped> + 'a {
    of.entries.iter().map(|of| dropped(of.name.clone(), of.kind, of.region(), why.clone()))
}

/// Compiles one plan for a group of plans that differ only in wink-out. A plan that is applied in
/// the program never winks out.
fn compiled(trace: &Trace, entries: &[Entry], file: &Path) -> Result<(), String> {
    let proposal = entries.first().and_then(|entry| entry.proposal.as_ref());
    let Some(proposal) = proposal else { return Err("the plan has no rules".to_string()) };
    let mut rules = Rules::from(proposal.plan.clone());
    if proposal.rule == "object-pool" {
        rules.details.iter_mut().for_each(|details| details.is_pool = true);
    }
    let made = plan::make(trace, &rules).map_err(|error| error.what().to_string())?;
    std::fs::write(file, made.plan.to_bytes()).map_err(|error| error.to_string())
}

/// Copies a compiled plan into the directory of the trace, for `mallard run --plan`. Returns `None`
/// if the directory cannot be written.
fn kept(trace: &Trace, file: &Path, number: usize) -> Option<PathBuf> {
    let kept = trace.folder().join(format!("advice-{}.plan", number + 1));
    std::fs::copy(file, &kept).ok()?;
    Some(kept)
}

/// Measures the time of a malloc and a free on this machine, in nanoseconds, for a block in the
/// thread cache.
fn ns_of_pair() -> f64 {
    let round = |_| {
        let begin = Instant::now();
        for _ in 0..PAIRS {
            drop(black_box(Box::new([0u8; 48])));
        }
        begin.elapsed()
    };
    let least = (0..ROUNDS).map(round).min().unwrap_or_default();
    least.as_nanos() as f64 / f64::from(PAIRS)
}

/// Shares of the CPU time that only a change of the source can save.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Parts {
    calls: (f64, f64),
    ends: f64,
}

/// A line of the report that the plan library writes, which describes one process.
#[derive(Deserialize)]
struct Report {
    rules: Vec<ReportedRule>,
    /// The time in ns that the main thread ran. The next field is the time in ns that the main
    /// thread waited for a CPU that other threads used.
    #[serde(default)]
    ran_ns: u64,
    #[serde(default)]
    waited_ns: u64,
    /// The library's own time for a free, in ps. The next field is the library's additional time
    /// for a sequence of frees.
    #[serde(default = "timed_free_ps")]
    free_ps: u64,
    #[serde(default)]
    sequence_ps: u64,
}

fn timed_free_ps() -> u64 {
    TIMED_FREE_PS
}

impl Report {
    /// Returns the number of blocks of all rules.
    fn blocks(&self) -> f64 {
        self.rules.iter().map(|of| of.blocks as f64).sum()
    }

    /// Returns the CPU time for the ends of regions. The library's clock also runs while the thread
    /// waits for a CPU, so on a busy machine only a part of the measured time is CPU time.
    fn ends_ns(&self) -> f64 {
        let (ran, waited) = (self.ran_ns as f64, self.waited_ns as f64);
        let share = if ran > 0.0 { ran / (ran + waited) } else { 1.0 };
        let own = |of: &ReportedRule| {
            (of.end_frees * self.free_ps + of.end_sequences * self.sequence_ps) as f64 / 1000.0
        };
        let of_rule = |of: &ReportedRule| of.end_ns as f64 * share - own(of);
        self.rules.iter().map(of_rule).sum()
    }
}

#[derive(Deserialize)]
struct ReportedRule {
    blocks: u64,
    #[serde(default)]
    end_ns: u64,
    #[serde(default)]
    end_frees: u64,
    #[serde(default)]
    end_sequences: u64,
}

impl Parts {
    /// Reads a report, which has a line of JSON for each process.
    fn of(report: &str, cpu_ns: f64, (least, most): (f64, f64)) -> Parts {
        let lines = report.lines().filter_map(|line| serde_json::from_str(line).ok());
        let reports: Vec<Report> = lines.collect();
        let blocks: f64 = reports.iter().map(Report::blocks).sum();
        let ends: f64 = reports.iter().map(Report::ends_ns).sum();
        let share = |ns: f64| (ns.max(0.0) / cpu_ns.max(1.0)).min(1.0);
        Parts { calls: (share(blocks * least), share(blocks * most)), ends: share(ends) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_in_a_report_become_shares_of_the_cpu_time() {
        let line =
            r#"{"process":1,"rules":[{"name":"a","blocks":1000,"end_ns":50000,"end_frees":500}]}"#;
        let parts = Parts::of(&format!("{line}\nbroken\n{line}\n"), 100_000.0, (2.0, 6.0));
        assert_eq!(parts, Parts { calls: (0.04, 0.12), ends: 0.96 });
        assert_eq!(Parts::of("", 100_000.0, (2.0, 6.0)), Parts::default());
        // In this report, the thread waited for a CPU as long as it ran.
        let waited = line.replace("}]}", r#"}],"ran_ns":70,"waited_ns":70}"#);
        assert_eq!(Parts::of(&waited, 100_000.0, (2.0, 6.0)).ends, 0.23);
        // The library reports its own time: 10 ns for each of 500 frees, and 100 ns for each of
        // the 7 measured sequences of frees.
        let measured =
            line.replace("}]}", r#","end_sequences":7}],"free_ps":10000,"sequence_ps":100000}"#);
        assert!((Parts::of(&measured, 100_000.0, (2.0, 6.0)).ends - 0.443).abs() < 1e-9);
    }

    #[test]
    fn a_measured_malloc_and_free_pair_takes_between_1_nanosecond_and_1_millisecond() {
        assert!((1.0..1e6).contains(&ns_of_pair()));
    }

    #[test]
    fn too_few_runs_under_a_plan_decide_nothing() {
        let judged =
            |verdict, why| Judgement { saving: 0.12, low: 0.1, high: 0.14, verdict, why, p: 0.01 };
        let of = |cpu: Judgement| {
            let calls = (0.0, 0.01);
            with_parts(
                &InProgram { as_it_is: cpu.clone(), cpu, calls, ends: 0.0, file: PathBuf::new() },
                0.02,
            )
        };
        let few = Some(Why::TooFewRounds { needed: 6 });
        assert_eq!(of(judged(Verdict::NotMeasurable, few)).verdict, Verdict::NotMeasurable);
        assert_eq!(
            of(judged(Verdict::NotMeasurable, Some(Why::IntervalTooWide))).verdict,
            Verdict::Gain
        );
        assert_eq!(of(judged(Verdict::NoDifference, None)).verdict, Verdict::Gain);
    }
}

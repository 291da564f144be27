//! Plays the proposed plans and the mallocs in turns.

use super::again;
use super::budget::Budget;
use super::evidence::{Account, By, Candidate, Evidence, Kind, Proposal};
use super::ranking::{prefer_plan, rank, Entry, Needed, Piloted};
use super::screen::{dropped, is_memory_at_stake, why_no_malloc, why_not};
use crate::allocators::{self, Allocator};
use crate::error::Failure;
use crate::output::units::{bytes, percent, plural, time};
use crate::replay::{recorded_share, Accounted, Pilot, Plays};
use crate::turns::timing::Timing;
use crate::verdict::fresh::blocks_needed;
use crate::verdict::margin;
use mallard_trace::Trace;
use std::time::Duration;

/// The greatest number of candidates that are measured together.
const MEASURED_MAX: usize = 8;
/// The largest shares of the remaining budget for single plays, and for compiling plans.
const PILOT_SHARE: f64 = 0.2;
const ACCOUNT_SHARE: f64 = 0.3;
/// The share of the remaining budget for the measurement: if the program itself runs afterwards, and if
/// it does not run.
pub const SHARE_BEFORE_RUNS: f64 = 0.6;
const SHARE_ALONE: f64 = 0.9;
/// The part of a measurement that comes before the fresh plays (see `verdict::fresh`).
const FIRST_PART: f64 = 0.75;
/// A second recording may take at most the remaining time divided by this number.
pub const RECORDING_PART: u32 = 3;
/// The fewest blocks of runs that the budget must allow: with fewer, intervals are too wide.
const BLOCKS: usize = 10;
/// The number of plays in the smallest block: see `columns`.
const COLUMNS_MIN: usize = 4;
/// A local allocator is not played if it would hold more than BLOW_UP times the peak of the program's
/// bytes in use, and more than BLOW_UP_BYTES.
const BLOW_UP: f64 = 2.0;
const BLOW_UP_BYTES: u64 = 16 << 20;

/// Why a candidate is not measured if the user interrupts the command before its first play.
const INTERRUPTED: &str = "the command was interrupted before it was replayed";

/// The state of a measurement.
struct Measuring<'a, 'b> {
    evidence: &'a mut Evidence,
    budget: &'a Budget,
    timing: &'a Timing,
    plays: Plays<'b>,
    entries: Vec<Entry>,
}

/// Plays the plans of the rules and all mallocs, and adds the results to the evidence. A candidate that
/// cannot have a gain is not played. Returns the names of mallocs for which there is no time to play, so
/// that only runs of the program can judge them.
pub fn measure(
    trace: &Trace,
    evidence: &mut Evidence,
    proposals: Vec<Proposal>,
    budget: &Budget,
    timing: &Timing,
) -> Result<Vec<String>, Failure> {
    let proposals = screen(evidence, proposals);
    let mallocs = mallocs(evidence);
    if proposals.is_empty() && mallocs.is_empty() {
        return Ok(Vec::new());
    }
    let unplayed = || {
        let names = mallocs.iter().map(|malloc| malloc.name.clone());
        Ok(names.filter(|name| kind_of(name) == Kind::Malloc).collect())
    };
    if evidence.is_mostly_missing {
        // A replay would tell nothing about the programs that were not recorded.
        return unplayed();
    }
    match recorded_share(trace)? {
        Some((_, share, _)) if share >= 1.0 => {}
        Some((_, share, _)) => {
            evidence.part = Some(share);
            evidence.notes.push(format!(
                "a saving by replay is a share of the CPU time of the recorded part of the run, which has \
                 about {} of the CPU time",
                percent(share)
            ));
        }
        None => {
            let what =
                "nothing was replayed: how much of the CPU time the recorded part of the run took \
                        is not known well enough";
            evidence.undecided.push(what.to_string());
            return unplayed();
        }
    }
    let step = budget.step("compiling the recorded calls");
    let mut plays = match Plays::begin(trace, false, true) {
        Ok(plays) => plays,
        Err(failure) => {
            // The trace cannot be replayed: that is evidence, not an error of this command.
            let what = format!("nothing was replayed: {}; {}", failure.what(), failure.help());
            evidence.undecided.push(what);
            return unplayed();
        }
    };
    drop(step);
    plays.cpu = evidence.program.cpu_measured;
    let mut measuring = Measuring { evidence, budget, timing, plays, entries: Vec::new() };
    if measuring.is_too_long() {
        let why = "the budget is too small to play the recorded calls";
        let plans = proposals.iter().map(|of| (&of.plan.name, Kind::Strategy, of.region));
        let settings = mallocs.iter().map(|of| (&of.name, kind_of(&of.name), None));
        // The program itself may still run under the mallocs.
        let all = plans.chain(settings).filter(|(_, kind, _)| *kind != Kind::Malloc);
        let all = all.map(|(name, kind, region)| dropped(name, kind, region, why));
        measuring.evidence.dropped.extend(all);
        return unplayed();
    }
    measuring.add_plans(proposals);
    measuring.add_mallocs(&mallocs);
    let (kept, unplayed_best) = measuring.choose()?;
    if kept.is_empty() {
        return unplayed();
    }
    measuring.run(kept)?;
    Ok(unplayed_best)
}

/// Drops proposals that cannot reach the least gain, and duplicates.
fn screen(evidence: &mut Evidence, proposals: Vec<Proposal>) -> Vec<Proposal> {
    let mut kept: Vec<Proposal> = Vec::new();
    for proposal in proposals {
        let is_double = kept.iter().any(|other| other.plan.rules == proposal.plan.rules);
        let name = proposal.plan.name.clone();
        // A site has no bound of its own, so the bound of the whole program counts.
        match why_not(evidence, proposal.region) {
            _ if is_double => {}
            Some(why) => {
                let of = dropped(&name, Kind::Strategy, proposal.region, why);
                evidence.dropped.push(of);
            }
            None => kept.push(proposal),
        }
    }
    kept
}

/// The mallocs to play: all that are installed, or none if no malloc can have a gain.
fn mallocs(evidence: &mut Evidence) -> Vec<Allocator> {
    let own = &evidence.program.malloc;
    let (mut found, missing) = allocators::installed();
    found.retain(|allocator| allocator.name != *own);
    if own != "glibc" {
        found.retain(|allocator| kind_of(&allocator.name) == Kind::Malloc);
    }
    if let Some(why) = why_no_malloc(evidence) {
        let all = found.iter().map(|of| dropped(&of.name, kind_of(&of.name), None, why.clone()));
        evidence.dropped.extend(all);
        return Vec::new();
    }
    evidence.notes.extend(allocators::note_of_missing(&missing));
    found
}

/// Whether a name in the list of mallocs means another malloc or a setting.
pub fn kind_of(name: &str) -> Kind {
    let entry = allocators::list().iter().find(|entry| entry.name == name);
    match entry.map(|entry| entry.kind) {
        Some(allocators::Kind::Tunable) => Kind::Variable,
        _ => Kind::Malloc,
    }
}

impl Measuring<'_, '_> {
    /// Whether the trace is too long for the budget: compiling and playing the trace once took too
    /// large a part of the remaining time.
    fn is_too_long(&mut self) -> bool {
        let (first, left) = (self.plays.first, self.budget.left());
        let is_too_long = first > left / 2;
        if is_too_long {
            let what = format!(
                "whether another allocator saves time: compiling and playing the recorded calls \
                 once takes {}, and a recording of a part of the run (mallard record --window) less",
                time(first.as_nanos() as f64)
            );
            self.lacks_time_to_measure(what, first, COLUMNS_MIN);
        }
        is_too_long
    }

    fn add_plans(&mut self, proposals: Vec<Proposal>) {
        let limit = self.budget.left().mul_f64(ACCOUNT_SHARE);
        let begin = self.budget.taken();
        let all = proposals.len() as u32;
        let mut left_out: Vec<String> = Vec::new();
        for proposal in proposals {
            let name = proposal.plan.name.clone();
            let region = proposal.region;
            let mut drop = |why: String| {
                self.evidence.dropped.push(dropped(&name, Kind::Strategy, region, why));
            };
            if self.budget.is_interrupted() {
                drop(INTERRUPTED.to_string());
                continue;
            }
            if self.budget.taken() - begin + self.plays.first > limit {
                drop("the budget is too small to prepare its replay".to_string());
                left_out.push(name);
                continue;
            }
            let _step = self.budget.step(&format!("preparing the replay of {name}"));
            match self.plays.plan(&name, &proposal.plan) {
                // The plan has the name of its first rule, so the message need not name this rule.
                Err(failure) => {
                    let place = format!("{name}: rule 1: ");
                    drop(failure.what().trim_start_matches(&place).to_string());
                }
                Ok((_, accounted))
                    if proposal.plan.rules.len() == 1 && accounted.rule.blocks == 0 =>
                {
                    drop("it applies to no block of the recording".to_string());
                }
                Ok((number, accounted)) => {
                    let (account, live) = (account_of(&accounted), self.plays.live_peak());
                    if let Some(why) = blow_up(&account, live) {
                        drop(why);
                        continue;
                    }
                    self.entries.push(Entry {
                        number,
                        name,
                        kind: Kind::Strategy,
                        proposal: Some(proposal),
                        account: Some(account),
                    });
                }
            }
        }
        if let Some(first) = left_out.first() {
            self.budget.miss(self.plays.first * left_out.len() as u32);
            let plans = plural(left_out.len() as u64, "plan");
            let what = format!(
                "what {plans} such as {first} would save: the budget is too small to replay all"
            );
            let all = (self.plays.first * all).mul_f64(1.0 / ACCOUNT_SHARE);
            self.evidence.lacks_budget(what, begin + all);
        }
    }

    fn add_mallocs(&mut self, mallocs: &[Allocator]) {
        for malloc in mallocs {
            let number = self.plays.malloc(malloc);
            let name = malloc.name.clone();
            let kind = kind_of(&name);
            self.entries.push(Entry { number, name, kind, proposal: None, account: None });
        }
    }

    /// The number of plays in a block: the base, its control and the player alone, then one play for
    /// each entry, and for each plan also the player alone.
    fn columns(entries: &[&Entry]) -> usize {
        3 + entries.iter().map(|e| if e.kind == Kind::Strategy { 2 } else { 1 }).sum::<usize>()
    }

    /// The time for measuring some entries.
    fn measurement(&self, entries: &[Entry]) -> Duration {
        let runs = self.evidence.program.cannot_run.is_none()
            && entries.iter().any(|entry| entry.kind != Kind::Strategy);
        let share = if runs { SHARE_BEFORE_RUNS } else { SHARE_ALONE };
        (self.budget.left() - self.kept_for_recording(entries)).mul_f64(share)
    }

    /// The time to keep for a second recording, which wink-out needs. Zero if the recording would take
    /// more than a third of the remaining time.
    fn kept_for_recording(&self, entries: &[Entry]) -> Duration {
        let can_run = self.evidence.program.cannot_run.is_none() && self.evidence.recordings < 2;
        let needed = again::time_needed(self.evidence);
        let is_short = needed < self.budget.left() / RECORDING_PART;
        match can_run && entries.iter().any(Entry::winks_out) && is_short {
            true => needed,
            false => Duration::ZERO,
        }
    }

    /// Plays each candidate once, and chooses the most promising ones: as many as the budget allows. Also
    /// returns the names of mallocs that only runs of the program will judge.
    fn choose(&mut self) -> Result<(Vec<Piloted>, Vec<String>), Failure> {
        let entries = std::mem::take(&mut self.entries);
        if entries.is_empty() || self.budget.is_interrupted() {
            entries.into_iter().for_each(|entry| cut_short(self.evidence, entry, None));
            return Ok(Default::default());
        }
        let step = self.budget.step("playing each candidate once");
        let numbers: Vec<usize> = entries.iter().map(|entry| entry.number).collect();
        let limit = self.budget.left().mul_f64(PILOT_SHARE);
        let pilot = self.plays.pilot(&numbers, &self.budget.runner, limit)?;
        drop(step);
        let time = self.measurement(&entries).mul_f64(FIRST_PART);
        let kept = self.kept_for_recording(&entries);
        let needed = self.needed(&entries);
        let piloted = entries.into_iter().zip(&pilot.savings);
        let piloted = piloted.map(|(entry, play)| Piloted::new(entry, *play)).collect();
        let mut ranked = rank(piloted, needed);
        if self.budget.is_interrupted() {
            ranked.into_iter().for_each(|of| cut_short(self.evidence, of.entry, of.saving));
            return Ok(Default::default());
        }
        let is_enough = |count: &usize| {
            let some: Vec<&Entry> = ranked.iter().take(*count).map(|of| &of.entry).collect();
            let blocks = 1 + blocks_needed(*count).max(BLOCKS);
            pilot.play * (Self::columns(&some) * blocks) as u32 <= time
        };
        let most = ranked.len().min(MEASURED_MAX);
        let count = (1..=most).rev().find(is_enough).unwrap_or(0);
        if let (0, Some(first)) = (count, ranked.first()) {
            self.budget.miss(kept);
            self.no_room(&pilot, Self::columns(&[&first.entry]));
        }
        let can_run = self.evidence.program.cannot_run.is_none();
        let unplayed = match count == 1 && can_run {
            true => prefer_plan(&mut ranked, self.evidence.min_gain),
            false => Vec::new(),
        };
        let mut kept = Vec::new();
        for (place, of) in ranked.into_iter().enumerate() {
            if place < count {
                kept.push(of);
                continue;
            }
            let Piloted { entry, saving, .. } = of;
            if unplayed.contains(&entry.name) {
                continue;
            }
            let why = match saving {
                Some(saving) if count > 0 => format!(
                    "in a single play it saved {}; the time was enough to measure {}, which came first",
                    percent(saving),
                    plural(count as u64, "change")
                ),
                Some(_) => "the budget is too small to measure it".to_string(),
                None => "it could not be played in time".to_string(),
            };
            self.evidence.dropped.push(dropped(&entry.name, entry.kind, entry.region(), why));
        }
        Ok((kept, unplayed))
    }

    /// What the first candidates need, if the program may not be recorded again, or holds much memory.
    fn needed(&self, entries: &[Entry]) -> Needed {
        let may_lack_recording = self.evidence.recordings < 2
            && entries.iter().any(Entry::winks_out)
            && self.kept_for_recording(entries).is_zero();
        let saves_memory = is_memory_at_stake(self.evidence);
        Needed { runs_destructors: may_lack_recording, saves_memory }
    }

    /// Notes that the budget is too small for a measurement.
    fn no_room(&mut self, pilot: &Pilot, columns: usize) {
        let what = format!(
            "whether another allocator saves time: one replay takes {}, and a measurement has at \
             least {BLOCKS} of each allocator",
            time(pilot.play.as_nanos() as f64)
        );
        self.lacks_time_to_measure(what, pilot.play, columns);
    }

    /// Notes that the budget is too small for a measurement with some plays in each block.
    fn lacks_time_to_measure(&mut self, what: String, play: Duration, columns: usize) {
        let least = play * (columns * (1 + BLOCKS)) as u32;
        let needed = self.budget.needed(least, FIRST_PART * SHARE_BEFORE_RUNS);
        self.evidence.lacks_budget(what, needed);
    }

    fn run(self, kept: Vec<Piloted>) -> Result<(), Failure> {
        let (kept, saved): (Vec<Entry>, Vec<Option<f64>>) =
            kept.into_iter().map(|of| (of.entry, of.saving)).unzip();
        let timing = self.timing.part(self.measurement(&kept));
        let numbers: Vec<usize> = kept.iter().map(|entry| entry.number).collect();
        let Measuring { evidence, budget, plays, .. } = self;
        let outcome = match budget.share(|| plays.measure(&numbers, &budget.runner, &timing)) {
            Ok(outcome) => outcome,
            Err(failure) => {
                evidence.undecided.push(format!(
                    "whether another allocator saves time: {}; {}",
                    failure.what(),
                    failure.help()
                ));
                return Ok(());
            }
        };
        evidence.interrupted |= outcome.interrupted;
        evidence.add_noise(&outcome.control);
        // A replay is of one process.
        let replayed = outcome.calls.filter(|_| evidence.program.processes <= 1);
        evidence.bound.add_replay(replayed);
        let margin = margin(&outcome.control, evidence.min_gain);
        for note in outcome.notes {
            if !evidence.notes.contains(&note) {
                evidence.notes.push(note);
            }
        }
        for ((entry, saved), played) in kept.into_iter().zip(saved).zip(outcome.played) {
            let (region, site) = (entry.region(), entry.site());
            match played {
                Err(None) if outcome.interrupted => cut_short(evidence, entry, saved),
                Err(how) => {
                    let why = how.unwrap_or_else(|| "it was not played".to_string());
                    evidence.dropped.push(dropped(&entry.name, entry.kind, region, why));
                }
                Ok(played) => evidence.candidates.push(Candidate {
                    name: entry.name,
                    kind: entry.kind,
                    rule: entry.proposal.as_ref().map(|proposal| proposal.rule),
                    plan: entry.proposal.map(|proposal| proposal.plan),
                    region,
                    site,
                    by: By::Replay,
                    cpu: played.cpu,
                    expected: played.expected,
                    predicted: None,
                    margin,
                    replayed: None,
                    allocator: Some(played.allocator),
                    pages: Some(played.pages),
                    memory_by: By::Replay,
                    memory: played.memory,
                    peak_bytes: played.peak_bytes,
                    memory_at_end: Some(played.memory_at_end),
                    end_bytes: played.end_bytes,
                    account: entry.account,
                }),
            }
        }
        Ok(())
    }
}

/// Keeps what a single play showed of a candidate, because the user has interrupted the command.
fn cut_short(evidence: &mut Evidence, entry: Entry, saved: Option<f64>) {
    let why = match saved {
        Some(saving) => format!(
            "in a single play it saved {}, and then the command was interrupted",
            percent(saving)
        ),
        None => INTERRUPTED.to_string(),
    };
    evidence.dropped.push(dropped(&entry.name, entry.kind, entry.region(), why));
    evidence.single_plays.extend(saved.map(|saving| (entry.name, saving)));
}

fn account_of(accounted: &Accounted) -> Account {
    let rule = &accounted.rule;
    Account {
        instances: rule.instances,
        blocks: rule.blocks,
        in_use_peak: rule.peaks.max(),
        held_peak: accounted.held_peak,
        escapes: rule.escapes,
        winked_out: rule.winked_out,
        is_shared: rule.is_shared,
    }
}

/// Why a plan takes too much memory to be played. `None` if the plan can be played. `live_peak` is the
/// peak of the program's bytes in use.
fn blow_up(account: &Account, live_peak: u64) -> Option<String> {
    let limit = (live_peak as f64 * BLOW_UP) as u64;
    (account.held_peak > limit.max(BLOW_UP_BYTES)).then(|| {
        format!(
            "it would hold {}, and the program has at most {} in use",
            bytes(account.held_peak),
            bytes(live_peak)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_that_holds_many_times_what_is_in_use_is_not_played() {
        let of = |held_peak| blow_up(&Account { held_peak, ..Account::default() }, 20 << 20);
        assert_eq!(of(40 << 20), None);
        let why = of(41 << 20).unwrap();
        assert_eq!(why, "it would hold 41 MiB, and the program has at most 20 MiB in use");
        // A small program may take some MiB more.
        let small = Account { held_peak: 8 << 20, ..Account::default() };
        assert_eq!(blow_up(&small, 1 << 20), None);
    }

    #[test]
    fn settings_of_glibc_are_environment_variables_and_no_other_malloc() {
        assert_eq!(kind_of("glibc:arenas=1"), Kind::Variable);
        assert_eq!(kind_of("mimalloc"), Kind::Malloc);
        assert_eq!(kind_of("mine"), Kind::Malloc);
    }
}

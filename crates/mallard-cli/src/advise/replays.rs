//! Measures the proposed plans and the mallocs by replays, interleaved.

use super::budget::{Budget, RECORDING_PART, SHARE_BEFORE_RUNS};
use super::candidate::{dropped, By, Candidate, Kind, Name};
use super::measured::{noise, Measured};
use super::preparation::{Preparation, FIRST_PART};
use super::proposals::{is_memory_at_stake, kind_of, Proposal};
use super::ranking::{by_promise, prefer_plan, rank, Entry, Needed, Piloted};
use super::reason::{Note, Reason, What};
use super::second_recording;
use crate::replay::{recorded_share, Pilot};
use mallard_measure::error::Failure;
use mallard_measure::mallocs::Allocator;
use mallard_measure::rounds::timing::Timing;
use mallard_measure::verdict::fresh::rounds_needed;
use mallard_measure::verdict::margin;
use mallard_trace::Trace;
use std::time::Duration;

/// The maximum number of candidates that are measured together.
const MEASURED_MAX: usize = 8;
/// The share of the remaining budget for replays if the program itself does not run afterwards.
const SHARE_ALONE: f64 = 0.9;
/// The minimum number of rounds that the budget must allow. More rounds would help little, because
/// effects that a replay does not show widen the interval in the program much more than few rounds
/// do.
const ROUNDS: usize = 7;
/// The number of replays in the smallest round (see `columns`).
const COLUMNS_MIN: usize = 4;
/// The number of replays in a round with one plan.
const COLUMNS_OF_PLAN: usize = 5;
/// The maximum share of the budget for single replays, after the time to measure one plan is
/// subtracted.
const PILOT_SHARE: f64 = 0.5;

/// The results of replays, and the mallocs that only runs of the program can judge.
pub struct Replays {
    /// The results of replays.
    pub found: Measured,
    /// The names of mallocs that were not replayed, so that only runs of the program can judge
    /// them.
    pub unplayed: Vec<String>,
}

/// Replays the recorded calls with the proposed plans and under the mallocs.
pub fn measure(
    trace: &Trace,
    former: &Measured,
    plans: &[Proposal],
    mallocs: &[Allocator],
    budget: &Budget,
    timing: &Timing,
) -> Result<Replays, Failure> {
    if plans.is_empty() && mallocs.is_empty() {
        return Ok(Replays { found: former.nothing(), unplayed: Vec::new() });
    }
    let unplayed = |found: Measured| {
        let names = mallocs.iter().map(|malloc| malloc.name.clone());
        let unplayed = names.filter(|name| kind_of(name) == Kind::Malloc).collect();
        Ok(Replays { found, unplayed })
    };
    let undecided =
        |what: What| unplayed(Measured { questions: vec![what.into()], ..former.nothing() });
    if former.facts.is_mostly_missing {
        // A replay would show nothing about the programs that were not recorded.
        return unplayed(former.nothing());
    }
    let Some((_, share, _)) = recorded_share(trace)? else {
        return undecided(What::ShareUnknown);
    };
    let part = Some(share).filter(|&share| share < 1.0);
    let notes = part.map(Note::PartOfRun).into_iter().collect();
    let mut found = Measured { part, notes, ..former.nothing() };
    let mut replays = match Preparation::begin(trace, former, found.clone(), budget) {
        Ok(replays) => replays,
        Err(failure) => {
            // A trace that cannot be replayed leaves a question open, but is not an error of this
            // command.
            let (what, help) = (failure.what().to_string(), failure.help().to_string());
            found.questions.push(What::NotReplayed(what, help).into());
            return unplayed(found);
        }
    };
    let count = replays.plans_that_fit(plans.len(), mallocs.len());
    if count == 0 {
        replays.note_too_long();
        let plans = plans.iter().map(|of| (of.name.clone(), Kind::Strategy, of.region));
        let named = |malloc: &Allocator| Name::Allocator(malloc.name.clone());
        let settings = mallocs.iter().map(|of| (named(of), kind_of(&of.name), None));
        // Mallocs are not dropped, because the program itself may still run under them.
        let all = plans.chain(settings).filter(|(_, kind, _)| *kind != Kind::Malloc);
        let all = all.map(|(name, kind, region)| dropped(name, kind, region, Reason::NoTimeToPlay));
        replays.found.dropped.extend(all);
        return unplayed(replays.found);
    }
    let mut entries = replays.plans(by_promise(&former.facts, plans.to_vec()), count);
    entries.extend(mallocs.iter().map(|malloc| replays.malloc(malloc)));
    let (kept, unplayed_best) = replays.choose(entries)?;
    if kept.is_empty() {
        return unplayed(replays.found);
    }
    Ok(Replays { found: replays.run(kept, timing), unplayed: unplayed_best })
}

impl Preparation<'_, '_> {
    /// Computes how many plans can be prepared and replayed once, so that there is still time to
    /// measure the best one. Without plans, returns 1 if there is time to measure the mallocs, and
    /// otherwise 0.
    fn plans_that_fit(&self, plans: usize, mallocs: usize) -> usize {
        let (first, play) = (self.session.first, self.session.play);
        let share = if mallocs > 0 { SHARE_BEFORE_RUNS } else { SHARE_ALONE };
        let time = self.budget.left().mul_f64(share);
        // One replay without allocator calls, two replays of the base, and one replay under each
        // malloc.
        let pilots = play * (3 + mallocs) as u32;
        let columns = if plans > 0 { COLUMNS_OF_PLAN } else { COLUMNS_MIN };
        let fixed = pilots + play * (columns * (1 + ROUNDS)) as u32;
        let each = first + 2 * play;
        let all = plans.max(usize::from(mallocs > 0));
        (1..=all).rev().find(|&count| fixed + each * count as u32 <= time).unwrap_or(0)
    }

    /// Records that the trace is too long for the budget.
    fn note_too_long(&mut self) {
        let (first, play) = (self.session.first, self.session.play);
        let least = first + play * (COLUMNS_OF_PLAN * (2 + ROUNDS)) as u32;
        let needed = self.budget.needed(least, FIRST_PART * SHARE_BEFORE_RUNS);
        self.lacks_budget(What::LongCalls(play, ROUNDS), needed);
    }

    /// Adds a malloc to the replay session, and makes its entry.
    fn malloc(&mut self, malloc: &Allocator) -> Entry {
        let number = self.session.malloc(malloc);
        let name = Name::Allocator(malloc.name.clone());
        Entry { number, name, kind: kind_of(&malloc.name), proposal: None, account: None }
    }

    /// Returns the number of replays in a round. A round has one replay of the base, one of its
    /// control, and one without allocator calls. Each entry adds one replay, and each plan adds a
    /// further replay without allocator calls.
    fn columns(entries: &[&Entry]) -> usize {
        3 + entries.iter().map(|e| if e.kind == Kind::Strategy { 2 } else { 1 }).sum::<usize>()
    }

    /// Returns the time for measuring some entries.
    fn measurement(&self, entries: &[Entry]) -> Duration {
        let runs = self.former.cannot_run().is_none()
            && entries.iter().any(|entry| entry.kind != Kind::Strategy);
        let share = if runs { SHARE_BEFORE_RUNS } else { SHARE_ALONE };
        (self.budget.left() - self.kept_for_recording(entries)).mul_f64(share)
    }

    /// Returns the time to reserve for a second recording, which wink-out needs. Returns zero if
    /// the recording would take more than half of the remaining time.
    fn kept_for_recording(&self, entries: &[Entry]) -> Duration {
        let can_run = self.former.cannot_run().is_none() && self.former.recordings < 2;
        let needed = second_recording::time_needed(self.former);
        let is_short = needed < self.budget.left() / RECORDING_PART;
        match can_run && entries.iter().any(Entry::winks_out) && is_short {
            true => needed,
            false => Duration::ZERO,
        }
    }

    /// Replays each candidate once, and chooses the most promising ones, as many as the budget
    /// allows to measure. Also returns the names of mallocs that only runs of the program will
    /// judge.
    fn choose(&mut self, entries: Vec<Entry>) -> Result<(Vec<Piloted>, Vec<String>), Failure> {
        if entries.is_empty() || self.budget.is_interrupted() {
            entries.into_iter().for_each(|entry| self.cut_short(entry, None));
            return Ok(Default::default());
        }
        let step = self.budget.step("replaying each candidate once");
        let numbers: Vec<usize> = entries.iter().map(|entry| entry.number).collect();
        let needed = self.session.play * (COLUMNS_OF_PLAN * (1 + ROUNDS)) as u32;
        let limit = self.budget.left().saturating_sub(needed).mul_f64(PILOT_SHARE);
        let pilot = self.session.pilot(&numbers, &self.budget.runner, limit)?;
        drop(step);
        let time = self.measurement(&entries);
        let kept = self.kept_for_recording(&entries);
        let needed = self.needed(&entries);
        let piloted = entries.into_iter().zip(&pilot.savings);
        let piloted = piloted.map(|(entry, play)| Piloted::new(entry, *play)).collect();
        let mut ranked = rank(piloted, needed);
        if self.budget.is_interrupted() {
            ranked.into_iter().for_each(|of| self.cut_short(of.entry, of.saving));
            return Ok(Default::default());
        }
        let is_enough = |count: &usize| {
            let some: Vec<&Entry> = ranked.iter().take(*count).map(|of| &of.entry).collect();
            let rounds = 1 + rounds_needed(*count).max(ROUNDS);
            // With only one candidate, there was no choice, so no confirmation rounds are needed.
            let time = if *count == 1 { time } else { time.mul_f64(FIRST_PART) };
            pilot.play * (Self::columns(&some) * rounds) as u32 <= time
        };
        let most = ranked.len().min(MEASURED_MAX);
        let count = (1..=most).rev().find(is_enough).unwrap_or(0);
        if let (0, Some(first)) = (count, ranked.first()) {
            self.budget.miss(kept);
            self.no_room(&pilot, Self::columns(&[&first.entry]));
        }
        let can_run = self.former.cannot_run().is_none();
        let unplayed = match count == 1 && can_run {
            true => prefer_plan(&mut ranked, self.former.facts.min_gain),
            false => Vec::new(),
        };
        let mut kept = Vec::new();
        for (place, of) in ranked.into_iter().enumerate() {
            if place < count {
                kept.push(of);
                continue;
            }
            let Piloted { entry, saving, .. } = of;
            if unplayed.contains(&entry.name.to_string()) {
                continue;
            }
            let why = match saving {
                Some(saved) if count > 0 => Reason::CameLater { saved, measured: count },
                Some(_) => Reason::NoTimeToMeasure,
                None => Reason::PlayTooLong,
            };
            let region = entry.region();
            self.found.dropped.push(dropped(entry.name, entry.kind, region, why));
        }
        Ok((kept, unplayed))
    }

    /// Returns which candidates must be among the first. A plan without wink-out is needed if there
    /// may be no second recording. A candidate that saves memory is needed if the malloc holds much
    /// free memory.
    fn needed(&self, entries: &[Entry]) -> Needed {
        let may_lack_recording = self.former.recordings < 2
            && entries.iter().any(Entry::winks_out)
            && self.kept_for_recording(entries).is_zero();
        let saves_memory = is_memory_at_stake(&self.former.facts);
        Needed { runs_destructors: may_lack_recording, saves_memory }
    }

    /// Records that the budget is too small for a measurement.
    fn no_room(&mut self, pilot: &Pilot, columns: usize) {
        let least = pilot.play * (columns * (1 + ROUNDS)) as u32;
        let needed = self.budget.needed(least, FIRST_PART * SHARE_BEFORE_RUNS);
        self.lacks_budget(What::LongReplay(pilot.play, ROUNDS), needed);
    }

    /// Measures the chosen candidates, and returns all results of replays.
    fn run(self, kept: Vec<Piloted>, timing: &Timing) -> Measured {
        let (kept, saved): (Vec<Entry>, Vec<Option<f64>>) =
            kept.into_iter().map(|of| (of.entry, of.saving)).unzip();
        let timing = timing.part(self.measurement(&kept));
        let numbers: Vec<usize> = kept.iter().map(|entry| entry.number).collect();
        let Preparation { former, mut found, budget, session } = self;
        let outcome = match budget.share(|| session.measure(&numbers, &budget.runner, &timing)) {
            Ok(outcome) => outcome,
            Err(failure) => {
                let (what, help) = (failure.what().to_string(), failure.help().to_string());
                found.questions.push(What::ReplaysFail(what, help).into());
                return found;
            }
        };
        found.interrupted = outcome.interrupted;
        found.noise = noise(&outcome.control);
        // A replay covers only one process.
        found.replayed = outcome.calls.filter(|_| former.facts.program.processes <= 1);
        found.notes.extend(outcome.notes.into_iter().map(Note::Said));
        let margin = margin(&outcome.control, former.facts.min_gain);
        for ((entry, saved), played) in kept.into_iter().zip(saved).zip(outcome.played) {
            let (region, site) = (entry.region(), entry.site());
            match played {
                Err(how) => {
                    let why = match how {
                        None if outcome.interrupted => Reason::Interrupted(saved),
                        how => Reason::NotPlayed(how.unwrap_or("it was not replayed".to_string())),
                    };
                    found.dropped.push(dropped(entry.name, entry.kind, region, why));
                }
                Ok(played) => found.candidates.push(Candidate {
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
                    in_program: None,
                }),
            }
        }
        found
    }

    /// Drops a candidate because the user has interrupted the command, and keeps the result of its
    /// single replay.
    fn cut_short(&mut self, entry: Entry, saved: Option<f64>) {
        let why = Reason::Interrupted(saved);
        let region = entry.region();
        self.found.dropped.push(dropped(entry.name, entry.kind, region, why));
    }
}

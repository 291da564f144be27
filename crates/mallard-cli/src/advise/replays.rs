//! Measures the proposed plans and the mallocs by replays, in turns.

use super::budget::{Budget, RECORDING_PART, SHARE_BEFORE_RUNS};
use super::candidate::{dropped, Account, By, Candidate, Dropped, Kind, Name};
use super::facts::Facts;
use super::measured::{noise, Measured};
use super::proposals::{is_memory_at_stake, kind_of, Proposal};
use super::ranking::{by_promise, limit, prefer_plan, rank, Entry, Needed, Piloted};
use super::reason::{Note, Question, Reason, What};
use super::second_recording;
use crate::replay::{recorded_share, Accounted, Pilot, Session};
use mallard_measure::error::Failure;
use mallard_measure::mallocs::Allocator;
use mallard_measure::rounds::timing::Timing;
use mallard_measure::verdict::fresh::rounds_needed;
use mallard_measure::verdict::margin;
use mallard_trace::Trace;
use std::time::Duration;

/// The greatest number of candidates that are measured together.
const MEASURED_MAX: usize = 8;
/// The share of the remaining budget for the measurement if the program itself does not run afterwards.
const SHARE_ALONE: f64 = 0.9;
/// The part of a measurement that comes before the fresh plays (see `verdict::fresh`).
const FIRST_PART: f64 = 0.75;
/// The fewest rounds of plays that the budget must allow. What a replay does not show makes the interval in the
/// program much wider than that of so few plays.
const ROUNDS: usize = 7;
/// The number of plays in the smallest round: see `columns`.
const COLUMNS_MIN: usize = 4;
/// The number of plays in a round of one plan.
const COLUMNS_OF_PLAN: usize = 5;
/// The largest share of the remaining budget for plays that choose which plans run in the program.
const SCREEN_SHARE: f64 = 0.1;
/// Compiling the recorded calls for one plan, and accounting for its blocks, takes this many times as long as looking
/// for regions. Measured with traces of 7 to 23 million calls: 1.2 to 2.
const COMPILE_TIMES: f64 = 2.0;
/// The largest share of the budget for single plays, beyond what the measurement of one plan takes.
const PILOT_SHARE: f64 = 0.5;
/// A local allocator is not played if it would hold more than BLOW_UP times the peak of the program's
/// bytes in use, and more than BLOW_UP_BYTES.
const BLOW_UP: f64 = 2.0;
const BLOW_UP_BYTES: u64 = 16 << 20;

/// The state of a measurement.
struct Measuring<'a, 'b> {
    former: &'a Measured,
    /// What the measurement has found.
    found: Measured,
    budget: &'a Budget,
    timing: &'a Timing,
    session: Session<'b>,
    entries: Vec<Entry>,
}

/// What replays have found, and what they leave to others.
pub struct Replays {
    /// What replays have found.
    pub found: Measured,
    /// The names of mallocs for which there was no time to play, so that only runs of the program can judge them.
    pub unplayed: Vec<String>,
}

/// Session the plans of the rules and the mallocs.
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
        // A replay would tell nothing about the programs that were not recorded.
        return unplayed(former.nothing());
    }
    let Some((_, share, _)) = recorded_share(trace)? else {
        return undecided(What::ShareUnknown);
    };
    let part = Some(share).filter(|&share| share < 1.0);
    let notes = part.map(Note::PartOfRun).into_iter().collect();
    let mut found = Measured { part, notes, ..former.nothing() };
    let session = match begin(trace, former, budget) {
        Ok(session) => session,
        Err(failure) => {
            // The trace cannot be replayed: that is evidence, not an error of this command.
            let (what, help) = (failure.what().to_string(), failure.help().to_string());
            found.questions.push(What::NotReplayed(what, help).into());
            return unplayed(found);
        }
    };
    let mut measuring = Measuring { former, found, budget, timing, session, entries: Vec::new() };
    let count = measuring.plans_that_fit(plans.len(), mallocs.len());
    if count == 0 {
        measuring.note_too_long();
        let plans = plans.iter().map(|of| (of.name.clone(), Kind::Strategy, of.region));
        let named = |malloc: &Allocator| Name::Allocator(malloc.name.clone());
        let settings = mallocs.iter().map(|of| (named(of), kind_of(&of.name), None));
        // The program itself may still run under the mallocs.
        let all = plans.chain(settings).filter(|(_, kind, _)| *kind != Kind::Malloc);
        let all = all.map(|(name, kind, region)| dropped(name, kind, region, Reason::NoTimeToPlay));
        measuring.found.dropped.extend(all);
        return unplayed(measuring.found);
    }
    measuring.add_plans(by_promise(&former.facts, plans.to_vec()), count);
    measuring.add_mallocs(mallocs);
    let (kept, unplayed_best) = measuring.choose()?;
    if kept.is_empty() {
        return unplayed(measuring.found);
    }
    Ok(Replays { found: measuring.run(kept), unplayed: unplayed_best })
}

/// Compiles the recorded calls.
fn begin<'a>(trace: &'a Trace, former: &Measured, budget: &Budget) -> Result<Session<'a>, Failure> {
    let _step = budget.step("compiling the recorded calls");
    let mut session = Session::begin(trace, false, true)?;
    session.cpu = former.facts.program.cpu_measured;
    Ok(session)
}

/// The plans that runs of the program are to measure.
pub struct Screened {
    /// What replays have found.
    pub found: Measured,
    /// The most promising plans, the best first. Plans that differ in nothing but wink-out are together, the plan
    /// without wink-out first, because one run measures both.
    pub groups: Vec<Vec<Entry>>,
}

/// Chooses at most `most` plans that runs of the program are to measure. If there are more, each is played once or
/// twice, as far as a part of the budget allows; a plan that is not played comes last.
pub fn screen(
    trace: &Trace,
    former: &Measured,
    plans: &[Proposal],
    most: usize,
    budget: &Budget,
    timing: &Timing,
) -> Result<Screened, Failure> {
    let facts = &former.facts;
    let (plans, small): (Vec<_>, Vec<_>) =
        plans.iter().cloned().partition(|plan| limit(facts, plan) >= facts.min_gain);
    let mut groups = grouped(by_promise(facts, plans));
    let too_small = |of: Proposal| {
        let why = Reason::RegionTooSmall(limit(facts, &of));
        dropped(of.name, Kind::Strategy, of.region, why)
    };
    let dropped = small.into_iter().map(too_small).collect();
    let mut found = Measured { dropped, ..former.nothing() };
    let needs_account = |group: &Vec<Proposal>| group.iter().any(winks_out);
    let threads = former.facts.program.threads;
    let is_sure = groups.len() <= most && !groups.iter().any(needs_account);
    let as_proposed = |groups: Vec<Vec<Proposal>>| {
        let entries = |group: Vec<Proposal>| {
            group.into_iter().map(|proposal| entry_of(0, proposal, None)).collect()
        };
        groups.into_iter().map(entries).collect()
    };
    if threads <= 1 && (is_sure || !is_affordable(facts, &groups, most, budget)) {
        // The account of a plan without wink-out tells only whether threads share an instance. For one with wink-out,
        // the region tells which blocks outlive a call, and a second recording has to agree.
        found.dropped.extend(leave_out_last(&mut groups, most));
        return Ok(Screened { found, groups: as_proposed(groups) });
    }
    let session = match begin(trace, former, budget) {
        Ok(session) => session,
        Err(failure) => {
            // A trace that cannot be replayed has no account of wink-out, so no plan with wink-out is measured.
            let why = Reason::NotPlayed(failure.what().to_string());
            for group in &mut groups {
                let (without, plain) = std::mem::take(group).into_iter().partition(winks_out);
                *group = plain;
                found.dropped.extend(left_out(without, &why));
            }
            groups.retain(|group| !group.is_empty());
            found.dropped.extend(leave_out_last(&mut groups, most));
            return Ok(Screened { found, groups: as_proposed(groups) });
        }
    };
    let mut measuring = Measuring { former, found, budget, timing, session, entries: Vec::new() };
    if groups.len() > most {
        groups = measuring.ranked(groups, most)?;
    }
    let groups = groups.into_iter().map(|group| measuring.prepared(group)).collect::<Vec<_>>();
    let groups = groups.into_iter().filter(|group| !group.is_empty()).collect();
    Ok(Screened { found: measuring.found, groups })
}

/// Leaves out the groups after the first `most`, for which there is no time, and returns their plans.
fn leave_out_last(groups: &mut Vec<Vec<Proposal>>, most: usize) -> Vec<Dropped> {
    let last = groups.split_off(most.min(groups.len()));
    left_out(last.into_iter().flatten().collect(), &Reason::NoTimeToMeasure)
}

/// Plans that are left out for the same reason.
fn left_out(plans: Vec<Proposal>, why: &Reason) -> Vec<Dropped> {
    let one = |of: Proposal| dropped(of.name, Kind::Strategy, of.region, why.clone());
    plans.into_iter().map(one).collect()
}

/// Whether the plans that are measured can be prepared in the time for that. Otherwise the runs of the program, which
/// decide, would have too little time.
fn is_affordable(facts: &Facts, groups: &[Vec<Proposal>], most: usize, budget: &Budget) -> bool {
    let plans: usize = groups.iter().take(most).map(Vec::len).sum();
    let needed = facts.looked_for.mul_f64(COMPILE_TIMES) * (1 + plans) as u32;
    needed <= budget.left().mul_f64(SCREEN_SHARE)
}

/// Puts plans together that differ in nothing but wink-out.
fn grouped(plans: Vec<Proposal>) -> Vec<Vec<Proposal>> {
    let key = |of: &Proposal| {
        let rules = of.plan.rules.iter();
        rules.map(|rule| (rule.scope.clone(), rule.strategy.allocator())).collect::<Vec<_>>()
    };
    let mut groups: Vec<Vec<Proposal>> = Vec::new();
    for plan in plans {
        match groups.iter_mut().find(|group| key(&group[0]) == key(&plan)) {
            Some(group) => group.push(plan),
            None => groups.push(vec![plan]),
        }
    }
    groups.iter_mut().for_each(|group| group.sort_by_key(winks_out));
    groups
}

fn winks_out(of: &Proposal) -> bool {
    of.plan.rules.iter().any(|rule| rule.strategy.winks_out())
}

fn entry_of(number: usize, proposal: Proposal, account: Option<Account>) -> Entry {
    let name = proposal.name.clone();
    Entry { number, name, kind: Kind::Strategy, proposal: Some(proposal), account }
}

impl Measuring<'_, '_> {
    /// Plays the first plan of each group as far as there is time, and returns the `most` best groups.
    fn ranked(
        &mut self,
        mut groups: Vec<Vec<Proposal>>,
        most: usize,
    ) -> Result<Vec<Vec<Proposal>>, Failure> {
        let (first, play) = (self.session.first, self.session.play);
        let time = self.budget.left().mul_f64(SCREEN_SHARE).saturating_sub(play * 3);
        let each = (first + 2 * play).as_secs_f64().max(1e-6);
        let count = (time.as_secs_f64() / each) as usize;
        self.found.dropped.extend(leave_out_last(&mut groups, count.max(most)));
        if count <= most {
            return Ok(groups);
        }
        let played = groups.iter().map(|group| group[0].clone()).collect();
        self.add_plans(played, count);
        let entries = std::mem::take(&mut self.entries);
        let numbers: Vec<usize> = entries.iter().map(|entry| entry.number).collect();
        let step = self.budget.step("playing each plan once");
        let pilot = self.session.pilot(&numbers, &self.budget.runner, time)?;
        drop(step);
        let piloted = entries.into_iter().zip(&pilot.savings);
        let piloted = piloted.map(|(entry, play)| Piloted::new(entry, *play)).collect();
        let mut best = Vec::new();
        for of in rank(piloted, Needed::default()) {
            let is_it = |group: &Vec<Proposal>| {
                group[0].name == of.entry.name && group[0].region == of.entry.region()
            };
            let Some(place) = groups.iter().position(is_it) else { continue };
            let group = groups.remove(place);
            if best.len() < most {
                best.push(group);
                continue;
            }
            let why = match of.saving {
                Some(saved) => Reason::CameLater { saved, measured: most },
                None => Reason::PlayTooLong,
            };
            self.found.dropped.extend(left_out(group, &why));
        }
        // What kept the first plan of a group from its play holds for the others, which have the same allocator.
        for mut group in groups {
            let first = group.remove(0);
            let is_it = |of: &&Dropped| of.name == first.name && of.region == first.region;
            let why = self.found.dropped.iter().rev().find(is_it).map(|of| of.why.clone());
            self.found.dropped.extend(why.map_or_else(Vec::new, |why| left_out(group, &why)));
        }
        Ok(best)
    }

    /// Adds the exact account to the plans of a group, and leaves out those that cannot be used.
    fn prepared(&mut self, group: Vec<Proposal>) -> Vec<Entry> {
        let count = self.entries.len() + group.len();
        self.add_plans(group, count);
        std::mem::take(&mut self.entries)
    }

    /// How many of the plans can be prepared and played once so that there is still time to measure the
    /// best one. Without plans, how many of the mallocs.
    fn plans_that_fit(&self, plans: usize, mallocs: usize) -> usize {
        let (first, play) = (self.session.first, self.session.play);
        let share = if mallocs > 0 { SHARE_BEFORE_RUNS } else { SHARE_ALONE };
        let time = self.budget.left().mul_f64(share);
        // The player alone, twice under the base, and each malloc.
        let pilots = play * (3 + mallocs) as u32;
        let columns = if plans > 0 { COLUMNS_OF_PLAN } else { COLUMNS_MIN };
        let fixed = pilots + play * (columns * (1 + ROUNDS)) as u32;
        let each = first + 2 * play;
        let all = plans.max(usize::from(mallocs > 0));
        (1..=all).rev().find(|&count| fixed + each * count as u32 <= time).unwrap_or(0)
    }

    /// Notes that the trace is too long for the budget.
    fn note_too_long(&mut self) {
        let (first, play) = (self.session.first, self.session.play);
        let least = first + play * (COLUMNS_OF_PLAN * (2 + ROUNDS)) as u32;
        let needed = self.budget.needed(least, FIRST_PART * SHARE_BEFORE_RUNS);
        self.lacks_budget(What::LongCalls(play, ROUNDS), needed);
    }

    /// Notes that the budget was too small to decide something, and which budget is needed.
    fn lacks_budget(&mut self, what: What, needed: Duration) {
        self.found.questions.push(Question { what, needed: Some(needed) });
    }

    /// Prepares the first `count` plans.
    fn add_plans(&mut self, proposals: Vec<Proposal>, count: usize) {
        let mut left_out: Vec<Name> = Vec::new();
        for proposal in proposals {
            let name = proposal.name.clone();
            let region = proposal.region;
            let mut drop = |why: Reason| {
                self.found.dropped.push(dropped(name.clone(), Kind::Strategy, region, why));
            };
            if self.budget.is_interrupted() {
                drop(Reason::Interrupted(None));
                continue;
            }
            if self.entries.len() == count {
                drop(Reason::NoTimeToPrepare);
                left_out.push(name);
                continue;
            }
            let _step = self.budget.step(&format!("preparing the replay of {name}"));
            match self.session.plan(&name.to_string(), &proposal.plan) {
                Err(failure) => drop(Reason::NotPlayed(failure.what().to_string())),
                Ok((_, accounted))
                    if proposal.plan.rules.len() == 1 && accounted.rule.blocks == 0 =>
                {
                    drop(Reason::NoBlocks);
                }
                Ok((number, accounted)) => {
                    let (account, live) = (account_of(&accounted), self.session.live_peak());
                    if let Some(why) = blow_up(&account, live) {
                        drop(why);
                        continue;
                    }
                    self.entries.push(entry_of(number, proposal, Some(account)));
                }
            }
        }
        if let Some(first) = left_out.first() {
            let each = self.session.first + 2 * self.session.play;
            let missed = each * left_out.len() as u32;
            self.budget.miss(missed);
            let needed = self.budget.all() + missed.mul_f64(1.0 / FIRST_PART);
            self.lacks_budget(What::LeftOut(left_out.len(), first.to_string()), needed);
        }
    }

    fn add_mallocs(&mut self, mallocs: &[Allocator]) {
        for malloc in mallocs {
            let number = self.session.malloc(malloc);
            let name = Name::Allocator(malloc.name.clone());
            let kind = kind_of(&malloc.name);
            self.entries.push(Entry { number, name, kind, proposal: None, account: None });
        }
    }

    /// The number of plays in a round: the base, its control and the player alone, then one play for
    /// each entry, and for each plan also the player alone.
    fn columns(entries: &[&Entry]) -> usize {
        3 + entries.iter().map(|e| if e.kind == Kind::Strategy { 2 } else { 1 }).sum::<usize>()
    }

    /// The time for measuring some entries.
    fn measurement(&self, entries: &[Entry]) -> Duration {
        let runs = self.former.cannot_run().is_none()
            && entries.iter().any(|entry| entry.kind != Kind::Strategy);
        let share = if runs { SHARE_BEFORE_RUNS } else { SHARE_ALONE };
        (self.budget.left() - self.kept_for_recording(entries)).mul_f64(share)
    }

    /// The time to keep for a second recording, which wink-out needs. Zero if the recording would take
    /// more than half of the remaining time.
    fn kept_for_recording(&self, entries: &[Entry]) -> Duration {
        let can_run = self.former.cannot_run().is_none() && self.former.recordings < 2;
        let needed = second_recording::time_needed(self.former);
        let is_short = needed < self.budget.left() / RECORDING_PART;
        match can_run && entries.iter().any(Entry::winks_out) && is_short {
            true => needed,
            false => Duration::ZERO,
        }
    }

    /// Session each candidate once, and chooses the most promising ones: as many as the budget allows. Also
    /// returns the names of mallocs that only runs of the program will judge.
    fn choose(&mut self) -> Result<(Vec<Piloted>, Vec<String>), Failure> {
        let entries = std::mem::take(&mut self.entries);
        if entries.is_empty() || self.budget.is_interrupted() {
            entries.into_iter().for_each(|entry| self.cut_short(entry, None));
            return Ok(Default::default());
        }
        let step = self.budget.step("playing each candidate once");
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
            // One candidate is no choice, and needs no fresh plays.
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

    /// What the first candidates need, if the program may not be recorded again, or holds much memory.
    fn needed(&self, entries: &[Entry]) -> Needed {
        let may_lack_recording = self.former.recordings < 2
            && entries.iter().any(Entry::winks_out)
            && self.kept_for_recording(entries).is_zero();
        let saves_memory = is_memory_at_stake(&self.former.facts);
        Needed { runs_destructors: may_lack_recording, saves_memory }
    }

    /// Notes that the budget is too small for a measurement.
    fn no_room(&mut self, pilot: &Pilot, columns: usize) {
        let least = pilot.play * (columns * (1 + ROUNDS)) as u32;
        let needed = self.budget.needed(least, FIRST_PART * SHARE_BEFORE_RUNS);
        self.lacks_budget(What::LongReplay(pilot.play, ROUNDS), needed);
    }

    /// Measures the chosen candidates, and returns all that replays have found.
    fn run(self, kept: Vec<Piloted>) -> Measured {
        let (kept, saved): (Vec<Entry>, Vec<Option<f64>>) =
            kept.into_iter().map(|of| (of.entry, of.saving)).unzip();
        let timing = self.timing.part(self.measurement(&kept));
        let numbers: Vec<usize> = kept.iter().map(|entry| entry.number).collect();
        let Measuring { former, mut found, budget, session, .. } = self;
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
        // A replay is of one process.
        found.replayed = outcome.calls.filter(|_| former.facts.program.processes <= 1);
        found.notes.extend(outcome.notes.into_iter().map(Note::Said));
        let margin = margin(&outcome.control, former.facts.min_gain);
        for ((entry, saved), played) in kept.into_iter().zip(saved).zip(outcome.played) {
            let (region, site) = (entry.region(), entry.site());
            match played {
                Err(how) => {
                    let why = match how {
                        None if outcome.interrupted => Reason::Interrupted(saved),
                        how => Reason::NotPlayed(how.unwrap_or("it was not played".to_string())),
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

    /// Keeps what a single play showed of a candidate, because the user has interrupted the command.
    fn cut_short(&mut self, entry: Entry, saved: Option<f64>) {
        let why = Reason::Interrupted(saved);
        let region = entry.region();
        self.found.dropped.push(dropped(entry.name, entry.kind, region, why));
    }
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
fn blow_up(account: &Account, live_peak: u64) -> Option<Reason> {
    let limit = (live_peak as f64 * BLOW_UP) as u64;
    let why = Reason::TooMuchMemory { held: account.held_peak, in_use: live_peak };
    (account.held_peak > limit.max(BLOW_UP_BYTES)).then_some(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_that_holds_many_times_what_is_in_use_is_not_played() {
        let of = |held_peak| blow_up(&Account { held_peak, ..Account::default() }, 20 << 20);
        assert_eq!(of(40 << 20), None);
        let why = of(41 << 20).unwrap().to_string();
        assert_eq!(why, "it would hold 41 MiB, and the program has at most 20 MiB in use");
        // A small program may take some MiB more.
        let small = Account { held_peak: 8 << 20, ..Account::default() };
        assert_eq!(blow_up(&small, 1 << 20), None);
    }
}

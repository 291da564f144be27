//! Chooses the plans to measure in runs of the program, by single replays if there is time.

use super::budget::Budget;
use super::candidate::{dropped, Dropped, Kind};
use super::facts::Facts;
use super::measured::Measured;
use super::preparation::{entry_of, Preparation};
use super::proposals::Proposal;
use super::ranking::{by_promise, limit, rank, Entry, Needed, Piloted};
use super::reason::Reason;
use mallard_measure::error::Failure;
use mallard_trace::Trace;

/// The maximum share of the remaining budget for single replays that choose which plans run in the
/// program.
const SCREEN_SHARE: f64 = 0.1;
/// The assumed time to compile the recorded calls for one plan and to count the plan's blocks, as a
/// multiple of the time to search for regions. With traces of 7 to 23 million calls, the real
/// multiple was 1.2 to 2.
const COMPILE_TIMES: f64 = 2.0;

/// The plans to measure in runs of the program.
pub struct Screened {
    /// The results of replays.
    pub found: Measured,
    /// The most promising plans, the best first. Plans that differ only in wink-out are together in
    /// a group, the plan without wink-out first, because one run measures both.
    pub groups: Vec<Vec<Entry>>,
}

/// Chooses at most `most` groups of plans to measure in runs of the program. If there are more
/// groups, the first plan of each is replayed, as long as a part of the budget lasts. Groups that
/// are not replayed come last.
pub fn screen(
    trace: &Trace,
    former: &Measured,
    plans: &[Proposal],
    most: usize,
    budget: &Budget,
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
        // With one thread, exact block counts are not needed. Without wink-out, the counts would
        // only show whether threads share an instance. For wink-out, the region shows which blocks
        // outlive a call, and a second recording has to agree.
        found.dropped.extend(leave_out_last(&mut groups, most));
        return Ok(Screened { found, groups: as_proposed(groups) });
    }
    let mut replays = match Preparation::begin(trace, former, found.clone(), budget) {
        Ok(replays) => replays,
        Err(failure) => {
            // If the trace cannot be replayed, the blocks that wink-out frees cannot be counted
            // exactly, so no plan with wink-out is measured.
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
    if groups.len() > most {
        groups = replays.ranked(groups, most)?;
    }
    let prepared = |group: Vec<Proposal>| {
        let count = group.len();
        replays.plans(group, count)
    };
    let groups = groups.into_iter().map(prepared).filter(|group| !group.is_empty()).collect();
    Ok(Screened { found: replays.found, groups })
}

/// Leaves out the groups after the first `most`, for which there is no time, and returns their
/// plans as dropped.
fn leave_out_last(groups: &mut Vec<Vec<Proposal>>, most: usize) -> Vec<Dropped> {
    let last = groups.split_off(most.min(groups.len()));
    left_out(last.into_iter().flatten().collect(), &Reason::NoTimeToMeasure)
}

/// Makes the entries of plans that are left out for the reason `why`.
fn left_out(plans: Vec<Proposal>, why: &Reason) -> Vec<Dropped> {
    let one = |of: Proposal| dropped(of.name, Kind::Strategy, of.region, why.clone());
    plans.into_iter().map(one).collect()
}

/// Returns whether the plans can be prepared in a small share of the remaining budget. More
/// preparation would leave too little time for the runs of the program, whose results decide.
fn is_affordable(facts: &Facts, groups: &[Vec<Proposal>], most: usize, budget: &Budget) -> bool {
    let plans: usize = groups.iter().take(most).map(Vec::len).sum();
    let needed = facts.looked_for.mul_f64(COMPILE_TIMES) * (1 + plans) as u32;
    needed <= budget.left().mul_f64(SCREEN_SHARE)
}

/// Groups the plans that differ only in wink-out.
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

impl Preparation<'_, '_> {
    /// Replays the first plan of each group as far as there is time, and returns the `most` best
    /// groups.
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
        let entries = self.plans(played, count);
        let numbers: Vec<usize> = entries.iter().map(|entry| entry.number).collect();
        let step = self.budget.step("replaying each plan once");
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
        // If the first plan of a group could not be replayed, the other plans are dropped for the
        // same reason, because they have the same allocator.
        for mut group in groups {
            let first = group.remove(0);
            let is_it = |of: &&Dropped| of.name == first.name && of.region == first.region;
            let why = self.found.dropped.iter().rev().find(is_it).map(|of| of.why.clone());
            self.found.dropped.extend(why.map_or_else(Vec::new, |why| left_out(group, &why)));
        }
        Ok(best)
    }
}

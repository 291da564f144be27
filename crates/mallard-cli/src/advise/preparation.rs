//! Prepares replays: compiles the recorded calls for each plan, and counts the blocks that the plan
//! serves.

use super::budget::Budget;
use super::candidate::{dropped, Account, Kind, Name};
use super::measured::Measured;
use super::proposals::Proposal;
use super::ranking::Entry;
use super::reason::{Question, Reason, What};
use crate::replay::{Accounted, Session};
use mallard_measure::error::Failure;
use mallard_trace::Trace;
use std::time::Duration;

/// The share of the measurement time that is used before the confirmation rounds (see
/// `verdict::fresh`).
pub const FIRST_PART: f64 = 0.75;
/// A plan is not replayed if its local allocators would hold more than BLOW_UP times the peak of
/// the program's bytes in use, and more than BLOW_UP_BYTES.
const BLOW_UP: f64 = 2.0;
const BLOW_UP_BYTES: u64 = 16 << 20;

/// A session with replays of one trace.
pub struct Preparation<'a, 'b> {
    pub former: &'a Measured,
    /// The results of the replays so far.
    pub found: Measured,
    pub budget: &'a Budget,
    pub session: Session<'b>,
}

impl<'a, 'b> Preparation<'a, 'b> {
    /// Compiles the recorded calls without any plan, and starts the session.
    pub fn begin(
        trace: &'b Trace,
        former: &'a Measured,
        found: Measured,
        budget: &'a Budget,
    ) -> Result<Preparation<'a, 'b>, Failure> {
        let _step = budget.step("preparing the recorded calls for replay");
        let mut session = Session::begin(trace, false, true)?;
        session.cpu = former.facts.program.cpu_measured;
        Ok(Preparation { former, found, budget, session })
    }

    /// Records that the budget was too small to decide something, and which budget is needed.
    pub fn lacks_budget(&mut self, what: What, needed: Duration) {
        self.found.questions.push(Question { what, needed: Some(needed) });
    }

    /// Prepares the first `count` plans, and returns the plans that can be replayed.
    pub fn plans(&mut self, proposals: Vec<Proposal>, count: usize) -> Vec<Entry> {
        let mut entries = Vec::new();
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
            if entries.len() == count {
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
                    entries.push(entry_of(number, proposal, Some(account)));
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
        entries
    }
}

/// Makes the entry for a plan whose index in the replay session is `number`.
pub fn entry_of(number: usize, proposal: Proposal, account: Option<Account>) -> Entry {
    let name = proposal.name.clone();
    Entry { number, name, kind: Kind::Strategy, proposal: Some(proposal), account }
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

/// Returns why a plan needs too much memory to be replayed. Returns `None` if the plan can be
/// replayed. `live_peak` is the peak of the program's bytes in use.
fn blow_up(account: &Account, live_peak: u64) -> Option<Reason> {
    let limit = (live_peak as f64 * BLOW_UP) as u64;
    let why = Reason::TooMuchMemory { held: account.held_peak, in_use: live_peak };
    (account.held_peak > limit.max(BLOW_UP_BYTES)).then_some(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_that_would_hold_several_times_the_bytes_in_use_is_not_replayed() {
        let of = |held_peak| blow_up(&Account { held_peak, ..Account::default() }, 20 << 20);
        assert_eq!(of(40 << 20), None);
        let why = of(41 << 20).unwrap().to_string();
        assert_eq!(why, "it would use 41 MiB, but the program has at most 20 MiB in use");
        // A small program may need some MiB more.
        let small = Account { held_peak: 8 << 20, ..Account::default() };
        assert_eq!(blow_up(&small, 1 << 20), None);
    }
}

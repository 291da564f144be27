//! Results of measurements so far. The third of the four `mallard advise` steps makes them.
//!
//! Each step of the measurement receives the results so far, and returns only its own results.
//! [`Measured::and`] combines the two, so that no step changes the results of another step.

use super::candidate::{By, Candidate, Dropped, Forced};
use super::facts::{Bound, Facts};
use super::proposals::Proposals;
use super::reason::{CannotRun, Doubt, NoSecond, Note, Question, Reason, Refusal};
use mallard_measure::verdict::{Judgement, Verdict, Why};
use std::rc::Rc;
use std::time::Duration;

/// The number of recordings that must agree before a card recommends wink-out for a region.
pub const RECORDINGS_MIN: u32 = 2;

/// The facts and the measurement results, either of all steps so far or of one step.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// The facts from the trace.
    pub facts: Rc<Facts>,
    /// The measured candidates.
    pub candidates: Vec<Candidate>,
    /// The candidates that were not measured, with the reasons.
    pub dropped: Vec<Dropped>,
    /// Notes for the reader, in addition to those of the facts.
    pub notes: Vec<Note>,
    /// The questions that are not decided.
    pub questions: Vec<Question>,
    /// A doubt that a second recording adds to those of the facts.
    pub doubt: Option<Doubt>,
    /// The number of recordings of the program. A second recording is made before wink-out is
    /// recommended.
    pub recordings: u32,
    /// Why the second recording that wink-out needs is missing. `None` if there is a second recording,
    /// or if no plan with wink-out saves enough.
    pub no_second: Option<NoSecond>,
    /// The budget that is needed for the second recording. `None` if the budget was large enough.
    pub second_needs: Option<Duration>,
    /// If only a part of the run was recorded, the share of this part in the CPU time of the run.
    /// Savings in replays are then shares of the CPU time of this part.
    pub part: Option<f64>,
    /// The time of all calls in a replay, as a share of the CPU time. `None` if the calls were not
    /// replayed.
    pub replayed: Option<f64>,
    /// Why runs of the program failed. `None` if no run failed, or if there were no runs.
    pub runs_failed: Option<CannotRun>,
    /// The difference between two measurements of the unchanged program, as a share. `None` if the
    /// difference is small enough to measure a change as small as the minimum gain on this machine.
    pub noise: Option<f64>,
    /// The budget that probably decides the open questions.
    pub proposed: Option<Duration>,
    /// Whether the user has interrupted the measurement.
    pub interrupted: bool,
    /// The result of the strategy that the user asked for (--force).
    pub forced: Option<Forced>,
}

impl Measured {
    /// Starts with the facts, before any measurement.
    pub fn begin(facts: Facts) -> Measured {
        Measured { facts: Rc::new(facts), recordings: 1, ..Measured::default() }
    }

    /// Returns an empty result for a step that measures the same program.
    pub fn nothing(&self) -> Measured {
        Measured { facts: Rc::clone(&self.facts), ..Measured::default() }
    }

    /// Returns the results that the proposals contain before any measurement, which are the dropped
    /// candidates and a note.
    pub fn of_proposals(&self, proposals: &Proposals) -> Measured {
        let notes = proposals.note.iter().cloned().collect();
        Measured { dropped: proposals.dropped.clone(), notes, ..self.nothing() }
    }

    /// Combines the results so far with the results of a later step.
    pub fn and(&self, step: Measured) -> Measured {
        let mut all = self.clone();
        let is_over = |of: &Candidate| step.dropped.iter().any(|dropped| dropped.ends(of));
        all.candidates.retain(|of| !is_over(of));
        let is_new = |note: &Note| !self.all_notes().any(|known| known == note);
        all.notes.extend(step.notes.into_iter().filter(is_new));
        step.candidates.into_iter().for_each(|of| all.add(of));
        all.dropped.extend(step.dropped);
        all.questions.extend(step.questions);
        let recordings = self.recordings.max(step.recordings);
        Measured {
            doubt: all.doubt.or(step.doubt),
            recordings,
            no_second: step.no_second.or(all.no_second).filter(|_| recordings < RECORDINGS_MIN),
            second_needs: step.second_needs.or(all.second_needs),
            part: step.part.or(all.part),
            replayed: step.replayed.or(all.replayed),
            runs_failed: all.runs_failed.or(step.runs_failed),
            noise: [all.noise, step.noise].into_iter().flatten().reduce(f64::max),
            proposed: step.proposed.or(all.proposed),
            interrupted: all.interrupted || step.interrupted,
            forced: all.forced.or(step.forced),
            ..all
        }
    }

    /// Adds a candidate. If the same malloc was both replayed and run, the two results become one
    /// candidate.
    fn add(&mut self, of: Candidate) {
        let is_same = |other: &Candidate| other.name == of.name && other.by != of.by;
        let Some(place) = self.candidates.iter().position(is_same) else {
            return self.candidates.push(of);
        };
        let other = self.candidates.remove(place);
        let (tried, replayed) = match of.by {
            By::Try | By::Plan => (of, other),
            By::Replay => (other, of),
        };
        // The runs decide, because they show every effect. But if the runs vary too much, and the
        // replay rules out a gain, the replay decides.
        let is_open = tried.cpu.verdict == Verdict::NotMeasurable;
        if !is_open || !replayed.cannot_gain(self.facts.min_gain) {
            return self.candidates.push(tried.with_replay(&replayed));
        }
        self.notes.push(Note::RunsVary { name: replayed.name.to_string(), why: tried.cpu.why });
        self.candidates.push(replayed);
    }

    /// Returns the facts, for tests that change them.
    #[cfg(test)]
    pub fn facts_mut(&mut self) -> &mut Facts {
        Rc::make_mut(&mut self.facts)
    }

    /// Returns all notes, those of the facts first.
    pub fn all_notes(&self) -> impl Iterator<Item = &Note> {
        self.facts.notes.iter().chain(&self.notes)
    }

    /// Returns the upper limit of what any allocator could save. A recording times only a few calls
    /// and estimates the time of all calls. If a replay shows that the calls take longer, the limit
    /// is raised.
    pub fn bound(&self) -> Bound {
        let bound = self.facts.bound.clone();
        let least = self.replayed.unwrap_or(0.0).min(1.0);
        let share = bound.share.map(|share| share.max(least));
        Bound { share, replayed: self.replayed.or(bound.replayed), ..bound }
    }

    /// Returns why the program cannot run again, or why its runs failed. Returns `None` if the
    /// program can run.
    pub fn cannot_run(&self) -> Option<&CannotRun> {
        self.facts.program.cannot_run.as_ref().or(self.runs_failed.as_ref())
    }

    /// Returns why the recorded run is perhaps not typical of the program.
    pub fn doubts(&self) -> impl Iterator<Item = &Doubt> {
        self.facts.doubts.iter().chain(&self.doubt)
    }

    /// Returns the open questions. Questions that a larger budget would decide come last.
    pub fn open_questions(&self) -> impl Iterator<Item = &Question> {
        let with_budget = |is_enough: bool| {
            self.questions.iter().filter(move |of| of.needed.is_some() == is_enough)
        };
        with_budget(false).chain(with_budget(true))
    }

    /// Returns why no card may recommend wink-out. `None` if there is a second recording.
    pub fn no_second_recording(&self) -> Option<Refusal> {
        let enough = self.second_needs.and(self.proposed);
        let why = self.no_second.clone();
        (self.recordings < RECORDINGS_MIN).then_some(Refusal::NoSecond { why, enough })
    }

    /// Returns the mallocs under which the program does not work.
    pub fn breaking(&self) -> impl Iterator<Item = &Dropped> {
        self.dropped.iter().filter(|of| matches!(of.why, Reason::Breaks(_)))
    }
}

/// Returns the difference between two measurements of the base, if the difference is too large to
/// measure a change as small as the minimum gain.
pub fn noise(control: &Judgement) -> Option<f64> {
    let has_figures = !matches!(control.why, Some(Why::TooFewRounds { .. } | Why::NoFigure));
    let is_noisy = control.verdict == Verdict::NotMeasurable && has_figures;
    is_noisy.then(|| control.low.abs().max(control.high.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::candidate::{dropped, Kind};
    use crate::advise::rules::sample::{self, whole};

    #[test]
    fn if_runs_vary_too_much_a_replay_that_rules_out_a_gain_decides() {
        let decides = |replayed: (f64, Verdict, Option<Why>), tried: Verdict| {
            let of = |cpu| whole("mimalloc", Kind::Malloc, cpu, (0.0, Verdict::NoDifference));
            let (saving, verdict, why) = replayed;
            let mut replay = Candidate { by: By::Replay, ..of((saving, verdict)) };
            replay.cpu.why = why;
            let evidence = Measured { candidates: vec![of((0.05, tried))], ..sample::program() };
            let evidence =
                evidence.and(Measured { candidates: vec![replay], ..evidence.nothing() });
            let [of] = &evidence.candidates[..] else { panic!("one candidate is left") };
            assert_eq!(evidence.notes.len(), usize::from(of.by == By::Replay));
            of.by
        };
        let ruled_out = (0.011, Verdict::NoDifference, None);
        assert_eq!(decides(ruled_out, Verdict::NotMeasurable), By::Replay);
        assert_eq!(decides(ruled_out, Verdict::Gain), By::Try);
        assert_eq!(decides((0.04, Verdict::Gain, None), Verdict::NotMeasurable), By::Try);
        let meet = (0.0, Verdict::NotMeasurable, Some(Why::ThreadsMeet));
        assert_eq!(decides(meet, Verdict::NotMeasurable), By::Try);
    }

    #[test]
    fn two_plans_for_functions_with_the_same_short_name_stay_separate() {
        let evidence = sample::document();
        let twin = Candidate { region: Some(1), ..evidence.candidates[0].clone() };
        let both = evidence.and(Measured { candidates: vec![twin], ..evidence.nothing() });
        assert_eq!(both.candidates.len(), evidence.candidates.len() + 1);
    }

    #[test]
    fn a_malloc_that_breaks_the_program_is_dropped_regardless_of_replays() {
        let evidence = sample::malloc("mimalloc", Kind::Malloc);
        let with = |why| {
            let dropped = vec![dropped("mimalloc".into(), Kind::Malloc, None, why)];
            evidence.and(Measured { dropped, ..evidence.nothing() }).candidates.len()
        };
        assert_eq!(with(Reason::Breaks("it hangs".to_string())), 0);
        assert_eq!(with(Reason::PlayTooLong), 1);
    }
}

//! Judges confirmation rounds, which are new runs of the best candidates.
//!
//! If the candidate with the largest measured saving is selected, part of its saving is luck. So
//! the best candidates run again, in rounds that were not used to select them. A gain remains a
//! gain only if the confirmation rounds show it too, and its size comes from the confirmation
//! rounds.

use super::{judge, Judged, Judgement, Round, Rule, Verdict, Why};
use serde::Serialize;
use std::collections::BTreeMap;

/// The maximum number of candidates that run again.
pub const WINNERS_MAX: usize = 3;

/// The results of the confirmation rounds. The key is the index of a candidate among all
/// candidates.
pub type Confirmed = BTreeMap<usize, Fresh>;

/// The result of one candidate in the confirmation rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fresh {
    /// The number of confirmation rounds, called `blocks` in JSON.
    #[serde(rename = "blocks")]
    pub rounds: usize,
    /// The judgement on the confirmation rounds alone.
    #[serde(flatten)]
    pub judgement: Judgement,
}

/// Returns the candidates with a gain, the largest saving first. Returns an empty list if there was
/// only one candidate, because a single candidate was not selected and needs no confirmation.
pub fn winners(judged: &Judged) -> Vec<usize> {
    let all = &judged.candidates;
    if all.len() < 2 {
        return Vec::new();
    }
    let mut gains: Vec<usize> =
        (0..all.len()).filter(|&i| all[i].verdict == Verdict::Gain).collect();
    gains.sort_by(|&a, &b| all[b].saving.total_cmp(&all[a].saving));
    gains
}

/// Returns the minimum number of rounds in which each of `candidates` can have a significant
/// difference.
pub fn rounds_needed(candidates: usize) -> usize {
    Rule::rounds_needed(candidates)
}

/// Judges confirmation rounds. `who` has the indices in `judged` of the candidates in these rounds.
/// If `judged` has a gain that the confirmation rounds do not show, its verdict becomes "not
/// measurable". If there are too few confirmation rounds for a verdict, `judged` stays unchanged
/// and the result is empty.
pub fn confirm(judged: &mut Judged, fresh: &[Round], who: &[usize], min_gain: f64) -> Confirmed {
    if fresh.len() < rounds_needed(who.len()) {
        return Confirmed::new();
    }
    let again = judge(fresh, min_gain).candidates;
    for (&place, judgement) in who.iter().zip(&again) {
        let before = &mut judged.candidates[place];
        if before.verdict == Verdict::Gain && judgement.verdict != Verdict::Gain {
            before.verdict = Verdict::NotMeasurable;
            before.why = Some(Why::NotConfirmed);
        }
    }
    let of = |judgement| Fresh { rounds: fresh.len(), judgement };
    who.iter().copied().zip(again.into_iter().map(of)).collect()
}

/// Replaces judgements in `judged` by judgements on confirmation rounds. `who` has the indices in
/// `judged` of the candidates in these rounds. Holm's correction counts only these candidates,
/// because they were selected without using the confirmation rounds. If `judged` has a gain that
/// the confirmation rounds do not show, the verdict becomes "not measurable". If there are too few
/// confirmation rounds for a verdict, `judged` stays unchanged.
pub fn settle(judged: &mut Judged, fresh: &[Round], who: &[usize], min_gain: f64) -> Confirmed {
    let chosen = judged.clone();
    let confirmed = confirm(judged, fresh, who, min_gain);
    for (&place, fresh) in &confirmed {
        let mut judgement = fresh.judgement.clone();
        let before = &chosen.candidates[place];
        if before.verdict == Verdict::Gain && judgement.verdict != Verdict::Gain {
            judgement.verdict = Verdict::NotMeasurable;
            judgement.why = Some(Why::NotConfirmed);
        }
        judged.candidates[place] = judgement;
    }
    if !confirmed.is_empty() {
        judged.control = judge(fresh, min_gain).control;
    }
    confirmed
}

/// Returns the index of the best candidate with a gain, or `None` if no candidate has a gain. A
/// candidate with confirmation rounds is preferred. Among these, the largest saving in the
/// selection rounds decides.
pub fn winner(chosen: &Judged, judged: &Judged, confirmed: &Confirmed) -> Option<usize> {
    let key = |&place: &usize| (confirmed.contains_key(&place), chosen.candidates[place].saving);
    let gains =
        (0..judged.candidates.len()).filter(|&i| judged.candidates[i].verdict == Verdict::Gain);
    gains.max_by(|a, b| {
        let (a, b) = (key(a), key(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(savings: &[f64], count: usize) -> Vec<Round> {
        let candidates: Vec<f64> = savings.iter().map(|saving| 100.0 * (1.0 - saving)).collect();
        vec![Round { base: 100.0, control: 100.0, candidates }; count]
    }

    #[test]
    fn candidates_with_a_gain_are_winners_and_the_best_comes_first() {
        let judged = judge(&rounds(&[0.05, 0.0, -0.1, 0.2], 10), 0.02);
        assert_eq!(winners(&judged), [3, 0]);
        assert_eq!(winners(&judge(&rounds(&[0.2], 10), 0.02)), [0; 0]);
        assert_eq!(winners(&judge(&[], 0.02)), [0; 0]);
    }

    #[test]
    fn a_gain_that_confirmation_rounds_do_not_show_is_not_measurable() {
        let mut judged = judge(&rounds(&[0.05, 0.0, 0.2], 10), 0.02);
        let confirmed = confirm(&mut judged, &rounds(&[0.19, 0.01], 8), &[2, 0], 0.02);
        assert_eq!(confirmed[&2].judgement.verdict, Verdict::Gain);
        assert!((confirmed[&2].judgement.saving - 0.19).abs() < 1e-9);
        assert_eq!(judged.candidates[2].verdict, Verdict::Gain);
        assert_eq!(judged.candidates[0].verdict, Verdict::NotMeasurable);
        assert_eq!(judged.candidates[0].why, Some(Why::NotConfirmed));
        assert_eq!(judged.candidates[1].verdict, Verdict::NoDifference);
    }

    #[test]
    fn results_of_confirmation_rounds_replace_those_of_the_selection_rounds() {
        // There are too few selection rounds (three) for a verdict, but enough confirmation rounds
        // (eight).
        let mut judged = judge(&rounds(&[0.05, -0.3, 0.2], 3), 0.02);
        settle(&mut judged, &rounds(&[0.19, 0.01], 8), &[2, 0], 0.02);
        let verdicts: Vec<Verdict> = judged.candidates.iter().map(|of| of.verdict).collect();
        let expected = [Verdict::NoDifference, Verdict::NotMeasurable, Verdict::Gain];
        assert_eq!(verdicts, expected);
        assert!((judged.candidates[2].saving - 0.19).abs() < 1e-9);
        assert_eq!(judged.control.verdict, Verdict::NoDifference);
        // The confirmation rounds do not show the gain of the selection rounds.
        let mut judged = judge(&rounds(&[0.05, 0.0], 10), 0.02);
        settle(&mut judged, &rounds(&[0.01], 8), &[0], 0.02);
        assert_eq!(judged.candidates[0].why, Some(Why::NotConfirmed));
    }

    #[test]
    fn the_winner_is_the_first_selected_candidate_that_confirmation_rounds_confirm() {
        let chosen = judge(&rounds(&[0.3, 0.2, 0.25, 0.1], 10), 0.02);
        let mut judged = chosen.clone();
        let confirmed = settle(&mut judged, &rounds(&[0.2, 0.0, 0.22], 8), &[1, 2, 3], 0.02);
        assert_eq!(winner(&chosen, &judged, &confirmed), Some(1));
        assert_eq!(winner(&chosen, &chosen, &Confirmed::new()), Some(0));
        let none = judge(&rounds(&[0.0, -0.1], 10), 0.02);
        assert_eq!(winner(&none, &none, &Confirmed::new()), None);
    }

    #[test]
    fn too_few_confirmation_rounds_change_nothing() {
        let mut judged = judge(&rounds(&[0.05, 0.0], 10), 0.02);
        let before = judged.clone();
        let few = rounds(&[0.0], rounds_needed(1) - 1);
        assert!(confirm(&mut judged, &few, &[0], 0.02).is_empty());
        assert_eq!(judged, before);
    }
}

//! Tests the verdicts against enumerations and against examples that were computed by hand.

use super::estimate::{share_explained, Estimate, Part};
use super::paired::{scores, Differences, Interval};
use super::*;

const GAIN: f64 = 0.02;

fn of(savings: &[f64]) -> Differences {
    Differences::of(savings.iter().map(|s| (1.0, 1.0 - s))).unwrap()
}

/// Makes rounds from savings in percent. The base and the control are 100, and there is one
/// candidate.
fn rounds(savings: &[f64]) -> Vec<Round> {
    let round = |s: &f64| Round { base: 100.0, control: 100.0, candidates: vec![100.0 - s] };
    savings.iter().map(round).collect()
}

fn first(rounds: &[Round]) -> Judgement {
    judge(rounds, GAIN).candidates.remove(0)
}

/// Changes the control runs so that they differ from the base by these savings in percent.
fn with_control(mut rounds: Vec<Round>, savings: &[f64]) -> Vec<Round> {
    for (round, saving) in rounds.iter_mut().zip(savings.iter().cycle()) {
        round.control = round.base * (1.0 - saving / 100.0);
    }
    rounds
}

/// Computes the sign-flip test by brute force: exchanges the figures of rounds in all 2^n ways, and
/// computes all scores again.
fn p_by_enumeration(pairs: &[(f64, f64)]) -> f64 {
    let sum = |swaps: u32| {
        let swapped = pairs.iter().enumerate().map(|(i, &(base, candidate))| {
            if swaps >> i & 1 == 0 {
                (base, candidate)
            } else {
                (candidate, base)
            }
        });
        let swapped: Vec<(f64, f64)> = swapped.collect();
        scores(&swapped).iter().sum::<isize>().abs()
    };
    let all = 1u32 << pairs.len();
    let as_far = (0..all).filter(|swaps| sum(*swaps) >= sum(0)).count();
    as_far as f64 / f64::from(all)
}

#[test]
fn the_sign_flip_test_equals_a_count_over_all_sign_combinations() {
    let mut random = fastrand::Rng::with_seed(7);
    for round in 0..40 {
        // Small integers often give figures of 0 and equal differences.
        let mut figure = || f64::from(random.u32(round % 3..9));
        let pairs: Vec<(f64, f64)> = (0..1 + round % 9).map(|_| (figure(), figure())).collect();
        let found = Differences::of(pairs.iter().copied()).unwrap().p();
        let expected = p_by_enumeration(&pairs);
        assert!((found - expected).abs() < 1e-12, "{pairs:?}: {found}, not {expected}");
    }
}

#[test]
fn six_rounds_with_the_same_sign_have_a_p_value_of_2_in_64() {
    assert_eq!(of(&[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]).p(), 2.0 / 64.0);
    // The smallest score is negative. So 4 of the 64 sign choices give a sum as far from the
    // middle: the two extreme sums and their neighbours.
    assert_eq!(of(&[-0.01, 0.2, 0.3, 0.4, 0.5, 0.6]).p(), 4.0 / 64.0);
    assert_eq!(of(&[0.0; 6]).p(), 1.0);
}

fn interval(pairs: impl IntoIterator<Item = (f64, f64)>) -> Interval {
    Differences::of(pairs).unwrap().interval()
}

#[test]
fn a_slowdown_of_a_whole_round_does_not_widen_the_interval() {
    // Ten rounds of very different speed, with savings of 0 to 10 %.
    let of = |round: i32| {
        let base = f64::from(1 + round * round);
        (base, base * (-0.1 + 0.01 * f64::from(round)).exp())
    };
    let found = interval((0..10).map(of));
    assert!((found.saving - 0.055).abs() < 0.01 && found.half_width() < 0.033, "{found:?}");
}

#[test]
fn slow_outlier_runs_do_not_widen_the_interval() {
    // Three of ten runs of the base are slow, and three other runs of the candidate are slow. Only
    // four pairs have no slow run.
    let slow = |is_slow: bool| if is_slow { 1.5 } else { 1.0 };
    let of = |i: usize| {
        let small = 1.0 + 0.001 * (i * 7 % 5) as f64;
        (100.0 * slow(i < 3) * small, 90.0 * slow((3..6).contains(&i)) / small)
    };
    let found = interval((0..10).map(of));
    assert!((found.saving - 0.1).abs() < 0.005 && found.half_width() < 0.01, "{found:?}");
}

#[test]
fn the_interval_of_two_rounds_is_the_range_of_their_savings() {
    let expected = Interval { saving: 0.375, low: 0.25, high: 0.5 };
    assert_eq!(of(&[0.5, 0.25]).interval(), expected);
}

#[test]
fn the_holm_correction_multiplies_by_the_number_of_remaining_hypotheses() {
    // An example of Holm 1979: 0.01 * 3, 0.03 * 2, and 0.04 * 1, which is raised to the result
    // before it.
    let expected = [0.03, 0.06, 0.06];
    for (found, expected) in holm(&[0.01, 0.04, 0.03]).into_iter().zip(expected) {
        assert!((found - expected).abs() < 1e-12);
    }
    assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
}

#[test]
fn a_significant_saving_is_a_gain_and_a_significant_increase_is_a_loss() {
    let gain = first(&rounds(&[5.0, 4.0, 6.0, 5.0, 5.5, 4.5]));
    assert_eq!((gain.verdict, gain.why), (Verdict::Gain, None));
    assert!((gain.saving - 0.05).abs() < 3e-3, "{gain:?}");
    let loss = first(&rounds(&[-5.0, -4.0, -6.0, -5.0, -5.5, -4.5]));
    assert_eq!((loss.verdict, loss.why), (Verdict::Loss, None));
    assert!((loss.saving + 0.05).abs() < 3e-3, "{loss:?}");
}

#[test]
fn an_interval_within_the_minimum_gain_is_no_difference() {
    let same = first(&rounds(&[1.0, -1.0, 0.5, 0.2, -0.3, 0.1]));
    assert_eq!((same.verdict, same.why), (Verdict::NoDifference, None));
    // The difference is certain, but smaller than the minimum gain.
    assert_eq!(first(&rounds(&[2.0; 6])).verdict, Verdict::NoDifference);
    assert_eq!(first(&rounds(&[2.1; 6])).verdict, Verdict::Gain);
}

#[test]
fn an_interval_that_is_too_wide_needs_more_runs() {
    let wide = first(&rounds(&[5.0, -4.0, 6.0, -5.0, 5.5, 4.5]));
    assert_eq!((wide.verdict, wide.why), (Verdict::NotMeasurable, Some(Why::IntervalTooWide)));
}

#[test]
fn five_rounds_are_too_few_for_a_verdict() {
    let few = first(&rounds(&[30.0; 5]));
    let why = Some(Why::TooFewRounds { needed: 6 });
    assert_eq!((few.verdict, few.why), (Verdict::NotMeasurable, why));
    assert_eq!(judge(&rounds(&[0.0; 5]), GAIN).control.verdict, Verdict::NotMeasurable);
    assert_eq!(judge(&[], GAIN).control.why, Some(Why::NoFigure));
}

#[test]
fn more_candidates_need_more_rounds() {
    let mut many = rounds(&[30.0; 6]);
    many.iter_mut().for_each(|b| b.candidates = vec![70.0; 6]);
    let why = Some(Why::TooFewRounds { needed: 8 });
    for judgement in judge(&many, GAIN).candidates {
        assert_eq!((judgement.why, judgement.p), (why, 6.0 * 2.0 / 64.0));
    }
    many.extend(many.clone());
    let all = judge(&many, GAIN).candidates;
    assert!(all.iter().all(|j| j.verdict == Verdict::Gain), "{all:?}");
}

#[test]
fn a_noisy_control_hides_only_small_differences() {
    let noise = [4.0, -4.0, 3.0, -3.0, 2.0, -2.0];
    let small = judge(&with_control(rounds(&[3.0; 8]), &noise), GAIN);
    assert_eq!(small.control.why, Some(Why::ControlTooWide));
    // The interval of the control exceeds the minimum gain by 2 percentage points or more.
    assert!(small.control.high >= 0.04, "{small:?}");
    assert_eq!(first(&with_control(rounds(&[1.5; 8]), &noise)).why, Some(Why::ControlTooWide));
    assert_eq!(first(&with_control(rounds(&[30.0; 8]), &noise)).verdict, Verdict::Gain);
    assert_eq!(first(&with_control(rounds(&[-30.0; 8]), &noise)).verdict, Verdict::Loss);
}

#[test]
fn a_biased_control_hides_differences_of_the_same_size() {
    let biased = |saving: f64| with_control(rounds(&[saving; 8]), &[3.0, 4.0, 5.0]);
    assert_eq!(judge(&biased(4.0), GAIN).control.why, Some(Why::ControlDiffers));
    assert_eq!(first(&biased(4.0)).why, Some(Why::ControlDiffers));
    assert_eq!(first(&biased(-4.0)).why, Some(Why::ControlDiffers));
    assert_eq!(first(&biased(0.0)).why, Some(Why::ControlDiffers));
    assert_eq!(first(&biased(9.0)).verdict, Verdict::Gain);
}

#[test]
fn a_biased_control_does_not_turn_no_difference_into_a_gain() {
    // The interval of 1 % to 1.6 %, widened by 0.7 %, is above 0 and extends beyond 2 %.
    let savings = [1.0, 1.1, 1.2, 1.3, 1.4, 1.6, 1.0, 1.6];
    assert_eq!(first(&rounds(&savings)).verdict, Verdict::NoDifference);
    let biased = first(&with_control(rounds(&savings), &[0.5, 0.6, 0.7]));
    assert_eq!((biased.verdict, biased.why), (Verdict::NotMeasurable, Some(Why::ControlDiffers)));
}

#[test]
fn one_outlier_run_changes_no_verdict() {
    for disturbed in [-900.0, 99.0] {
        let mut savings = vec![5.0; 15];
        savings[3] = disturbed;
        assert_eq!(first(&rounds(&savings)).verdict, Verdict::Gain);
        let mut savings = vec![0.1; 15];
        savings[3] = disturbed;
        assert_eq!(first(&rounds(&savings)).verdict, Verdict::NoDifference);
    }
}

#[test]
fn figures_without_variance_get_a_verdict() {
    let exact = first(&rounds(&[10.0; 6]));
    assert_eq!(exact.verdict, Verdict::Gain);
    assert!([exact.saving, exact.low, exact.high].iter().all(|end| (end - 0.1).abs() < 1e-12));
    assert_eq!(first(&rounds(&[0.0; 6])).verdict, Verdict::NoDifference);
}

#[test]
fn zero_is_a_valid_measurement() {
    let zero =
        |candidate: f64| vec![Round { base: 0.0, control: 0.0, candidates: vec![candidate] }; 6];
    assert_eq!(first(&zero(0.0)).verdict, Verdict::NoDifference);
    let worse = first(&zero(3.0));
    assert_eq!((worse.verdict, worse.saving), (Verdict::Loss, f64::NEG_INFINITY));
    assert!(serde_json::to_value(&worse).unwrap()["saving"].is_null());
    let all_saved = first(&rounds(&[100.0; 6]));
    assert_eq!((all_saved.verdict, all_saved.saving), (Verdict::Gain, 1.0));
    assert_eq!(half_width(&zero(3.0)), 0.0);
}

#[test]
fn a_missing_negative_or_infinite_figure_is_not_measurable() {
    for bad in [f64::NAN, f64::INFINITY, -1.0] {
        let mut one = rounds(&[5.0; 8]);
        one.iter_mut().for_each(|b| b.candidates.push(95.0));
        one[2].candidates[0] = bad;
        let judged = judge(&one, GAIN);
        assert_eq!(judged.candidates[0].why, Some(Why::NoFigure));
        assert_eq!(judged.candidates[1].verdict, Verdict::Gain);
        assert_eq!(half_width(&one), f64::INFINITY);
        one[2].base = bad;
        let judged = judge(&one, GAIN);
        assert_eq!(judged.candidates.len(), 2);
        assert!(judged.candidates.iter().all(|j| j.why == Some(Why::NoFigure)));
    }
    // A round that lacks the figure of a candidate.
    let mut short = rounds(&[5.0; 8]);
    short[7].candidates.clear();
    assert_eq!(first(&short).why, Some(Why::NoFigure));
}

#[test]
fn the_reported_half_width_is_that_of_the_widest_interval() {
    let savings: Vec<f64> = (1..=15).map(f64::from).collect();
    let expected = interval(savings.iter().map(|saving| (100.0, 100.0 - saving))).half_width();
    assert_eq!(half_width(&rounds(&savings)), expected);
    let of_control = half_width(&with_control(rounds(&[0.0; 15]), &savings));
    assert!((of_control - expected).abs() < 1e-12, "{of_control}, not {expected}");
    assert_eq!(half_width(&rounds(&[1.0; 5])), f64::INFINITY);
}

#[test]
fn many_rounds_are_merged_into_groups() {
    let mut random = fastrand::Rng::with_seed(3);
    let savings: Vec<f64> = (0..5_000).map(|_| 5.0 + 20.0 * (random.f64() - 0.5)).collect();
    let judgement = first(&rounds(&savings));
    assert_eq!(judgement.verdict, Verdict::Gain);
    assert!((judgement.saving - 0.05).abs() < 0.005, "{judgement:?}");
}

#[test]
fn verdicts_are_the_same_words_in_json_and_in_text() {
    let all = [Verdict::Gain, Verdict::Loss, Verdict::NoDifference, Verdict::NotMeasurable];
    let words = ["gain", "loss", "no difference", "not measurable"];
    for (verdict, word) in all.into_iter().zip(words) {
        assert_eq!(serde_json::to_value(verdict).unwrap(), word);
        assert_eq!(verdict.to_string(), word);
    }
    assert_eq!(format!("{:8}|", Verdict::Gain), "gain    |");
    let few = serde_json::to_value(first(&rounds(&[30.0; 5]))).unwrap();
    assert_eq!(few["verdict"], "not measurable");
    assert_eq!(few["why"], "too few runs, 6 of each are needed");
    assert!(serde_json::to_value(first(&rounds(&[30.0; 6]))).unwrap().get("why").is_none());
}

#[test]
fn the_share_of_a_real_saving_that_a_replay_explains_is_computed() {
    // The replay takes 40 % of the program's CPU time and saves a fifth of that time, which is 8 %
    // of the program's CPU time.
    let (replay, real) = (of(&[0.2; 9]), of(&[0.1; 9]));
    let share = share_explained(&replay, 0.4, &real).unwrap();
    for found in [share.saving, share.low, share.high] {
        assert!((found - 0.8).abs() < 1e-12, "{share:?}");
    }
    let varying = [0.08, 0.09, 0.1, 0.1, 0.1, 0.1, 0.1, 0.11, 0.12];
    let share = share_explained(&replay, 0.4, &of(&varying)).unwrap();
    assert!(share.low < 0.8 && share.high > 0.8 && share.high < 1.0, "{share:?}");
    let nothing = of(&[0.01, -0.01, 0.02, -0.02, 0.0, 0.01, -0.01]);
    assert_eq!(share_explained(&replay, 0.4, &nothing), None);
}

#[test]
fn an_estimate_reports_allocator_work_page_faults_and_locality_separately() {
    let work = Interval { saving: 0.05, low: 0.04, high: 0.06 };
    let pages = Interval { saving: 0.0, low: 0.0, high: 0.0 };
    let estimate = Estimate {
        allocator_work: Part::Saves(work),
        pages: Part::Saves(pages),
        locality: Part::NotEstimated,
    };
    let json = serde_json::to_value(estimate).unwrap();
    assert_eq!(json["allocator_work"]["low"], 0.04);
    assert_eq!(json["pages"]["saving"], 0.0);
    assert_eq!(json["locality"], "not estimated");
}

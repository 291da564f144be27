//! Tests the verdicts against enumerations and examples that are computed by hand.

use super::estimate::{share_explained, Estimate, Part};
use super::paired::{Differences, Interval};
use super::*;

const GAIN: f64 = 0.02;

fn of(savings: &[f64]) -> Differences {
    Differences::of(savings.iter().map(|s| (1.0, 1.0 - s))).unwrap()
}

/// Rounds from savings in per cent: the base and the control are 100, and there is one candidate.
fn rounds(savings: &[f64]) -> Vec<Round> {
    let round = |s: &f64| Round { base: 100.0, control: 100.0, candidates: vec![100.0 - s] };
    savings.iter().map(round).collect()
}

fn first(rounds: &[Round]) -> Judgement {
    judge(rounds, GAIN).candidates.remove(0)
}

/// Sets the controls so that they differ from the base by these savings in per cent.
fn with_control(mut rounds: Vec<Round>, savings: &[f64]) -> Vec<Round> {
    for (round, saving) in rounds.iter_mut().zip(savings.iter().cycle()) {
        round.control = round.base * (1.0 - saving / 100.0);
    }
    rounds
}

/// The sign-flip test by brute force. The sum of positive ranks is computed in another way (Tukey
/// 1949): as the number of pairs of differences with a positive sum, including the pair of a difference
/// with itself. A sum of 0 counts half.
fn p_by_enumeration(differences: &[f64]) -> f64 {
    let d: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    let statistic = |signs: u32| {
        let sign = |i: usize| if signs >> i & 1 == 0 { d[i] } else { -d[i] };
        let mut twice = 0i64;
        for i in 0..d.len() {
            for j in i..d.len() {
                let sum = sign(i) + sign(j);
                twice += if sum > 0.0 { 2 } else { i64::from(sum == 0.0) };
            }
        }
        (2 * twice - (d.len() * (d.len() + 1)) as i64).abs()
    };
    let all = 1u32 << d.len();
    let as_far = (0..all).filter(|signs| statistic(*signs) >= statistic(0)).count();
    as_far as f64 / f64::from(all)
}

#[test]
fn the_sign_flip_test_equals_a_count_of_all_signs() {
    let mut random = fastrand::Rng::with_seed(7);
    for round in 0..60 {
        let n = 1 + round % 10;
        // Whole numbers give zeros and equal sizes. The larger figure of each pair is 128, a power of
        // two: shares of 128 are exact, so equal sizes stay equal.
        let signed: Vec<f64> = (0..n).map(|_| f64::from(random.i32(-4..6))).collect();
        let pair = |d: &f64| if *d > 0.0 { (128.0, 128.0 - d) } else { (128.0 + d, 128.0) };
        let found = Differences::of(signed.iter().map(pair)).unwrap().p();
        let expected = p_by_enumeration(&signed);
        assert!((found - expected).abs() < 1e-12, "{signed:?}: {found}, not {expected}");
    }
}

#[test]
fn six_rounds_of_one_sign_have_a_p_of_2_in_64() {
    assert_eq!(of(&[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]).p(), 2.0 / 64.0);
    // Ranks 1 to 6, rank 1 negative: 4 of 64 choices are as far from the middle, both ends and their
    // neighbours.
    assert_eq!(of(&[-0.01, 0.2, 0.3, 0.4, 0.5, 0.6]).p(), 4.0 / 64.0);
    assert_eq!(of(&[0.0; 6]).p(), 1.0);
}

/// The interval from all n^n resamples, one by one.
fn interval_by_enumeration(figures: &[f64]) -> (f64, f64) {
    let n = figures.len();
    let mut medians: Vec<f64> = (0..n.pow(n as u32))
        .map(|mut number| {
            let mut draw: Vec<f64> = Vec::new();
            for _ in 0..n {
                draw.push(figures[number % n]);
                number /= n;
            }
            draw.sort_by(f64::total_cmp);
            if n % 2 == 1 {
                draw[n / 2]
            } else {
                (draw[n / 2 - 1] + draw[n / 2]) / 2.0
            }
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    let at = |share: f64| medians[(share * medians.len() as f64).ceil() as usize - 1];
    (at(0.025), at(0.975))
}

#[test]
fn the_interval_equals_that_of_all_resamples() {
    for figures in [
        vec![0.25, 0.5, 0.0],
        vec![0.5, 0.125, -1.0, 0.25],
        vec![0.5, 0.25, 0.25, -0.5, 0.125],
        vec![0.5, 0.25, 0.375, -0.5, 0.125, -2.0],
        vec![0.5, 0.5, 0.5, 0.25, 0.25, 0.25],
    ] {
        let found = of(&figures).interval();
        assert_eq!((found.low, found.high), interval_by_enumeration(&figures), "{figures:?}");
    }
}

#[test]
fn the_interval_of_15_rounds_is_from_the_4th_to_the_12th() {
    // Below the 4th: P(at least 8 of 15 draws are among the first 3) = 0.0042; up to it: 0.029.
    let figures: Vec<f64> = (1..=15).map(|i| f64::from(i) / 16.0).collect();
    let expected = Interval { saving: 8.0 / 16.0, low: 4.0 / 16.0, high: 12.0 / 16.0 };
    assert_eq!(of(&figures).interval(), expected);
}

#[test]
fn holm_multiplies_by_the_number_that_is_left() {
    // Holm 1979: 0.01 * 3; 0.03 * 2; 0.04 * 1, but not below the one before.
    let expected = [0.03, 0.06, 0.06];
    for (found, expected) in holm(&[0.01, 0.04, 0.03]).into_iter().zip(expected) {
        assert!((found - expected).abs() < 1e-12);
    }
    assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
}

#[test]
fn a_significant_saving_is_a_gain_and_a_significant_excess_is_a_loss() {
    let gain = first(&rounds(&[5.0, 4.0, 6.0, 5.0, 5.5, 4.5]));
    assert_eq!((gain.verdict, gain.why, gain.saving), (Verdict::Gain, None, 0.05));
    let loss = first(&rounds(&[-5.0, -4.0, -6.0, -5.0, -5.5, -4.5]));
    assert_eq!((loss.verdict, loss.why, loss.saving), (Verdict::Loss, None, -0.05));
}

#[test]
fn an_interval_within_the_least_gain_is_no_difference() {
    let same = first(&rounds(&[1.0, -1.0, 0.5, 0.2, -0.3, 0.1]));
    assert_eq!((same.verdict, same.why), (Verdict::NoDifference, None));
    // The difference is certain, but smaller than the least gain.
    assert_eq!(first(&rounds(&[2.0; 6])).verdict, Verdict::NoDifference);
    assert_eq!(first(&rounds(&[2.1; 6])).verdict, Verdict::Gain);
}

#[test]
fn an_interval_that_is_too_wide_needs_more_runs() {
    let wide = first(&rounds(&[5.0, -4.0, 6.0, -5.0, 5.5, 4.5]));
    assert_eq!((wide.verdict, wide.why), (Verdict::NotMeasurable, Some(Why::IntervalTooWide)));
}

#[test]
fn five_rounds_are_too_few() {
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
fn a_control_that_varies_hides_small_differences_only() {
    let noise = [4.0, -4.0, 3.0, -3.0, 2.0, -2.0];
    let small = judge(&with_control(rounds(&[3.0; 8]), &noise), GAIN);
    assert_eq!(small.control.why, Some(Why::ControlTooWide));
    // The interval of the control reaches 2 % beyond the least gain.
    assert!((small.control.high - 0.04).abs() < 0.006, "{small:?}");
    assert_eq!(first(&with_control(rounds(&[1.5; 8]), &noise)).why, Some(Why::ControlTooWide));
    assert_eq!(first(&with_control(rounds(&[30.0; 8]), &noise)).verdict, Verdict::Gain);
    assert_eq!(first(&with_control(rounds(&[-30.0; 8]), &noise)).verdict, Verdict::Loss);
}

#[test]
fn a_control_that_differs_hides_differences_of_its_own_size() {
    let biased = |saving: f64| with_control(rounds(&[saving; 8]), &[3.0, 4.0, 5.0]);
    assert_eq!(judge(&biased(4.0), GAIN).control.why, Some(Why::ControlDiffers));
    assert_eq!(first(&biased(4.0)).why, Some(Why::ControlDiffers));
    assert_eq!(first(&biased(-4.0)).why, Some(Why::ControlDiffers));
    assert_eq!(first(&biased(0.0)).why, Some(Why::ControlDiffers));
    assert_eq!(first(&biased(9.0)).verdict, Verdict::Gain);
}

#[test]
fn a_biased_control_does_not_turn_no_difference_into_a_gain() {
    // The interval of 1 % to 1.6 %, widened by 0.7 %, is above 0 and reaches beyond 2 %.
    let savings = [1.0, 1.1, 1.2, 1.3, 1.4, 1.6, 1.0, 1.6];
    assert_eq!(first(&rounds(&savings)).verdict, Verdict::NoDifference);
    let biased = first(&with_control(rounds(&savings), &[0.5, 0.6, 0.7]));
    assert_eq!((biased.verdict, biased.why), (Verdict::NotMeasurable, Some(Why::ControlDiffers)));
}

#[test]
fn one_disturbed_run_changes_no_verdict() {
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
fn figures_that_never_vary_get_a_verdict() {
    let exact = first(&rounds(&[10.0; 6]));
    let expected = (Verdict::Gain, 0.1, 0.1, 0.1);
    assert_eq!((exact.verdict, exact.saving, exact.low, exact.high), expected);
    assert_eq!(first(&rounds(&[0.0; 6])).verdict, Verdict::NoDifference);
}

#[test]
fn zero_is_a_figure() {
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
fn the_half_width_is_that_of_the_widest_interval() {
    let savings: Vec<f64> = (1..=15).map(f64::from).collect();
    assert!((half_width(&rounds(&savings)) - 0.04).abs() < 1e-12);
    assert!((half_width(&with_control(rounds(&[0.0; 15]), &savings)) - 0.04).abs() < 1e-12);
    assert_eq!(half_width(&rounds(&[1.0; 5])), f64::INFINITY);
}

#[test]
fn many_rounds_are_merged() {
    let mut random = fastrand::Rng::with_seed(3);
    let savings: Vec<f64> = (0..5_000).map(|_| 5.0 + 20.0 * (random.f64() - 0.5)).collect();
    let judgement = first(&rounds(&savings));
    assert_eq!(judgement.verdict, Verdict::Gain);
    assert!((judgement.saving - 0.05).abs() < 0.005, "{judgement:?}");
}

#[test]
fn words_are_the_same_in_json_and_in_print() {
    let all = [Verdict::Gain, Verdict::Loss, Verdict::NoDifference, Verdict::NotMeasurable];
    let words = ["gain", "loss", "no difference", "not measurable"];
    for (verdict, word) in all.into_iter().zip(words) {
        assert_eq!(serde_json::to_value(verdict).unwrap(), word);
        assert_eq!(verdict.to_string(), word);
    }
    assert_eq!(format!("{:8}|", Verdict::Gain), "gain    |");
    let few = serde_json::to_value(first(&rounds(&[30.0; 5]))).unwrap();
    assert_eq!(few["verdict"], "not measurable");
    assert_eq!(few["why"], "too few runs, 6 of each decide");
    assert!(serde_json::to_value(first(&rounds(&[30.0; 6]))).unwrap().get("why").is_none());
}

#[test]
fn a_replay_explains_a_share_of_the_real_saving() {
    // The replay takes 40 % of the program's CPU time and saves a fifth of that: 8 % of the
    // program.
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
fn an_estimate_keeps_its_parts_apart() {
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

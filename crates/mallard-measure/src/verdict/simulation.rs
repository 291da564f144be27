//! Simulates comparisons under several kinds of noise, and counts right and wrong verdicts.
//!
//! `MALLARD_TABLES=1 cargo test -p mallard-measure verdict::simulation::print -- --nocapture`
//! prints the tables of decision 43, with the estimate of decision 60 (see docs/decisions). The
//! other tests check bounds of these error rates, with fewer repetitions.

use super::fresh::{confirm, winners, Confirmed, WINNERS_MAX};
use super::*;

const MIN_GAIN: f64 = 0.02;

/// Returns the number of repetitions of a table: all if MALLARD_TABLES asks for the table, and
/// otherwise one, which tests the code.
pub fn repetitions(all: u64) -> u64 {
    if std::env::var_os("MALLARD_TABLES").is_some() {
        all
    } else {
        1
    }
}

/// The noise of simulated runs. Without noise, the figure of a run is 1.
#[derive(Clone, Copy, Debug)]
pub enum Noise {
    /// A normal distribution with this standard deviation.
    Normal(f64),
    /// A standard deviation of 1 %. One run in ten takes longer, on average by 10 %.
    Tails,
    /// A standard deviation of 1 %. Runs take longer and longer: at the end 10 % longer than at the
    /// start.
    Drift,
    /// A standard deviation of 0.5 %. One run in three has an unfavourable memory layout that costs
    /// 4 %.
    Layouts,
    /// A standard deviation of 1 %. Another program runs during half of the rounds, in which runs
    /// take 5 to 15 % longer.
    Busy,
    /// A standard deviation of 1 %. The base takes 1.5 % longer, as if it always ran first.
    Biased,
    /// A standard deviation of 1 %. In every second sixth of the rounds, runs take 10 % longer.
    Periods,
}

/// All kinds of noise.
pub const ALL: [Noise; 10] = [
    Noise::Normal(0.005),
    Noise::Normal(0.01),
    Noise::Normal(0.02),
    Noise::Normal(0.03),
    Noise::Tails,
    Noise::Drift,
    Noise::Layouts,
    Noise::Busy,
    Noise::Biased,
    Noise::Periods,
];

/// Returns an almost normally distributed value with a standard deviation of 1, the sum of 12
/// uniform values.
fn normal(random: &mut fastrand::Rng) -> f64 {
    (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
}

impl Noise {
    /// Returns the figures of the runs of one round, which run in random order.
    pub fn round(self, random: &mut fastrand::Rng, done: f64, changes: &[f64]) -> Round {
        let count = changes.len() + 2;
        let mut order: Vec<usize> = (0..count).collect();
        random.shuffle(&mut order);
        let is_busy = random.bool();
        let mut figures = vec![0.0; count];
        for (position, who) in order.into_iter().enumerate() {
            let (deviation, factor) = match self {
                Noise::Normal(deviation) => (deviation, 1.0),
                Noise::Tails if random.u8(..10) == 0 => (0.01, 1.0 - 0.1 * random.f64().ln()),
                Noise::Tails => (0.01, 1.0),
                Noise::Drift => {
                    let round = 0.1 / 15.0;
                    (0.01, 1.0 + 0.1 * done + round * position as f64 / count as f64)
                }
                Noise::Layouts if random.u8(..3) == 0 => (0.005, 1.04),
                Noise::Layouts => (0.005, 1.0),
                Noise::Busy if is_busy => (0.01, 1.05 + 0.1 * random.f64()),
                Noise::Busy => (0.01, 1.0),
                Noise::Periods if (6.0 * done) as usize % 2 == 1 => (0.01, 1.1),
                Noise::Periods => (0.01, 1.0),
                Noise::Biased => (0.01, if who == 0 { 1.015 } else { 1.0 }),
            };
            let change = who.checked_sub(2).map_or(0.0, |i| changes[i]);
            figures[who] = (1.0 - change) * factor * (1.0 + deviation * normal(random));
        }
        Round { base: figures[0], control: figures[1], candidates: figures.split_off(2) }
    }
}

/// The number of measured rounds.
#[derive(Clone, Copy, Debug)]
enum Length {
    Rounds(usize),
    /// At least 15 rounds. Then 5 rounds are added at a time, until the half-width is at most 1 %
    /// or there are 60 rounds.
    UntilSure,
}

fn measure(
    random: &mut fastrand::Rng,
    noise: Noise,
    length: Length,
    changes: &[f64],
) -> Vec<Round> {
    let mut rounds = Vec::new();
    let most = if let Length::Rounds(count) = length { count } else { 60 };
    while rounds.len() < most {
        let is_checked =
            matches!(length, Length::UntilSure) && rounds.len() >= 15 && rounds.len() % 5 == 0;
        if is_checked && half_width(&rounds) <= 0.01 {
            break;
        }
        let done = rounds.len() as f64 / most as f64;
        rounds.push(noise.round(random, done, changes));
    }
    rounds
}

/// Judges by a stricter rule, for comparison with `Rule`. The verdict is "not measurable" if the
/// interval of the control excludes 0 or is wider than the minimum gain.
fn strict(judged: &Judged, index: usize) -> Verdict {
    let (control, of) = (&judged.control, &judged.candidates[index]);
    let differs = control.low > 0.0 || control.high < 0.0;
    if differs || (control.high - control.low) / 2.0 > MIN_GAIN {
        return Verdict::NotMeasurable;
    }
    without_control(of)
}

/// Judges by a rule that ignores the control, for comparison with `Rule`.
fn without_control(of: &Judgement) -> Verdict {
    match of {
        of if -MIN_GAIN <= of.low && of.high <= MIN_GAIN => Verdict::NoDifference,
        of if of.low > 0.0 && of.p < SIGNIFICANT => Verdict::Gain,
        of if of.high < 0.0 && of.p < SIGNIFICANT => Verdict::Loss,
        _ => Verdict::NotMeasurable,
    }
}

/// How often the first candidate got each verdict, in percent.
#[derive(Default, Clone, Copy)]
struct Counts([f64; 4]);

impl Counts {
    fn add(&mut self, verdict: Verdict, share: f64) {
        self.0[verdict as usize] += 100.0 * share;
    }

    fn of(&self, verdict: Verdict) -> f64 {
        self.0[verdict as usize]
    }

    fn different(&self) -> f64 {
        self.of(Verdict::Gain) + self.of(Verdict::Loss)
    }
}

/// Returns the verdicts of `Rule`, of `strict` and of `without_control`, and the mean number of
/// rounds.
fn simulate(
    noise: Noise,
    length: Length,
    changes: &[f64],
    repetitions: usize,
) -> ([Counts; 3], f64) {
    let mut random = fastrand::Rng::with_seed(1979);
    let (mut counts, mut rounds) = ([Counts::default(); 3], 0.0);
    let share = 1.0 / repetitions as f64;
    for _ in 0..repetitions {
        let measured = measure(&mut random, noise, length, changes);
        rounds += measured.len() as f64 * share;
        let judged = judge(&measured, MIN_GAIN);
        counts[0].add(judged.candidates[0].verdict, share);
        counts[1].add(strict(&judged, 0), share);
        counts[2].add(without_control(&judged.candidates[0]), share);
    }
    (counts, rounds)
}

#[test]
fn runs_of_the_same_program_are_rarely_called_different() {
    for noise in ALL {
        for length in [Length::Rounds(15), Length::UntilSure] {
            let (counts, _) = simulate(noise, length, &[0.0], 400);
            let different = counts[0].different();
            let most = if matches!(noise, Noise::Biased) { 10.0 } else { 5.0 };
            assert!(different <= most, "{noise:?}, {length:?}: {different} % called different");
        }
    }
}

#[test]
fn a_change_of_five_percent_is_detected_and_never_with_the_opposite_sign() {
    for noise in ALL {
        for (change, right) in [(0.05, Verdict::Gain), (-0.05, Verdict::Loss)] {
            let (counts, _) = simulate(noise, Length::UntilSure, &[change], 60);
            let different = counts[0].different();
            assert_eq!(counts[0].of(right), different, "{noise:?}, {change}: the wrong sign");
            let least = if matches!(noise, Noise::Biased) { 60.0 } else { 95.0 };
            assert!(different >= least, "{noise:?}, {change}: {different} % called");
        }
    }
}

/// Measures candidates in selection rounds, and the best candidates again in confirmation rounds.
/// Returns the judgements before and after confirmation, and the results of the confirmation
/// rounds.
fn choose(
    random: &mut fastrand::Rng,
    noise: Noise,
    length: Length,
    changes: &[f64],
) -> (Judged, Judged, Confirmed) {
    let first = judge(&measure(random, noise, length, changes), MIN_GAIN);
    let mut judged = first.clone();
    let mut who = winners(&judged);
    who.truncate(WINNERS_MAX);
    let again: Vec<f64> = who.iter().map(|&i| changes[i]).collect();
    let fresh = if who.is_empty() { vec![] } else { measure(random, noise, length, &again) };
    let confirmed = confirm(&mut judged, &fresh, &who, MIN_GAIN);
    (first, judged, confirmed)
}

#[test]
fn confirmation_rounds_do_not_exaggerate_the_saving_of_the_best() {
    let mut random = fastrand::Rng::with_seed(1979);
    let (mut chosen, mut fresh, mut repetitions) = (0.0, 0.0, 0.0);
    for _ in 0..200 {
        let (first, _, confirmed) =
            choose(&mut random, Noise::Normal(0.02), Length::Rounds(15), &[0.05; 6]);
        let Some(&best) = winners(&first).first() else { continue };
        chosen += first.candidates[best].saving;
        fresh += confirmed[&best].judgement.saving;
        repetitions += 1.0;
    }
    assert!(repetitions > 180.0, "{repetitions} repetitions had a winner");
    let (chosen, fresh) = (chosen / repetitions, fresh / repetitions);
    assert!(chosen > 0.055, "the best of six seems to save {chosen}");
    assert!((fresh - 0.05).abs() < 0.003, "fresh rounds say {fresh}");
}

#[test]
fn a_gain_among_equal_candidates_is_rarely_confirmed() {
    for noise in ALL {
        let mut random = fastrand::Rng::with_seed(1979);
        let mut gains = 0;
        for _ in 0..60 {
            let (_, judged, _) = choose(&mut random, noise, Length::Rounds(15), &[0.0; 6]);
            gains += usize::from(judged.candidates.iter().any(|c| c.verdict == Verdict::Gain));
        }
        let most = if matches!(noise, Noise::Biased) { 9 } else { 1 };
        assert!(gains <= most, "{noise:?}: {gains} of 60 have a gain");
    }
}

#[test]
fn a_gain_of_five_percent_among_equal_candidates_is_confirmed() {
    for noise in ALL {
        let mut random = fastrand::Rng::with_seed(1979);
        let mut gains = 0;
        for _ in 0..60 {
            let changes = [0.0, 0.0, 0.05, 0.0, 0.0, 0.0];
            let (_, judged, _) = choose(&mut random, noise, Length::UntilSure, &changes);
            gains += usize::from(judged.candidates[2].verdict == Verdict::Gain);
        }
        assert!(gains >= 57, "{noise:?}: {gains} of 60 are gains");
    }
}

#[test]
fn print_the_tables_of_confirmation_rounds() {
    println!("A/A first, A/A fresh, 5 % first, 5 % fresh; saving of the best of six at 5 %: first, fresh");
    for noise in ALL {
        let mut random = fastrand::Rng::with_seed(1979);
        let mut counts = [0.0; 4];
        let mut savings = [0.0; 3];
        for _ in 0..repetitions(100) {
            for (at, changes) in [(0, [0.0; 6]), (2, [0.05, 0.0, 0.0, 0.0, 0.0, 0.0])] {
                let (first, judged, _) = choose(&mut random, noise, Length::UntilSure, &changes);
                let among = if at == 0 { 0..6 } else { 0..1 };
                for (column, judged) in [(at, first), (at + 1, judged)] {
                    let mut of = judged.candidates[among.clone()].iter();
                    counts[column] += f64::from(of.any(|c| c.verdict == Verdict::Gain));
                }
            }
            let (first, _, confirmed) = choose(&mut random, noise, Length::UntilSure, &[0.05; 6]);
            if let Some(best) = winners(&first).first() {
                let all = [first.candidates[*best].saving, confirmed[best].judgement.saving, 1.0];
                savings.iter_mut().zip(all).for_each(|(sum, value)| *sum += value);
            }
        }
        println!(
            "{:15}{:6.1}{:6.1}{:7.1}{:7.1} |{:6.2}{:6.2}",
            format!("{noise:?}"),
            counts[0],
            counts[1],
            counts[2],
            counts[3],
            100.0 * savings[0] / savings[2],
            100.0 * savings[1] / savings[2]
        );
    }
}

#[test]
fn print_the_tables() {
    for (length, others) in [
        (Length::Rounds(15), 0),
        (Length::Rounds(30), 0),
        (Length::UntilSure, 0),
        (Length::UntilSure, 5),
    ] {
        println!("\n{length:?}, {others} other candidates that change nothing");
        for noise in ALL {
            print_line(noise, length, others);
        }
    }
}

/// Prints rates in percent for each rule: unchanged programs that are judged as different,
/// unchanged programs that are judged as no different, and changes of 3, 5, -5 and 10 % that are
/// judged correctly.
fn print_line(noise: Noise, length: Length, others: usize) {
    let mut lines = [const { String::new() }; 3];
    let mut rounds = 0.0;
    for change in [0.0, 0.03, 0.05, -0.05, 0.1] {
        let mut changes = vec![change];
        changes.resize(1 + others, 0.0);
        let (counts, mean) = simulate(noise, length, &changes, repetitions(1000) as usize);
        for (line, counts) in lines.iter_mut().zip(counts) {
            *line += &match change {
                0.0 => {
                    format!("{:5.1}{:6.1}", counts.different(), counts.of(Verdict::NoDifference))
                }
                c if c > 0.0 => format!("{:6.1}", counts.of(Verdict::Gain)),
                _ => format!("{:6.1}", counts.of(Verdict::Loss)),
            };
        }
        rounds = mean;
    }
    println!("{:15}{rounds:5.1} |{}", format!("{noise:?}"), lines.join(" |"));
}

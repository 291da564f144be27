//! Counts how often the 95 % interval of a saving contains the true saving, in simulated noise and
//! in rounds that are drawn from the recorded rounds of `bench/noise`.
//!
//! `MALLARD_TABLES=1 cargo test -p mallard-measure verdict::coverage::print -- --nocapture` prints
//! the table of decision 60 (see docs/decisions). The other tests check bounds, with fewer
//! repetitions.

use super::simulation::{repetitions, Noise, ALL};
use super::*;
use fastrand::Rng;

/// The columns of recorded rounds whose times are compared with those of glibc.
pub const CANDIDATES: [&str; 5] = ["control", "mallard", "mimalloc", "jemalloc", "tcmalloc"];

/// Recorded rounds of a program: the CPU seconds of glibc, and of each of `CANDIDATES`.
pub struct Recorded {
    /// The name of the program.
    pub name: &'static str,
    /// The figures of each round.
    pub rounds: Vec<(f64, [f64; 5])>,
}

/// Reads the recorded rounds of both programs.
pub fn recorded() -> [Recorded; 2] {
    let files = [
        ("perl", include_str!("../../../../bench/noise/perl.jsonl")),
        ("json", include_str!("../../../../bench/noise/json.jsonl")),
    ];
    files.map(|(name, lines)| {
        let round = |line: &str| {
            let figures: serde_json::Value = serde_json::from_str(line).unwrap();
            let of = |column: &str| figures[column].as_f64().unwrap();
            (of("glibc"), CANDIDATES.map(of))
        };
        Recorded { name, rounds: lines.lines().map(round).collect() }
    })
}

impl Recorded {
    fn pairs(&self, candidate: usize) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.rounds.iter().map(move |(base, all)| (*base, all[candidate]))
    }

    /// Returns the savings of each candidate in all rounds.
    pub fn savings(&self) -> [f64; 5] {
        [0, 1, 2, 3, 4].map(|i| Differences::of(self.pairs(i)).unwrap().interval().saving)
    }
}

/// How often the interval contains the true saving, in percent, and the mean width of the interval
/// in percentage points.
#[derive(Default)]
struct Count {
    covered: f64,
    width: f64,
}

impl Count {
    fn add(&mut self, of: Interval, truth: f64, repetitions: u64) {
        let is_covered = of.low <= truth && truth <= of.high;
        self.covered += 100.0 * f64::from(u8::from(is_covered)) / repetitions as f64;
        self.width += 200.0 * of.half_width() / repetitions as f64;
    }
}

/// Counts in rounds that are drawn at random from one program's recorded rounds. The count covers
/// all candidates together.
fn of_recorded(of: &Recorded, rounds: usize, repetitions: u64) -> Count {
    let mut random = Rng::with_seed(1979);
    let savings = of.savings();
    let mut count = Count::default();
    for repetition in 0..repetitions {
        let candidate = repetition as usize % CANDIDATES.len();
        let all: Vec<(f64, f64)> = of.pairs(candidate).collect();
        let drawn = (0..rounds).map(|_| all[random.usize(..all.len())]);
        count.add(Differences::of(drawn).unwrap().interval(), savings[candidate], repetitions);
    }
    count
}

fn of_simulated(noise: Noise, rounds: usize, repetitions: u64) -> Count {
    let mut random = Rng::with_seed(1979);
    let mut count = Count::default();
    let truth = if matches!(noise, Noise::Biased) { 1.0 - 0.95 / 1.015 } else { 0.05 };
    for _ in 0..repetitions {
        let round = |i: usize| noise.round(&mut random, i as f64 / rounds as f64, &[0.05]);
        let measured: Vec<Round> = (0..rounds).map(round).collect();
        count.add(candidate(&measured, 0).unwrap().interval(), truth, repetitions);
    }
    count
}

#[test]
fn intervals_contain_the_true_saving_under_any_noise() {
    for rounds in [6, 8, 15, 30] {
        for noise in ALL {
            let covered = of_simulated(noise, rounds, 400).covered;
            assert!(covered >= 91.5, "{noise:?}, {rounds} rounds: {covered} %");
        }
        for of in recorded() {
            let covered = of_recorded(&of, rounds, 400).covered;
            assert!(covered >= 91.5, "{}, {rounds} rounds: {covered} %", of.name);
        }
    }
}

#[test]
fn eight_runs_estimate_the_saving_of_recorded_programs_within_a_few_percentage_points() {
    let [perl, json] = recorded();
    for (of, rounds, most) in [(&perl, 8, 9.0), (&json, 8, 4.8), (&perl, 15, 6.0), (&json, 15, 2.5)]
    {
        let width = of_recorded(of, rounds, 400).width;
        assert!(width <= most, "{}, {rounds} rounds: {width} points", of.name);
    }
}

#[test]
fn print_the_table() {
    let all = repetitions(2000).max(5);
    println!("coverage in per cent / mean width in points, for 6, 8, 10, 12, 15, 20 and 30 rounds");
    let line = |name: String, count: &dyn Fn(usize) -> Count| {
        let cells = [6, 8, 10, 12, 15, 20, 30].map(|rounds| {
            let of = count(rounds);
            format!("{:6.1}/{:<4.1}", of.covered, of.width)
        });
        println!("{name:15}{}", cells.join(" "));
    };
    for of in recorded() {
        line(of.name.to_string(), &|rounds| of_recorded(&of, rounds, all));
    }
    for noise in ALL {
        line(format!("{noise:?}"), &|rounds| of_simulated(noise, rounds, all));
    }
}

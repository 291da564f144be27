//! Runs one experiment. First measures the rounds of all contenders, then their memory.

use super::child::{self, Memory};
use super::clock::wall_ns;
use super::row::{Provenance, Row};
use super::statistics::summarise;
use super::{Body, Effort, Entrant, Experiment, Selection};
use std::io::IsTerminal;

/// The approximate duration of a full run.
pub const FULL_SECONDS: f64 = 480.0;
/// The approximate duration of a short run.
const BRIEF_SECONDS: f64 = 36.0;

/// One contender of the experiment that is being measured, and its samples so far.
struct Lane<'a> {
    index: usize,
    who: &'a Entrant,
    body: Option<Body>,
    passes: u64,
    why: Option<String>,
    /// The samples of each figure.
    samples: Vec<Vec<f64>>,
    memory: Memory,
}

/// Runs the selected experiments, and reports the results of each when it ends.
pub fn run(
    all: &[Experiment],
    effort: Effort,
    chosen: &Selection,
    origin: &Provenance,
    mut report: impl FnMut(&Experiment, Vec<Row>),
) {
    let selected: Vec<(usize, &Experiment)> =
        all.iter().enumerate().filter(|(_, e)| chosen.has(e, effort)).collect();
    let seconds = if effort == Effort::Full { FULL_SECONDS } else { BRIEF_SECONDS };
    let deadline = wall_ns() + seconds * 1e9;
    let is_watched = std::io::stderr().is_terminal();
    for (done, (number, e)) in selected.iter().enumerate() {
        if is_watched {
            let percent = 100 * done / selected.len();
            eprint!("\r\x1b[K{percent:3}%  {} {}", e.figures[0].case, e.figures[0].variant);
        }
        // Gives the experiment an equal share of the remaining time. Two thirds of the share
        // measure times, and one third measures memory.
        let left = ((deadline - wall_ns()) / 1e9).max(0.0);
        let share = left / (selected.len() - done) as f64 * 2.0 / 3.0;
        let mut trial = Trial::new(*number, e, effort, chosen);
        if !trial.lanes.is_empty() {
            trial.measure(share, chosen.runs);
            if is_watched {
                eprint!("\r\x1b[K");
            }
            report(e, trial.rows(origin));
        }
    }
}

struct Trial<'a> {
    number: usize,
    what: &'a Experiment,
    effort: Effort,
    lanes: Vec<Lane<'a>>,
}

impl<'a> Trial<'a> {
    fn new(number: usize, what: &'a Experiment, effort: Effort, chosen: &Selection) -> Self {
        let lane = |(index, who)| Lane {
            index,
            who,
            body: None,
            passes: 1,
            why: None,
            samples: vec![Vec::new(); what.figures.len()],
            memory: Memory::default(),
        };
        let wanted = |(_, e): &(usize, &Entrant)| chosen.has_contender(&e.name);
        let lanes = what.entrants.iter().enumerate().filter(wanted).map(lane).collect();
        Self { number, what, effort, lanes }
    }

    fn measure(&mut self, seconds: f64, asked: Option<usize>) {
        for lane in &mut self.lanes {
            match (lane.who.prepare)(self.effort) {
                Ok(body) => lane.body = Some(body),
                Err(why) => lane.why = Some(why.to_string()),
            }
        }
        self.find_batches();
        let start = wall_ns();
        self.round(0);
        let rounds = self.how_many(seconds / ((wall_ns() - start) * 1e-9), asked);
        for number in 1..rounds {
            self.round(number);
        }
        self.lanes.iter_mut().for_each(|l| l.body = None);
        if self.effort != Effort::Smoke {
            self.measure_memory();
        }
    }

    /// Finds out how many passes make a batch long enough, and thereby warms the contenders up.
    fn find_batches(&mut self) {
        let least = if self.effort == Effort::Smoke { 0.0 } else { self.what.batch_ns };
        for lane in &mut self.lanes {
            let Some(body) = &mut lane.body else { continue };
            loop {
                let mut spent = vec![0.0; self.what.figures.len()];
                body(lane.passes, &mut spent);
                if spent[0] >= least || lane.passes >= 1 << 40 {
                    break;
                }
                // Increases the number of passes by a factor of two to eight. One or two such steps
                // suffice.
                let wanted = (least / spent[0].max(1.0) * 1.2).clamp(2.0, 8.0);
                lane.passes = (lane.passes as f64 * wanted) as u64;
            }
        }
    }

    /// Returns the number of rounds. In a short run, heavy experiments have three rounds (two if
    /// the run is late), so that the results have a spread.
    fn how_many(&self, that_fit: f64, asked: Option<usize>) -> usize {
        match (self.effort, asked) {
            (Effort::Smoke, _) => 1,
            (_, Some(asked)) => asked.max(1),
            (Effort::Full, None) => that_fit.clamp(9.0, 41.0) as usize,
            (Effort::Brief, None) if that_fit <= 0.0 => 2,
            (Effort::Brief, None) => that_fit.clamp(3.0, 15.0) as usize,
        }
    }

    fn round(&mut self, number: usize) {
        let count = self.lanes.len();
        for i in 0..count {
            let lane = &mut self.lanes[(i + number) % count];
            let Some(body) = &mut lane.body else { continue };
            let mut spent = vec![0.0; self.what.figures.len()];
            body(lane.passes, &mut spent);
            for (samples, ns) in lane.samples.iter_mut().zip(spent) {
                samples.push(ns / lane.passes as f64 / self.what.ops);
            }
        }
    }

    /// Measures memory in two processes at a time, which do not disturb each other, because memory
    /// does not depend on speed.
    fn measure_memory(&mut self) {
        let able: Vec<usize> =
            (0..self.lanes.len()).filter(|l| self.lanes[*l].why.is_none()).collect();
        for pair in able.chunks(2) {
            let started: Vec<_> = pair
                .iter()
                .map(|l| (*l, child::start(self.number, self.lanes[*l].index, self.effort)))
                .collect();
            for (lane, running) in started {
                self.lanes[lane].memory = running.map(child::wait).unwrap_or_default();
            }
        }
    }

    fn rows(&self, origin: &Provenance) -> Vec<Row> {
        let mut rows = Vec::new();
        for (index, figure) in self.what.figures.iter().enumerate() {
            for lane in &self.lanes {
                let samples = &lane.samples[index];
                let row = Row {
                    suite: "crates".to_string(),
                    contender: lane.who.name.clone(),
                    why: lane.why.clone(),
                    ..Row::of(figure, origin)
                };
                let has_memory = index == 0 && lane.why.is_none() && lane.memory.is_known;
                let summary = (!samples.is_empty()).then(|| summarise(samples));
                rows.push(Row { metric: figure.metric.to_string(), ..row.clone() }.with(summary));
                if has_memory {
                    for (metric, kib) in [
                        ("peak_rss_kib", lane.memory.peak_kib),
                        ("after_rss_kib", lane.memory.after_kib),
                    ] {
                        rows.push(Row { metric: metric.to_string(), ..row.clone() }.once(kib));
                    }
                }
            }
        }
        rows
    }
}

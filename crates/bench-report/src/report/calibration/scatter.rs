//! Makes chart points of pairs of a program and a malloc: the prediction of the replay against the
//! measurement.

use super::pairs::{Figures, Pair, Saving};
use crate::rows::experiment::Machine;
use serde::Serialize;

const MIB: f64 = 1024.0;

/// A chart with a point for each pair.
#[derive(Debug, PartialEq, Serialize)]
pub struct Scatter {
    /// The index of the machine on the page.
    pub machine: usize,
    pub title: &'static str,
    pub unit: &'static str,
    pub points: Vec<Point>,
}

/// The point of a program and a malloc. Savings are relative to glibc; a negative saving is a loss.
#[derive(Debug, PartialEq, Serialize)]
pub struct Point {
    pub program: String,
    pub contender: String,
    pub real: f64,
    pub replayed: f64,
    /// The smallest and the largest saving that the replay predicts for the program.
    pub predicted: Option<(f64, f64)>,
    /// The verdict on the measured saving.
    pub verdict: &'static str,
}

/// Returns the charts of one machine, for CPU time and peak memory. A pair without a figure has no
/// point.
pub fn scatters(machine: usize, calibrated: &Machine) -> Vec<Scatter> {
    let pairs = Figures::of(calibrated).pairs();
    let cpu = pairs.iter().filter_map(|pair| {
        point(pair, pair.real.as_ref(), pair.replayed.as_ref(), pair.predicted, 1.0)
    });
    let memory = pairs.iter().filter_map(|pair| {
        point(pair, pair.real_peak.as_ref(), pair.replayed_peak.as_ref(), None, MIB)
    });
    let all = [
        Scatter { machine, title: "CPU time", unit: "%", points: cpu.collect() },
        Scatter { machine, title: "peak memory", unit: "MiB", points: memory.collect() },
    ];
    all.into_iter().filter(|scatter| !scatter.points.is_empty()).collect()
}

fn point(
    pair: &Pair,
    real: Option<&Saving>,
    replayed: Option<&Saving>,
    predicted: Option<(f64, f64)>,
    unit: f64,
) -> Option<Point> {
    let real = real?;
    Some(Point {
        program: pair.program.clone(),
        contender: pair.allocator.clone(),
        real: tenths(real.median / unit),
        replayed: tenths(replayed?.median / unit),
        predicted: predicted.map(|(low, high)| (tenths(low), tenths(high))),
        verdict: real.verdict.map_or("", |verdict| verdict.words()),
    })
}

/// Rounds a number to tenths. More digits would be noise.
fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

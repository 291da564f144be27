//! Computes the share of a program's CPU time in which its calls were recorded. If only a part of
//! the run was recorded, the recording still has the CPU time of the whole run, and readings of the
//! CPU time from start to end.

use crate::record::part;
use mallard_measure::error::Failure;
use mallard_measure::parse::window;
use mallard_trace::tables::schema::{CPU, EVENTS, THREADS};
use mallard_trace::Trace;
use std::collections::BTreeMap;
use std::time::Duration;

/// A share counts as unknown if its upper limit is more than this multiple of its lower limit.
const INEXACT: f64 = 2.0;

/// The minimum CPU time of a part. A part with less CPU time is mostly the start of the process,
/// and a reading of the CPU time of a running thread is up to a kernel tick old.
const CPU_NS_MIN: f64 = 20e6;

/// The lower limit, the likely value and the upper limit of a figure.
pub type Limits = (f64, f64, f64);

/// Returns the share of the program's CPU time in which its calls were recorded, which is 1 if the
/// whole run was recorded. `None` if the share is unknown.
pub fn recorded_share(trace: &Trace) -> Result<Option<Limits>, Failure> {
    let manifest = trace.manifest();
    let is_cut = manifest.notes.stopped.is_some() || manifest.stream.ending != "complete";
    if !is_cut && manifest.notes.window.is_none() {
        let (events, lost) = (manifest.counts.events as f64, manifest.losses.all() as f64);
        // If only a few events are missing, the shares of the CPU time are relative to the whole
        // run.
        let share = part(manifest).map_or(1.0, |_| events / (events + lost).max(1.0));
        return Ok(Some((share, share, share)));
    }
    let Some((first, last)) = times(trace)? else { return Ok(None) };
    let end = manifest.totals.duration_ns;
    let window = manifest.notes.window.as_ref().and_then(|text| window(text).ok());
    let begins_later = window.as_ref().is_some_and(|window| window.start > Duration::ZERO);
    let ends_later = window.is_some_and(|window| window.end.as_nanos() >= end.max(0) as u128);
    let from = if begins_later { first } else { 0 };
    let to = if ends_later && !is_cut { end } else { last };
    Ok(share_between(&readings(trace)?, from, to))
}

/// Returns the times of the first and the last event. `None` if there is no event.
fn times(trace: &Trace) -> Result<Option<(i64, i64)>, Failure> {
    let events = trace.table(&EVENTS)?;
    let groups = events.groups();
    let (Some(&first), Some(&last)) = (groups.first(), groups.last()) else { return Ok(None) };
    let times = |group| Ok::<_, Failure>(events.group_column(group, "t_ns")?.to_i64());
    let first = times(first)?.and_then(|times| times.into_iter().min());
    Ok(first.zip(times(last)?.and_then(|times| times.into_iter().max())))
}

/// Returns the CPU time readings of each thread, as pairs of time and CPU time in ns. The CPU time
/// is 0 in the first reading and complete in the last reading.
fn readings(trace: &Trace) -> Result<Vec<Vec<(i64, i64)>>, Failure> {
    let (threads, cpu) = (trace.table(&THREADS)?, trace.table(&CPU)?);
    let end = trace.manifest().totals.duration_ns;
    let tids = threads.i64s("tid")?;
    let starts = threads.i64s("t0")?.into_iter().map(|t0| vec![(t0.max(0), 0)]);
    let mut all: BTreeMap<i64, Vec<(i64, i64)>> = tids.iter().copied().zip(starts).collect();
    let times = cpu.i64s("t_ns")?.into_iter().zip(cpu.i64s("cpu_ns")?);
    for (tid, reading) in cpu.i64s("tid")?.into_iter().zip(times) {
        all.entry(tid).or_default().push(reading);
    }
    let ends = threads.i64s("t1")?.into_iter().zip(threads.i64s("cpu_ns")?);
    for (tid, (t1, ns)) in tids.into_iter().zip(ends).filter(|(_, (_, ns))| *ns >= 0) {
        all.entry(tid).or_default().push((if t1 < 0 { end } else { t1 }, ns));
    }
    Ok(all.into_values().collect())
}

/// Returns the share of all CPU time that was used between two moments. `None` if there are too few
/// readings.
fn share_between(threads: &[Vec<(i64, i64)>], from: i64, to: i64) -> Option<Limits> {
    let whole: f64 = threads.iter().filter_map(|of| of.last()).map(|&(_, ns)| ns as f64).sum();
    let parts = threads.iter().map(|of| (at(of, from), at(of, to)));
    let (least, likely, most) = parts.fold((0.0, 0.0, 0.0), |sum, (a, b)| {
        (sum.0 + (b.0 - a.2).max(0.0), sum.1 + (b.1 - a.1), sum.2 + (b.2 - a.0))
    });
    let is_known = likely >= CPU_NS_MIN && most <= INEXACT * least;
    is_known.then(|| (least / whole, likely / whole, (most / whole).min(1.0)))
}

/// Returns the lower limit, an estimate and the upper limit of the CPU time at a moment. The limits
/// are the readings before and after the moment, and the estimate is interpolated.
fn at(readings: &[(i64, i64)], now: i64) -> Limits {
    let after = readings.partition_point(|&(t, _)| t < now);
    let Some(&(t1, ns1)) = readings.get(after.min(readings.len().saturating_sub(1))) else {
        return (0.0, 0.0, 0.0);
    };
    let before = after.checked_sub(1).filter(|_| t1 != now);
    let (t0, ns0) = before.map_or((t1, ns1), |before| readings[before]);
    let part = ((now - t0) as f64 / (t1 - t0).max(1) as f64).clamp(0.0, 1.0);
    (ns0 as f64, ns0 as f64 + part * (ns1 - ns0) as f64, ns1 as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_share_of_a_partial_recording_lies_between_the_surrounding_readings() {
        // The thread has one reading every 10 ms, and uses 5 ms of CPU time between readings.
        let steady: Vec<(i64, i64)> = (0..=100).map(|n| (10 * n, 5 * n)).collect();
        let share = |threads: &[&[(i64, i64)]], from: i64, to: i64| {
            let ms = |&(t, cpu): &(i64, i64)| (t * 1_000_000, cpu * 1_000_000);
            let threads: Vec<Vec<_>> =
                threads.iter().map(|of| of.iter().map(ms).collect()).collect();
            share_between(&threads, from * 1_000_000, to * 1_000_000)
        };
        assert_eq!(share(&[&steady], 0, 1000), Some((1.0, 1.0, 1.0)));
        assert_eq!(share(&[&steady], 205, 495), Some((0.28, 0.29, 0.3)));
        // This thread runs only outside of the recorded part.
        let other = [(600, 0), (700, 500)];
        assert_eq!(share(&[&steady, &other], 205, 495), Some((0.14, 0.145, 0.15)));
        // In these cases there is too little CPU time, or there are too few readings.
        assert_eq!(share(&[&steady], 200, 230), None);
        assert_eq!(share(&[&[(0, 0), (1000, 500)]], 0, 500), None);
        assert_eq!(share(&[&[]], 0, 100), None);
    }
}

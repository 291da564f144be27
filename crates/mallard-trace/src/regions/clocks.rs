//! Reads the CPU time of each thread as a function of time.

use crate::error::Result;
use crate::hash::NumberMap;
use crate::tables::schema::{CPU, THREADS};
use crate::trace::Trace;

/// The CPU time of one thread, interpolated between two readings.
#[derive(Debug, Default, Clone)]
pub(super) struct Clock {
    /// (time, CPU time) of each reading, in nanoseconds.
    points: Vec<(i64, i64)>,
    /// The index of the last reading at or before the time of the previous call of `at`.
    at: usize,
}

impl Clock {
    /// Returns the CPU time at a moment. Calls must be in time order.
    #[inline]
    pub fn at(&mut self, now: i64) -> f64 {
        while self.points.get(self.at + 1).is_some_and(|&(t, _)| t <= now) {
            self.at += 1;
        }
        let Some(&(t0, cpu0)) = self.points.get(self.at) else { return 0.0 };
        let Some(&(t1, cpu1)) = self.points.get(self.at + 1) else { return cpu0 as f64 };
        let part = (now - t0).max(0) as f64 / (t1 - t0).max(1) as f64;
        cpu0 as f64 + part.min(1.0) * (cpu1 - cpu0).max(0) as f64
    }
}

/// The clocks of all threads, by thread ID.
pub(super) struct Clocks {
    by_tid: NumberMap<u32, Clock>,
    /// Whether the trace has CPU times.
    pub is_known: bool,
}

impl Clocks {
    pub fn read(trace: &Trace) -> Result<Clocks> {
        let threads = trace.table(&THREADS)?;
        let cpu = trace.table(&CPU)?;
        let mut by_tid: NumberMap<u32, Clock> = NumberMap::default();
        let tids = threads.i64s("tid")?;
        for (&tid, t0) in tids.iter().zip(threads.i64s("t0")?) {
            by_tid.entry(tid as u32).or_default().points.push((t0.max(0), 0));
        }
        let readings = cpu.i64s("t_ns")?.into_iter().zip(cpu.i64s("tid")?);
        for ((t, tid), ns) in readings.zip(cpu.i64s("cpu_ns")?) {
            by_tid.entry(tid as u32).or_default().points.push((t, ns));
        }
        let ends = threads.i64s("t1")?.into_iter().zip(threads.i64s("cpu_ns")?);
        for (&tid, (t1, ns)) in tids.iter().zip(ends) {
            let points = &mut by_tid.entry(tid as u32).or_default().points;
            if ns >= 0 && t1 > points.last().map_or(0, |&(t, _)| t) {
                points.push((t1, ns));
            }
        }
        let is_known = by_tid.values().any(|clock| clock.points.len() > 1);
        Ok(Clocks { by_tid, is_known })
    }

    /// Removes and returns the clock of a thread. A thread without a clock has used no CPU time.
    pub fn take(&mut self, tid: i32) -> Clock {
        self.by_tid.remove(&(tid as u32)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_grows_evenly_between_two_readings() {
        let mut clock = Clock { points: vec![(0, 0), (100, 50), (200, 50), (300, 100)], at: 0 };
        let at = [-5, 50, 100, 150, 250, 900].map(|now| clock.at(now));
        assert_eq!(at, [0.0, 25.0, 50.0, 50.0, 75.0, 100.0]);
        assert_eq!(Clock::default().at(7), 0.0);
    }
}

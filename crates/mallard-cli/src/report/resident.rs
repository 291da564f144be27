//! The resident memory of the program over time, as the system reported it.

use mallard_measure::error::Failure;
use mallard_trace::tables::schema::{PROCESSES, SAMPLES};
use mallard_trace::Trace;
use std::collections::BTreeMap;

/// The samples of the resident bytes of all processes.
pub struct Resident {
    /// For each process, its samples in order, as pairs of time and resident bytes.
    samples: BTreeMap<i64, Vec<(i64, i64)>>,
    /// The time at which each process exited.
    ends: BTreeMap<i64, i64>,
}

impl Resident {
    /// Reads the samples of a trace.
    pub fn read(trace: &Trace) -> Result<Resident, Failure> {
        let table = trace.table(&SAMPLES)?;
        let rows = table.i64s("t_ns")?.into_iter().zip(table.i64s("proc")?);
        let mut samples: BTreeMap<i64, Vec<(i64, i64)>> = BTreeMap::new();
        for ((t_ns, process), rss) in rows.zip(table.i64s("rss")?).filter(|&(_, rss)| rss >= 0) {
            samples.entry(process).or_default().push((t_ns, rss));
        }
        samples.values_mut().for_each(|samples| samples.sort_unstable());
        let processes = trace.table(&PROCESSES)?;
        let ends = processes.i64s("proc")?.into_iter().zip(processes.i64s("t1")?);
        Ok(Resident { samples, ends: ends.filter(|&(_, t1)| t1 >= 0).collect() })
    }

    /// Returns the resident bytes of all processes at a moment, interpolated linearly between
    /// samples. `None` if no running process has a sample at that moment or before.
    pub fn at(&self, t_ns: i64) -> Option<i64> {
        let of_process = |(process, samples): (&i64, &Vec<(i64, i64)>)| {
            let is_over = self.ends.get(process).is_some_and(|&end| end < t_ns);
            (!is_over).then(|| between(samples, t_ns)).flatten()
        };
        let parts: Vec<i64> = self.samples.iter().filter_map(of_process).collect();
        (!parts.is_empty()).then(|| parts.iter().sum())
    }

    /// Returns the highest sample of a single process.
    pub fn highest(&self) -> i64 {
        self.samples.values().flatten().map(|&(_, rss)| rss).max().unwrap_or(0)
    }

    /// Returns whether there is no sample.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }
}

/// Returns the resident bytes at a moment, interpolated linearly between the samples before and
/// after that moment.
fn between(samples: &[(i64, i64)], t_ns: i64) -> Option<i64> {
    let after = samples.partition_point(|&(t, _)| t <= t_ns);
    let &(t0, before) = samples[..after].last()?;
    let Some(&(t1, next)) = samples.get(after) else { return Some(before) };
    let part = i128::from(t_ns - t0) * i128::from(next - before) / i128::from((t1 - t0).max(1));
    Some(before + part as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_each_process_counts_from_its_first_sample_to_its_exit() {
        let samples = BTreeMap::from([
            (1, vec![(10, 100), (20, 200), (30, 200)]),
            (2, vec![(15, 1000), (25, 1000)]),
        ]);
        let resident = Resident { samples, ends: BTreeMap::from([(2, 26)]) };
        assert_eq!(resident.at(9), None);
        assert_eq!(resident.at(10), Some(100));
        assert_eq!(resident.at(15), Some(1150));
        assert_eq!(resident.at(26), Some(1200));
        assert_eq!(resident.at(27), Some(200));
        assert_eq!(resident.at(1000), Some(200));
        assert_eq!(resident.highest(), 1000);
    }
}

//! Accumulates the figures of each candidate's instances. An instance is added when it ends.

use super::instance::Ended;
use super::region::{Lane, Quantiles};
use crate::hash::NumberMap;

/// The maximum number of a candidate's instances from which quantiles of peak, total and duration
/// are computed. If there are more instances, a random sample of this size is used.
const SAMPLES_MAX: usize = 2048;
/// The maximum number of different sequences of sizes that are counted for a candidate.
pub(super) const INPUTS_MAX: usize = 1000;

/// The cost in ns of recording an event, and the cost of a free.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Costs {
    pub recording_ns: f64,
    pub free_ns: f64,
    /// Whether the CPU time of threads is known.
    pub has_cpu: bool,
}

/// The sums over a candidate's instances with one kind of end.
#[derive(Default)]
pub(super) struct Tally {
    pub instances: u64,
    pub unfinished: u64,
    threads: NumberMap<u32, ()>,
    last_thread: Option<u32>,
    inputs: NumberMap<u64, ()>,
    /// Peak, total and duration of each sampled instance.
    samples: Vec<[u64; 3]>,
    max: [u64; 3],
    lanes: Vec<Lane>,
    random: u64,
    pub peaks: f64,
    pub totals: f64,
    pub cpu_ns: f64,
    pub teardown_ns: f64,
    /// The number of frees that wink-out would make unnecessary.
    pub final_frees: u64,
}

impl Tally {
    /// Adds an instance. `tid` is the thread of the instance.
    pub fn add(&mut self, of: &Ended, tid: i32, lanes_max: usize, costs: &Costs) {
        self.instances += 1;
        self.unfinished += u64::from(!of.is_finished);
        if self.last_thread != Some(of.thread) {
            self.last_thread = Some(of.thread);
            self.threads.insert(of.thread, ());
        }
        if self.inputs.len() < INPUTS_MAX {
            self.inputs.insert(of.signature, ());
        }
        let teardown_ns = teardown(of, costs);
        self.peaks += of.peak as f64;
        self.totals += of.bytes as f64;
        self.cpu_ns += of.cpu_ns;
        self.teardown_ns += teardown_ns;
        self.final_frees += of.run.own + of.run.foreign;
        let numbers = [of.peak, of.bytes, (of.t1 - of.t0).max(0) as u64];
        for (max, number) in self.max.iter_mut().zip(numbers) {
            *max = number.max(*max);
        }
        if let Some(place) = self.place(SAMPLES_MAX) {
            put(&mut self.samples, place, numbers);
        }
        if let Some(place) = self.place(lanes_max) {
            put(&mut self.lanes, place, lane(of, tid, teardown_ns));
        }
    }

    /// Decides whether the latest instance enters a random sample of at most `most` instances.
    /// Returns its index in the sample, or `None` if it is not chosen. All instances have the same
    /// probability (reservoir sampling).
    fn place(&mut self, most: usize) -> Option<usize> {
        if self.instances <= most as u64 {
            return Some(self.instances as usize - 1);
        }
        self.random = crate::hash::mix(self.random.wrapping_add(self.instances));
        let place = self.random % self.instances;
        (place < most as u64).then_some(place as usize)
    }

    /// Returns the number of threads that had an instance.
    pub fn threads(&self) -> u32 {
        self.threads.len() as u32
    }

    /// Returns the number of different sequences of sizes that instances allocated.
    pub fn inputs(&self) -> u64 {
        self.inputs.len() as u64
    }

    /// Returns the quantiles of peak, total and duration over the instances.
    pub fn quantiles(&self) -> [Quantiles; 3] {
        [0, 1, 2].map(|which| {
            let mut values: Vec<u64> = self.samples.iter().map(|sample| sample[which]).collect();
            values.sort_unstable();
            let at = |share: f64| {
                let wanted = (share * values.len() as f64).ceil().max(1.0) as usize;
                values.get(wanted - 1).copied().unwrap_or(0) as f64
            };
            Quantiles { p50: at(0.5), p90: at(0.9), max: self.max[which] as f64 }
        })
    }

    /// Returns the instances that were chosen to be shown, in time order.
    pub fn lanes(&self) -> Vec<Lane> {
        let mut lanes = self.lanes.clone();
        lanes.sort_by_key(|lane| (lane.t0, lane.thread));
        lanes
    }
}

fn put<T>(list: &mut Vec<T>, place: usize, value: T) {
    match list.get_mut(place) {
        Some(old) => *old = value,
        None => list.push(value),
    }
}

/// Returns the maximum time that wink-out can save at the end of an instance. This is the time from
/// the first to the last of the final frees, but at most the CPU time of the thread, without the
/// time that the recorder used.
fn teardown(of: &Ended, costs: &Costs) -> f64 {
    let run = &of.run;
    if run.own == 0 {
        return 0.0;
    }
    let wall = (run.last - run.first).max(0) as f64;
    let cpu = if costs.has_cpu { (run.cpu_last - run.cpu_first).max(0.0) } else { wall };
    let recording = (run.own - 1) as f64 * costs.recording_ns;
    (wall.min(cpu) - recording).max(0.0) + costs.free_ns
}

fn lane(of: &Ended, tid: i32, teardown_ns: f64) -> Lane {
    Lane {
        thread: tid,
        t0: of.t0,
        t1: of.t1,
        blocks: of.blocks,
        bytes: of.bytes,
        escapes: of.left_blocks,
        teardown_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_exact_for_few_instances_and_approximate_for_many() {
        let mut tally = Tally::default();
        for number in 0..100_000u64 {
            let peak = number * 7919 % 100_000;
            let ended = Ended { peak, signature: number % 5, ..Ended::default() };
            tally.add(&ended, 1, 40, &Costs::default());
            if number == 4 {
                let [peaks, ..] = tally.quantiles();
                assert_eq!(peaks, Quantiles { p50: 15_838.0, p90: 31_676.0, max: 31_676.0 });
            }
        }
        let [peaks, ..] = tally.quantiles();
        let is_near = |value: f64, wanted: f64| (value - wanted).abs() < 5000.0;
        assert!(is_near(peaks.p50, 50_000.0) && is_near(peaks.p90, 90_000.0), "{peaks:?}");
        assert_eq!((peaks.max, tally.lanes().len(), tally.inputs()), (99_999.0, 40, 5));
    }
}

//! Measures the wall time and the peak memory of each stage of `mallard advise`, for the JSON
//! output.

use mallard_measure::process::proc::{self, Process};
use serde::Serialize;
use std::time::Instant;

/// One stage of the command.
#[derive(Serialize)]
struct Stage {
    name: &'static str,
    seconds: f64,
    /// The peak RSS of this command from its start to the end of the stage, in KiB, without child
    /// processes. `None` if the kernel does not report it.
    peak_rss_kib: Option<u64>,
}

/// The stages of one command, in the order in which they finished.
#[derive(Default, Serialize)]
#[serde(transparent)]
pub struct Stages {
    all: Vec<Stage>,
}

impl Stages {
    /// Runs a stage, and records its time and its memory.
    pub fn time<T>(&mut self, name: &'static str, work: impl FnOnce() -> T) -> T {
        let begin = Instant::now();
        let result = work();
        let seconds = begin.elapsed().as_secs_f64();
        self.all.push(Stage { name, seconds, peak_rss_kib: peak_kib() });
        result
    }
}

/// Returns the peak RSS of this process, in KiB. No stage resets the peak by writing 5 to
/// /proc/self/clear_refs, because that would also change the peak that /usr/bin/time shows for this
/// command.
fn peak_kib() -> Option<u64> {
    Some(proc::status_bytes(Process::This, "VmHWM:")? / 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_is_reported_with_its_duration_and_peak_memory() {
        const KIB: u64 = 128 << 10;
        let mut stages = Stages::default();
        stages.time("large", || std::hint::black_box(vec![1u8; (KIB << 10) as usize]).len());
        assert_eq!(stages.time("small", || 7), 7);
        let [large, small] = &stages.all[..] else { panic!("not two stages") };
        assert_eq!((large.name, small.name), ("large", "small"));
        assert!(large.seconds > small.seconds && small.seconds >= 0.0);
        assert!(large.peak_rss_kib.unwrap() > KIB, "{:?}", large.peak_rss_kib);
        assert!(small.peak_rss_kib >= large.peak_rss_kib, "{:?}", small.peak_rss_kib);
    }
}

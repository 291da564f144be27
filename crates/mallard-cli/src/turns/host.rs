//! What disturbs measurements on this machine.

use crate::output::units::{bytes, plural};
use std::fs;
use std::path::{Path, PathBuf};

/// The largest load average of other processes that needs no note.
const LOAD_MAX: f64 = 0.7;
/// A change of the processor's frequency, as a share, from which on a note is written.
const FREQUENCY_CHANGE: f64 = 0.1;

/// The state of the machine when a measurement began.
pub struct Host {
    load: Option<f64>,
    throttled: u64,
    frequency: Option<f64>,
}

impl Host {
    /// Reads the state now.
    pub fn now() -> Host {
        Host { load: load(), throttled: throttled(), frequency: frequency() }
    }

    /// What was found, and what has changed since. Call it when the measurement has ended.
    pub fn notes(&mut self) -> Vec<String> {
        let mut notes = Vec::new();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        if cores < 2 {
            notes.push(
                "one core: the program shares it with mallard and other processes".to_string(),
            );
        }
        if let Some(load) = self.load.filter(|&load| load > LOAD_MAX) {
            notes.push(format!(
                "other processes were running: the load average was {load:.1} on {cores} cores"
            ));
        }
        if let Some(cores) = quota() {
            let times = plural(throttled().saturating_sub(self.throttled), "time");
            notes.push(format!("the cgroup may use {cores:.1} cores, and was stopped {times}"));
        }
        if let Some(limit) = memory_limit() {
            notes.push(format!("the cgroup may use {} of memory", bytes(limit)));
        }
        notes.extend(self.frequencies());
        let randomize = fs::read_to_string("/proc/sys/kernel/randomize_va_space");
        if randomize.is_ok_and(|text| text.trim() == "0") {
            notes.push(
                "addresses are not random here: the intervals do not include what addresses change"
                    .to_string(),
            );
        }
        notes
    }

    fn frequencies(&self) -> Option<String> {
        let governor = fs::read_to_string(cpu0().join("scaling_governor")).ok();
        if let (Some(before), Some(after)) = (self.frequency, frequency()) {
            if (after / before - 1.0).abs() > FREQUENCY_CHANGE {
                let (before, after) = (before / 1e6, after / 1e6);
                return Some(format!(
                    "the frequency of the processor went from {before:.1} to {after:.1} GHz"
                ));
            }
        }
        let governor = governor?.trim().to_string();
        (governor != "performance").then(|| {
            format!("the frequency of the processor may change: its governor is {governor}")
        })
    }
}

fn load() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

fn cpu0() -> PathBuf {
    PathBuf::from("/sys/devices/system/cpu/cpu0/cpufreq")
}

/// The frequency of the first core in kHz.
fn frequency() -> Option<f64> {
    fs::read_to_string(cpu0().join("scaling_cur_freq")).ok()?.trim().parse().ok()
}

/// The folders of the cgroup of this process and of those above it.
fn cgroups() -> Vec<PathBuf> {
    let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = text.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let root = Path::new("/sys/fs/cgroup");
    let own = root.join(own);
    own.ancestors().take_while(|folder| folder.starts_with(root)).map(Path::to_path_buf).collect()
}

/// The least number of cores that a cgroup allows; `None` if no limit is set.
fn quota() -> Option<f64> {
    let limits = cgroups()
        .into_iter()
        .filter_map(|folder| parse_quota(&fs::read_to_string(folder.join("cpu.max")).ok()?));
    limits.min_by(f64::total_cmp)
}

fn parse_quota(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
}

fn memory_limit() -> Option<u64> {
    let limits = cgroups().into_iter().filter_map(|folder| {
        fs::read_to_string(folder.join("memory.max")).ok()?.trim().parse().ok()
    });
    limits.min()
}

/// How often the cgroups were stopped because their time was used up.
fn throttled() -> u64 {
    let counts = cgroups().into_iter().filter_map(|folder| {
        let text = fs::read_to_string(folder.join("cpu.stat")).ok()?;
        text.lines().find_map(|line| line.strip_prefix("nr_throttled ")?.parse::<u64>().ok())
    });
    counts.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_a_number_of_cores() {
        assert_eq!(parse_quota("150000 100000\n"), Some(1.5));
        assert_eq!(parse_quota("max 100000\n"), None);
        assert_eq!(parse_quota(""), None);
    }
}

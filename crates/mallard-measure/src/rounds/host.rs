//! Finds what disturbs measurements on this machine, such as a high load.

use crate::output::units::{bytes, plural};
use std::fs;
use std::path::{Path, PathBuf};

/// The load average of other processes above which a note is printed.
const LOAD_MAX: f64 = 0.7;
/// The relative change of the processor's frequency above which a note is printed.
const FREQUENCY_CHANGE: f64 = 0.1;
/// The directory with one subdirectory for each core, relative to the root.
const CPUS: &str = "sys/devices/system/cpu";

/// The state of the machine at the start of a measurement.
pub struct Host {
    /// The root directory, which contains /proc and /sys.
    root: PathBuf,
    load: Option<f64>,
    throttled: u64,
    frequency: Option<f64>,
}

impl Host {
    /// Reads the current state.
    pub fn now() -> Host {
        Host::under(Path::new("/"))
    }

    fn under(root: &Path) -> Host {
        Host {
            load: load(root),
            throttled: throttled(root),
            frequency: frequency(root),
            root: root.to_path_buf(),
        }
    }

    /// Returns notes on the machine, and on changes since the start. Call it after the measurement.
    pub fn notes(&mut self) -> Vec<String> {
        let mut notes = Vec::new();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        if cores < 2 {
            notes.push(
                "there is only one core, which the program shares with mallard and other processes"
                    .to_string(),
            );
        }
        if let Some(load) = self.load.filter(|&load| load > LOAD_MAX) {
            notes.push(format!(
                "other processes were running: the load average was {load:.1} on {cores} cores"
            ));
        }
        if let Some(cores) = quota(&self.root) {
            let times = plural(throttled(&self.root).saturating_sub(self.throttled), "time");
            notes.push(format!("the cgroup may use {cores:.1} cores, and was throttled {times}"));
        }
        if let Some(limit) = memory_limit(&self.root) {
            notes.push(format!("the cgroup may use {} of memory", bytes(limit)));
        }
        notes.extend(self.frequencies());
        let randomize = fs::read_to_string(self.root.join("proc/sys/kernel/randomize_va_space"));
        if randomize.is_ok_and(|text| text.trim() == "0") {
            notes.push(
                "addresses are not randomized here, so the intervals do not include the effect of addresses"
                    .to_string(),
            );
        }
        notes
    }

    fn frequencies(&self) -> Option<String> {
        let cpu0 = self.root.join(CPUS).join("cpu0");
        let governor = fs::read_to_string(cpu0.join("cpufreq/scaling_governor")).ok();
        if let (Some(before), Some(after)) = (self.frequency, frequency(&self.root)) {
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

fn load(root: &Path) -> Option<f64> {
    fs::read_to_string(root.join("proc/loadavg")).ok()?.split(' ').next()?.parse().ok()
}

/// Returns the mean frequency of the cores in kHz.
fn frequency(root: &Path) -> Option<f64> {
    let cores = fs::read_dir(root.join(CPUS)).ok()?.filter_map(Result::ok);
    let of_core = |core: fs::DirEntry| {
        let text = fs::read_to_string(core.path().join("cpufreq/scaling_cur_freq")).ok()?;
        text.trim().parse::<f64>().ok()
    };
    let all: Vec<f64> = cores.filter_map(of_core).collect();
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
}

/// Returns the directories of this process's cgroup and of the cgroups above it.
fn cgroups(root: &Path) -> Vec<PathBuf> {
    let text = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let own = text.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let root = root.join("sys/fs/cgroup");
    let own = root.join(own);
    own.ancestors().take_while(|folder| folder.starts_with(&root)).map(Path::to_path_buf).collect()
}

/// Returns the smallest number of CPU cores to which these cgroups are limited. `None` without a
/// limit.
fn quota(root: &Path) -> Option<f64> {
    let limits = cgroups(root)
        .into_iter()
        .filter_map(|folder| parse_quota(&fs::read_to_string(folder.join("cpu.max")).ok()?));
    limits.min_by(f64::total_cmp)
}

fn parse_quota(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
}

fn memory_limit(root: &Path) -> Option<u64> {
    let limits = cgroups(root).into_iter().filter_map(|folder| {
        fs::read_to_string(folder.join("memory.max")).ok()?.trim().parse().ok()
    });
    limits.min()
}

/// Returns how often these cgroups were throttled because they used up their CPU quota.
fn throttled(root: &Path) -> u64 {
    let counts = cgroups(root).into_iter().filter_map(|folder| {
        let text = fs::read_to_string(folder.join("cpu.stat")).ok()?;
        text.lines().find_map(|line| line.strip_prefix("nr_throttled ")?.parse::<u64>().ok())
    });
    counts.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, file: &str, text: &str) {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn notes_after(change: impl Fn(&Path)) -> String {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        write(root, "proc/loadavg", "0.10 0.20 0.30 1/100 1234\n");
        write(root, "proc/self/cgroup", "0::/pod/app\n");
        write(root, "sys/fs/cgroup/pod/cpu.max", "150000 100000\n");
        write(root, "sys/fs/cgroup/pod/cpu.stat", "usage_usec 5\nnr_periods 9\nnr_throttled 4\n");
        for core in ["cpu0", "cpu1"] {
            write(root, &format!("{CPUS}/{core}/cpufreq/scaling_cur_freq"), "3000000\n");
            write(root, &format!("{CPUS}/{core}/cpufreq/scaling_governor"), "performance\n");
        }
        let mut host = Host::under(root);
        change(root);
        host.notes().join("\n")
    }

    #[test]
    fn cpu_quota_throttling_during_a_measurement_is_noted() {
        let calm = notes_after(|_| ());
        assert!(calm.contains("may use 1.5 cores, and was throttled 0 times"), "{calm}");
        let stat = |root: &Path| write(root, "sys/fs/cgroup/pod/cpu.stat", "nr_throttled 11\n");
        assert!(notes_after(stat).contains("was throttled 7 times"));
        let limit = |root: &Path| write(root, "sys/fs/cgroup/pod/app/memory.max", "1073741824\n");
        assert!(notes_after(limit).contains("may use 1.0 GiB of memory"));
    }

    #[test]
    fn a_change_of_cpu_frequency_during_a_measurement_is_noted() {
        assert!(!notes_after(|_| ()).contains("frequency"));
        let file = format!("{CPUS}/cpu1/cpufreq/scaling_cur_freq");
        let noted = notes_after(|root| write(root, &file, "2000000\n"));
        assert!(noted.contains("went from 3.0 to 2.5 GHz"), "{noted}");
        let governor = format!("{CPUS}/cpu0/cpufreq/scaling_governor");
        let noted = notes_after(|root| write(root, &governor, "schedutil\n"));
        assert!(noted.contains("its governor is schedutil"), "{noted}");
    }

    #[test]
    fn cpu_time_of_other_processes_during_a_measurement_is_noted() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "proc/loadavg", "2.50 1.00 0.50 3/100 1234\n");
        let notes = Host::under(folder.path()).notes().join("\n");
        assert!(notes.contains("the load average was 2.5"), "{notes}");
    }

    #[test]
    fn a_cpu_quota_is_converted_to_a_number_of_cores() {
        assert_eq!(parse_quota("150000 100000\n"), Some(1.5));
        assert_eq!(parse_quota("max 100000\n"), None);
        assert_eq!(parse_quota(""), None);
    }
}

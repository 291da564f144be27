//! One result (a row), in the form that all suites print, in C++ and in Rust.

use super::statistics::Summary;
use super::Figure;
use serde::Serialize;
use std::process::Command;

/// One result. Lower is better for every metric. If the contender cannot run the case, there is no
/// value, and `why` has the reason.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Row {
    pub suite: String,
    pub case: String,
    pub contender: String,
    pub threads: usize,
    pub metric: String,
    pub median: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub runs: usize,
    pub commit: String,
    pub machine: String,
    pub command: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub variant: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Row {
    pub fn of(figure: &Figure, origin: &Provenance) -> Self {
        Self {
            case: figure.case.clone(),
            variant: figure.variant.to_string(),
            threads: figure.threads,
            commit: origin.commit.clone(),
            machine: origin.machine.clone(),
            command: origin.command.clone(),
            ..Self::default()
        }
    }

    pub fn with(self, figure: Option<Summary>) -> Self {
        let Some(s) = figure else { return self };
        let of = |value| Some(rounded(value));
        Self { median: of(s.median), low: of(s.low), high: of(s.high), runs: s.runs, ..self }
    }

    pub fn once(self, value: f64) -> Self {
        self.with(Some(Summary { median: value, low: value, high: value, runs: 1 }))
    }

    pub fn is_ours(&self) -> bool {
        self.contender.starts_with("mallard/")
    }
}

/// Rounds to four significant digits, because more digits would be noise, and people read the
/// results.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let scale = 10f64.powf(3.0 - value.abs().log10().floor());
    (value * scale).round() / scale
}

/// Facts about a run that are repeated in every result of the run.
pub struct Provenance {
    pub commit: String,
    pub machine: String,
    pub command: String,
}

impl Provenance {
    pub fn of_this_run() -> Self {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let command = format!("./x bench crates {}", arguments.join(" ")).trim_end().to_string();
        Self { commit: commit(), machine: machine(), command }
    }
}

fn first_line_of(command: &str) -> String {
    let output = Command::new("sh").args(["-c", command]).output();
    let text = output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
    text.lines().next().unwrap_or("").to_string()
}

fn commit() -> String {
    let hash = first_line_of("git rev-parse --short HEAD 2>/dev/null");
    if hash.is_empty() || hash == "HEAD" {
        return "unknown".to_string();
    }
    let is_dirty = !first_line_of("git status --porcelain -uno 2>/dev/null").is_empty();
    if is_dirty {
        hash + "-dirty"
    } else {
        hash
    }
}

/// Describes the machine: processor, CPUs, caches and kernel, in the same words as the C++ suites.
/// Adds the compiler.
fn machine() -> String {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find(|l| l.starts_with("model name"));
    let processor = model.and_then(|l| l.split_once(": ")).map_or("unknown processor", |l| l.1);
    // SAFETY: sysconf only reads numbers.
    let number = |what| unsafe { libc::sysconf(what) };
    let cache = |name: &str, what| match number(what) {
        bytes if bytes > 0 => format!(", {name} {} KiB", bytes >> 10),
        _ => String::new(),
    };
    format!(
        "{processor}, {} CPUs{}{}{}, {}, {}",
        number(libc::_SC_NPROCESSORS_ONLN),
        cache("L1d", libc::_SC_LEVEL1_DCACHE_SIZE),
        cache("L2", libc::_SC_LEVEL2_CACHE_SIZE),
        cache("L3", libc::_SC_LEVEL3_CACHE_SIZE),
        first_line_of("uname -srm"),
        env!("MALLARD_BENCH_RUSTC"),
    )
}

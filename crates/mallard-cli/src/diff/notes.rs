//! Makes remarks for the user if two traces are hard to compare.

use crate::output::missing::{incomplete, losses};
use crate::record::recorded;
use mallard_measure::output::shell::concerns_malloc;
use mallard_measure::output::units::count;
use mallard_trace::manifest::Manifest;
use std::ffi::OsString;

/// Returns sentences about differences other than the allocations (program, environment, sampling,
/// window), and about missing data.
pub fn of(before: &Manifest, after: &Manifest) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(programs(before, after));
    if of_malloc(before) != of_malloc(after) {
        notes.push("the runs differ in environment variables that configure malloc".to_string());
    }
    if before.stream.sample_bytes != after.stream.sample_bytes {
        notes.push(format!(
            "the traces were sampled in different ways: {} and {}",
            sampled(before),
            sampled(after)
        ));
    } else if before.stream.sample_bytes > 0 {
        notes.push(format!("all figures are estimates: {}", sampled(before)));
    }
    if before.notes.window != after.notes.window {
        notes.push("the traces cover different parts of their runs".to_string());
    }
    for (which, manifest) in [("before", before), ("after", after)] {
        notes.extend(missing(which, manifest));
    }
    notes
}

/// Returns the environment variables that change how a program allocates, in the order of their
/// names.
fn of_malloc(manifest: &Manifest) -> Vec<(String, OsString)> {
    let concerns = |name: &str| {
        concerns_malloc(name) || name.starts_with("LD_PRELOAD") || name.starts_with("MALLARD_")
    };
    let mut all: Vec<_> =
        recorded::variables(manifest).filter(|(name, _)| concerns(name)).collect();
    all.sort();
    all
}

/// Returns a remark if the traces are of different programs or arguments. The directory of the
/// program may differ, as it does between two builds.
fn programs(before: &Manifest, after: &Manifest) -> Option<String> {
    let name = |manifest: &Manifest| {
        let path = recorded::path(&manifest.notes.program)?;
        Some(path.file_name().unwrap_or_default().to_string_lossy().into_owned())
    };
    let (name_before, name_after) = (name(before), name(after));
    if name_before != name_after {
        let shown = |name: Option<String>| name.unwrap_or_else(|| "an unknown program".to_string());
        let (before, after) = (shown(name_before), shown(name_after));
        return Some(format!("the programs are different: {before} and {after}"));
    }
    let arguments =
        |manifest: &Manifest| recorded::words(manifest).map(|words| words[1..].to_vec());
    (arguments(before) != arguments(after))
        .then(|| "the programs had different arguments".to_string())
}

fn sampled(manifest: &Manifest) -> String {
    match manifest.stream.sample_bytes {
        0 => "every block".to_string(),
        bytes => format!("one block every {} bytes", count(bytes)),
    }
}

fn missing(which: &str, manifest: &Manifest) -> Vec<String> {
    let lacks = losses(manifest).into_iter().map(|what| format!("{which}: the trace lacks {what}"));
    lacks.chain(incomplete(manifest).into_iter().map(|what| format!("{which}: {what}"))).collect()
}

//! The largest part of a program's CPU time that any allocator could save.

use mallard_trace::manifest::Manifest;
use serde_json::Value;

/// The shares of the CPU time that malloc's family and page faults take, together at most 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shares {
    /// Calls of malloc's family.
    pub calls: f64,
    /// Page faults.
    pub faults: f64,
}

/// The share of the CPU time that calls of malloc's family and page faults take. No allocator can save
/// more, apart from locality. `None` for a sampled trace, or a trace without the notes of `mallard
/// record`.
pub fn bound(manifest: &Manifest) -> Option<f64> {
    shares(manifest).map(|shares| (shares.calls + shares.faults).min(1.0))
}

/// The two parts of [`bound`].
pub fn shares(manifest: &Manifest) -> Option<Shares> {
    let note = |name: &str| manifest.notes.get(name).and_then(Value::as_f64);
    let cpu_ns = note("user_ns")? + note("system_ns")?;
    if manifest.stream.sample_bytes != 0 || cpu_ns <= 0.0 {
        return None;
    }
    let recording = note("recording_ns_per_event")? * manifest.counts.events as f64;
    let calls = manifest.totals.sites.call_ns as f64 + free_ns(manifest, note("ns_per_free")?);
    let faults = note("minor_faults")? * note("ns_per_fault")?;
    // The time of recording is an estimate, which can be too large on a busy machine. The rest is at
    // least the time of the calls and page faults.
    let all = (cpu_ns - recording).max(calls + faults).max(1.0);
    Some(Shares { calls: calls / all, faults: faults / all })
}

/// The CPU time of all frees. If no free was timed, because the program has so few, a free counts as
/// much as an allocation.
fn free_ns(manifest: &Manifest, each: f64) -> f64 {
    let frees = (manifest.counts.frees + manifest.counts.unknown_frees) as f64;
    if each > 0.0 {
        return each * frees;
    }
    let allocations = manifest.counts.allocations.max(1) as f64;
    manifest.totals.sites.call_ns as f64 / allocations * frees
}

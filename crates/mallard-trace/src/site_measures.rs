//! Computes the rows of the table `sites` from counts that the import of a trace updates at each
//! event.

use crate::histogram::{log_bound, size_bound};
use crate::measures;
use crate::site_row::SiteRow;
use crate::sites::{Finished, Site};
use crate::slices::{CpuTime, Slices, Width, SLICES};
use rayon::prelude::*;

/// Returns the rows of all sites, and the row for the whole program.
pub(crate) fn rows(finished: Finished, cpu: &CpuTime, threads: usize) -> (Vec<SiteRow>, SiteRow) {
    let Finished { mut sites, mut whole, width, .. } = finished;
    let (width, cpu_ns) = cpu_slices(cpu, width);
    let peak = whole.peak_bytes;
    let row = |site: &mut Site| row(site, width, &cpu_ns, threads, peak);
    let mut rows: Vec<SiteRow> = sites.par_iter_mut().map(row).collect();
    rows.sort_unstable_by_key(|row| row.stack);
    let whole = row(&mut whole);
    (rows, whole)
}

/// Returns the CPU time of each slice. If only the total is known, all slices get an equal share.
fn cpu_slices(cpu: &CpuTime, width: Width) -> (Width, [f64; SLICES]) {
    let mut slices: Slices = cpu.slices.clone();
    let width = if cpu.width > width { cpu.width } else { width };
    let mut counts = *slices.counts(width);
    let sum: f64 = counts.iter().sum();
    let total = cpu.total_ns.unwrap_or(0) as f64;
    if sum > 0.0 {
        counts.iter_mut().for_each(|count| *count *= total / sum);
    } else {
        counts = [total / SLICES as f64; SLICES];
    }
    (width, counts)
}

fn row(
    site: &mut Site,
    width: Width,
    cpu_ns: &[f64; SLICES],
    threads: usize,
    peak: f64,
) -> SiteRow {
    let whole = |number: f64| number.round() as i64;
    let pages = site.pages_at_peak();
    let (size_min, size_max) = site.size_range;
    let size = |share| {
        let bound = site.sizes.quantile(share).map_or(0, size_bound);
        bound.clamp(size_min, size_max) as i64
    };
    let life = |share| {
        site.lives.quantile(share).map(|bucket| log_bound(bucket).min(i64::MAX as u64) as i64)
    };
    let classes: Vec<f64> = site.sizes.sorted().into_iter().map(|(_, count)| count).collect();
    let at_peak = whole(site.peak_allocs);
    SiteRow {
        stack: site.node as i32,
        allocs: whole(site.allocs),
        bytes: whole(site.bytes),
        frees: whole(site.frees),
        failed: site.failed,
        reallocs: whole(site.reallocs),
        live_allocs: whole(site.live_allocs + site.left.0),
        live_bytes: whole(site.live_bytes + site.left.1),
        peak_bytes: whole(site.peak_bytes),
        peak_allocs: at_peak,
        peak_t: site.peak_t,
        at_peak_bytes: whole(site.at_peak_bytes),
        cross_thread_frees: whole(site.cross_thread),
        short_lived: whole(site.short_lived),
        call_ns: site.call_ns,
        timed_calls: site.timed,
        size_min: size_min as i64,
        size_p50: size(0.5),
        size_p90: size(0.9),
        size_p99: size(0.99),
        size_max: size_max as i64,
        alignments: i64::from(site.alignment_count()),
        life_p50: life(0.5),
        life_p90: life(0.9),
        life_p99: life(0.99),
        peak_share: if peak > 0.0 { site.at_peak_bytes / peak } else { 0.0 },
        d: measures::density(site.recorded, site.ops.counts(width), cpu_ns),
        v: measures::variation(site.recorded_allocs, &classes),
        l: measures::locality(at_peak, &pages),
        u: measures::utilisation(
            site.recorded_allocs,
            site.peak_bytes,
            site.bytes,
            site.squares.1,
            site.squares.2,
        ),
        c: measures::contention(site.timed, site.overlaps.0, site.overlaps.1, threads),
        f: measures::fragmentability(at_peak, &pages),
    }
}

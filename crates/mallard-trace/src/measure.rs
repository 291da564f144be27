//! Computes the rows of the table `sites` from what was counted while the events passed by, and from
//! the addresses in the table `allocs`.

use crate::duck::{self, Pages, OBSERVATIONS_MIN, PAGE_BYTES};
use crate::error::Result;
use crate::hash::NumberMap;
use crate::histogram::{log_bound, size_bound};
use crate::site_row::SiteRow;
use crate::sites::{Finished, Site};
use crate::slices::{CpuTime, Slices, Width, SLICES};
use crate::tables::schema::ALLOCS;
use crate::tables::Table;
use rayon::prelude::*;
use std::path::Path;

/// The most touched pages that are in memory at once, 16 bytes each. If there are more, `allocs` is
/// read several times, each time for some of the sites.
const PAGES_MAX: f64 = (1 << 24) as f64;

/// Returns the rows of all sites, and that of the whole program. `folder` has the table `allocs`.
pub(crate) fn rows(
    finished: Finished,
    cpu: &CpuTime,
    threads: usize,
    folder: &Path,
) -> Result<(Vec<SiteRow>, SiteRow)> {
    let Finished { mut sites, mut whole, width, .. } = finished;
    let pages = pages_at_peaks(&sites, &whole, folder)?;
    let (width, cpu_ns) = cpu_slices(cpu, width);
    let peak = whole.peak_bytes;
    let row = |site: &mut Site, pages: &Pages| row(site, pages, width, &cpu_ns, threads, peak);
    let mut rows: Vec<SiteRow> =
        sites.par_iter_mut().zip(&pages[1..]).map(|(site, pages)| row(site, pages)).collect();
    rows.sort_unstable_by_key(|row| row.stack);
    let whole = row(&mut whole, &pages[0]);
    Ok((rows, whole))
}

/// The CPU time of the slices. If only the sum is known, all slices get an equal share.
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
    pages: &Pages,
    width: Width,
    cpu_ns: &[f64; SLICES],
    threads: usize,
    peak: f64,
) -> SiteRow {
    let whole = |number: f64| number.round() as i64;
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
        d: duck::density(site.recorded, site.ops.counts(width), cpu_ns),
        v: duck::variation(site.recorded_allocs, &classes),
        l: duck::locality(at_peak, pages),
        u: duck::utilization(
            site.recorded_allocs,
            site.peak_bytes,
            site.bytes,
            site.squares.1,
            site.squares.2,
        ),
        c: duck::contention(site.timed, site.overlaps.0, site.overlaps.1, threads),
        f: duck::fragmentability(at_peak, pages),
    }
}

/// Identifies the blocks that were in use at a peak: see [`Site::peak_next`].
#[derive(Clone, Copy)]
struct Peak {
    next: i64,
    rows: i64,
}

/// Returns the pages that blocks touched at the peak of the whole program, and then those of each
/// site at the peak of the site. They are empty for sites with too few blocks.
fn pages_at_peaks(sites: &[Site], whole: &Site, folder: &Path) -> Result<Vec<Pages>> {
    let mut all = vec![Pages::default(); sites.len() + 1];
    let table = Table::open(folder, &ALLOCS)?;
    // Index 0 is the whole program, the sites follow.
    let mut wanted: Vec<usize> = std::iter::once(whole)
        .chain(sites)
        .enumerate()
        .filter(|(_, site)| site.peak_allocs >= OBSERVATIONS_MIN as f64)
        .map(|(index, _)| index)
        .collect();
    let site_at = |index: usize| if index == 0 { whole } else { &sites[index - 1] };
    while !wanted.is_empty() {
        let mut sum = 0.0;
        let fits = |index: &&usize| {
            // A block shares at most two pages with other blocks, its first and its last.
            sum += 2.0 * site_at(**index).peak_allocs;
            sum <= PAGES_MAX
        };
        let count = wanted.iter().take_while(fits).count().max(1);
        let group: Vec<usize> = wanted.drain(..count).collect();
        let peak_of = |index: usize| {
            let site = site_at(index);
            Peak { next: site.peak_next, rows: site.peak_rows }
        };
        let program = group.contains(&0).then(|| peak_of(0));
        let of_sites = group.iter().filter(|&&index| index > 0);
        let by_node: NumberMap<u32, (u32, Peak)> = of_sites
            .map(|&index| (sites[index - 1].node, (index as u32, peak_of(index))))
            .collect();
        collect_pages(&table, program, &by_node, &mut all)?;
    }
    Ok(all)
}

/// Reads `allocs` once, for some of the sites.
fn collect_pages(
    table: &Table,
    program: Option<Peak>,
    by_node: &NumberMap<u32, (u32, Peak)>,
    all: &mut [Pages],
) -> Result<()> {
    // Site, page, and bytes of the page that a block has.
    let mut touched: Vec<(u32, u64, u32)> = Vec::new();
    let mut row = 0;
    for group in table.groups() {
        let column = |name| Ok(table.group_column(group, name)?.to_i64().expect("integers"));
        let (ids, nodes) = (column("alloc")?, column("stack0")?);
        let (addresses, sizes) = (column("addr")?, column("size")?);
        for (((id, node), addr), size) in ids.into_iter().zip(nodes).zip(addresses).zip(sizes) {
            let is_in_use = |peak: &Peak| id < peak.next && row >= peak.rows;
            let mut touch = |index: u32| {
                touch(addr as u64, size as u64, |page, bytes| touched.push((index, page, bytes)))
            };
            if program.as_ref().is_some_and(is_in_use) {
                all[0].add(touch(0), PAGE_BYTES);
            }
            if let Some((index, peak)) = by_node.get(&(node as u32)) {
                if is_in_use(peak) {
                    all[*index as usize].add(touch(*index), PAGE_BYTES);
                }
            }
            row += 1;
        }
    }
    touched.par_sort_unstable();
    for page in touched.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        let bytes = page.iter().map(|&(_, _, bytes)| u64::from(bytes)).sum();
        all[page[0].0 as usize].add(1, bytes);
    }
    Ok(())
}

/// Passes the first and the last page of a block to `each`, with the bytes of the block in them.
/// Returns how many pages are between, which no other block can touch.
fn touch(addr: u64, size: u64, mut each: impl FnMut(u64, u32)) -> u64 {
    if size == 0 {
        return 0;
    }
    let end = addr.saturating_add(size);
    let (first, last) = (addr / PAGE_BYTES, (end - 1) / PAGE_BYTES);
    if first == last {
        each(first, size as u32);
        return 0;
    }
    each(first, (PAGE_BYTES - addr % PAGE_BYTES) as u32);
    each(last, (end - last * PAGE_BYTES) as u32);
    last - first - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_touches_its_first_and_last_page_and_has_those_between() {
        let pages = |addr, size| {
            let mut seen = Vec::new();
            let between = touch(addr, size, |page, bytes| seen.push((page, bytes)));
            (seen, between)
        };
        assert_eq!(pages(4096, 4096), (vec![(1, 4096)], 0));
        assert_eq!(pages(4090, 10), (vec![(0, 6), (1, 4)], 0));
        assert_eq!(pages(4095, 4096 * 3 + 2), (vec![(0, 1), (4, 1)], 3));
        assert_eq!(pages(4096, 0), (vec![], 0));
    }
}

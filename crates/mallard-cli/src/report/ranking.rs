//! Orders sites by how much they matter, and adds up the least important sites.

use mallard_trace::SiteRow;
use std::cmp::Reverse;

/// The maximum number of sites that are kept as single sites.
pub const SITES_MAX: usize = 100_000;

/// The sites of a trace. The most important site comes first.
pub struct Ranked {
    /// The sites that are kept, in order.
    pub kept: Vec<SiteRow>,
    /// The sums of the sites that are not kept.
    pub others: SiteRow,
    /// The number of sites that are not kept.
    pub other_count: usize,
}

impl Ranked {
    /// Orders sites by their largest share of the whole program, over all sums. Of two sites with
    /// the same share, the site with more bytes comes first, so that the order seldom depends on
    /// the numbers of call stacks.
    pub fn of(mut sites: Vec<SiteRow>, whole: &SiteRow) -> Ranked {
        let key = |site: &SiteRow| {
            let share = share(site, whole);
            (Reverse((share * 1e12) as u64), Reverse(site.bytes), site.stack)
        };
        sites.sort_by_cached_key(key);
        let others = sites.split_off(sites.len().min(SITES_MAX));
        sites.shrink_to_fit();
        let mut ranked =
            Ranked { kept: sites, others: SiteRow::default(), other_count: others.len() };
        others.iter().for_each(|site| add(&mut ranked.others, site));
        ranked
    }

    /// Returns the sums and the number of all sites beyond the first `count`.
    pub fn others_beyond(&self, count: usize) -> (SiteRow, usize) {
        let mut others = self.others.clone();
        let left_out = self.kept.get(count..).unwrap_or_default();
        left_out.iter().for_each(|site| add(&mut others, site));
        (others, self.other_count + left_out.len())
    }
}

/// Returns the sums over which [`share`] finds the largest share.
fn sums(site: &SiteRow) -> [i64; 7] {
    [
        site.bytes,
        site.allocs,
        site.at_peak_bytes,
        site.short_lived,
        site.live_bytes,
        site.cross_thread_frees,
        site.call_ns,
    ]
}

/// Returns the largest share of the whole program that a site has in any of its sums.
fn share(site: &SiteRow, whole: &SiteRow) -> f64 {
    let shares = sums(site).into_iter().zip(sums(whole));
    let shares = shares.filter(|&(_, all)| all > 0).map(|(part, all)| part as f64 / all as f64);
    shares.fold(0.0, f64::max)
}

/// Adds the sums of a site.
fn add(to: &mut SiteRow, site: &SiteRow) {
    let add = |to: &mut i64, more: i64| *to = to.saturating_add(more);
    add(&mut to.bytes, site.bytes);
    add(&mut to.allocs, site.allocs);
    add(&mut to.at_peak_bytes, site.at_peak_bytes);
    add(&mut to.short_lived, site.short_lived);
    add(&mut to.live_bytes, site.live_bytes);
    add(&mut to.cross_thread_frees, site.cross_thread_frees);
    add(&mut to.call_ns, site.call_ns);
    add(&mut to.frees, site.frees);
    add(&mut to.reallocs, site.reallocs);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(stack: i32, bytes: i64, allocs: i64) -> SiteRow {
        SiteRow { stack, bytes, allocs, ..SiteRow::default() }
    }

    #[test]
    fn sites_are_ranked_by_their_blocks_as_well_as_by_their_bytes() {
        let sites = vec![site(1, 10, 10), site(2, 900, 1), site(3, 90, 89)];
        let ranked = Ranked::of(sites, &site(0, 1000, 100));
        let order: Vec<i32> = ranked.kept.iter().map(|site| site.stack).collect();
        assert_eq!(order, [2, 3, 1]);
        let (others, count) = ranked.others_beyond(1);
        assert_eq!((others.bytes, others.allocs, count), (100, 99, 2));
        assert_eq!(ranked.others_beyond(3).1, 0);
    }

    #[test]
    fn sites_beyond_the_limit_are_summed_up() {
        let sites = (0..SITES_MAX as i32 + 10).map(|stack| site(stack, 1, 1)).collect();
        let ranked = Ranked::of(sites, &site(0, 1, 1));
        let (others, count) = ranked.others_beyond(SITES_MAX);
        assert_eq!((ranked.kept.len(), others.allocs, count), (SITES_MAX, 10, 10));
    }
}

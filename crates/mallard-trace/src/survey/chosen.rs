//! Computes the figures of the chosen sites.

use super::heat::CELLS;
use super::map::{Granules, Layout};
use crate::hash::NumberMap;
use crate::walk::{Block, Live};

/// The maximum number of chosen sites.
pub const SITES_MAX: usize = 300;

/// The figures of one chosen site.
#[derive(Debug, Clone, Default)]
pub struct SiteSurvey {
    /// The bytes in use at each of [`super::Survey::site_moments`].
    pub live: Vec<f64>,
    /// Blocks by size and lifetime, as pairs of a cell index in [`super::Heat::all`] and a count.
    pub heat: Vec<(usize, f64)>,
    /// The number of frees for each pair of threads, in the form of [`super::Survey::frees`].
    pub frees: Vec<(usize, usize, f64)>,
    /// The fill level of each cell of the address map with blocks of this site, at the peak of the
    /// program. Empty if the site had no blocks in use at the peak.
    pub map: Vec<u8>,
}

/// A chosen site.
struct Site {
    live: f64,
    moments: Vec<f64>,
    heat: [f64; CELLS],
    frees: NumberMap<u32, f64>,
    /// The bytes of the site that were in use at the peak of the program, by address.
    peak: Granules,
}

/// The chosen sites.
pub(super) struct Chosen {
    sites: Vec<Site>,
    index_of: NumberMap<u32, u32>,
    moments: Vec<i64>,
    /// The moments that the pass has not reached yet. The next moment is the last element.
    coming: Vec<i64>,
}

impl Chosen {
    /// Prepares the figures of sites for a run of `end_ns` nanoseconds. `nodes` are the call stacks
    /// of the sites.
    pub fn new(nodes: &[u32], end_ns: i64, moments: usize) -> Chosen {
        let nodes = &nodes[..nodes.len().min(SITES_MAX)];
        let parts = moments.max(2) as i128 - 1;
        let moment = |part: i128| (i128::from(end_ns) * part / parts) as i64;
        let mut moments: Vec<i64> = (0..=parts).map(moment).collect();
        moments.dedup();
        let site = |_: &u32| Site {
            live: 0.0,
            moments: Vec::with_capacity(moments.len()),
            heat: [0.0; CELLS],
            frees: NumberMap::default(),
            peak: Granules::default(),
        };
        Chosen {
            sites: nodes.iter().map(site).collect(),
            index_of: nodes.iter().copied().zip(0..).collect(),
            coming: moments.iter().rev().copied().collect(),
            moments,
        }
    }

    #[inline]
    fn of(&mut self, node: u32) -> Option<&mut Site> {
        let &index = self.index_of.get(&node)?;
        Some(&mut self.sites[index as usize])
    }

    /// Stores the bytes in use at each moment before the next event, whose time is `t_ns`.
    #[inline]
    pub fn before(&mut self, t_ns: i64) {
        while self.coming.last().is_some_and(|&next| next < t_ns) {
            self.coming.pop();
            self.sites.iter_mut().for_each(|site| site.moments.push(site.live));
        }
    }

    #[inline]
    pub fn change(&mut self, node: u32, bytes: f64) {
        if let Some(site) = self.of(node) {
            site.live += bytes;
        }
    }

    #[inline]
    pub fn heat(&mut self, block: &Block, cell: usize) {
        if let Some(site) = self.of(block.node) {
            site.heat[cell] += f64::from(block.weight);
        }
    }

    #[inline]
    pub fn free(&mut self, block: &Block, (from, to): (u8, u8)) {
        if let Some(site) = self.of(block.node) {
            let pair = u32::from(from) << 8 | u32::from(to);
            *site.frees.entry(pair).or_default() += f64::from(block.weight);
        }
    }

    /// Stores which blocks are in use, in granules of 2^`shift` bytes. Must be called at the peak
    /// of the program.
    pub fn peak(&mut self, live: &Live, shift: u32) {
        self.sites.iter_mut().for_each(|site| site.peak = Granules::new(shift));
        for block in live.iter().filter(|block| block.addr != 0) {
            if let Some(site) = self.of(block.node) {
                site.peak.add(block.addr, block.size, 1);
            }
        }
    }

    /// Sets the bytes in use of each site to 0.
    pub fn clear(&mut self) {
        self.sites.iter_mut().for_each(|site| site.live = 0.0);
    }

    /// Returns the moments at which the bytes in use are stored.
    pub fn moments(&self) -> &[i64] {
        &self.moments
    }

    /// Returns the figures of the sites, in the order of `nodes`.
    pub fn finish(self, layout: &Layout) -> Vec<SiteSurvey> {
        self.sites.into_iter().map(|site| site.finish(layout)).collect()
    }
}

impl Site {
    fn finish(self, layout: &Layout) -> SiteSurvey {
        let heat = self.heat.iter().copied().enumerate();
        let pair =
            |(&pair, &count): (&u32, &f64)| ((pair >> 8) as usize, (pair & 0xff) as usize, count);
        let mut frees: Vec<_> = self.frees.iter().map(pair).collect();
        frees.sort_unstable_by_key(|&(from, to, _)| (from, to));
        let map = if self.peak.bytes.is_empty() {
            Vec::new()
        } else {
            layout.fill(self.peak.shift, self.peak.bytes.iter())
        };
        SiteSurvey {
            live: self.moments,
            heat: heat.filter(|&(_, count)| count > 0.0).collect(),
            frees,
            map,
        }
    }
}

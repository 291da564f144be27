//! Computes the figures for a report about the blocks of a program: bytes in use over time, sizes
//! and lifetimes, frees by pairs of threads, and addresses.
//!
//! One pass over the events computes all figures, for the whole program and for a few chosen sites.
//! The pass uses at most 64 MiB of memory, in addition to the memory of [`crate::walk`].

mod chosen;
mod frees;
mod heat;
mod map;
mod timeline;

pub use chosen::{SiteSurvey, SITES_MAX};
pub use frees::{ThreadSums, THREADS_MAX};
pub use heat::{Heat, LIVES, SIZES};
pub use map::AddressMap;
pub use timeline::Timeline;

use crate::error::Result;
use crate::trace::Trace;
use crate::walk::{walk, Block, Cause, Limits, Live, Visitor};
use chosen::Chosen;
use frees::Frees;
use map::Map;
use timeline::Highest;

/// The settings of a survey.
#[derive(Debug, Clone)]
pub struct Options {
    /// The chosen sites, as nodes of the table `stacks`. At most [`SITES_MAX`]. The survey computes
    /// a [`SiteSurvey`] for each.
    pub sites: Vec<u32>,
    /// The maximum number of moments in the timeline.
    pub moments: usize,
    /// The maximum number of moments for which the bytes in use are stored for each chosen site.
    pub site_moments: usize,
    /// The maximum number of moments in the address map.
    pub map_moments: usize,
    /// The maximum number of cells in the address map.
    pub cells: usize,
    /// Limits of the pass over the events.
    pub limits: Limits,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            sites: Vec::new(),
            moments: 800,
            site_moments: 100,
            map_moments: 40,
            cells: 1500,
            limits: Limits::default(),
        }
    }
}

/// The results of a survey. Counts and bytes are weighted. They are estimates if the trace is
/// sampled.
#[derive(Debug, Clone)]
pub struct Survey {
    /// Bytes in use over time.
    pub timeline: Timeline,
    /// Blocks by size and lifetime.
    pub heat: Heat,
    /// The threads with the most events. The last entry may be the totals of all other threads.
    pub threads: Vec<ThreadSums>,
    /// The number of frees for each pair of threads, as (index of the allocating thread, index of
    /// the freeing thread, number of frees). The indices are those of `threads`.
    pub frees: Vec<(usize, usize, f64)>,
    /// The addresses of the blocks over time.
    pub map: AddressMap,
    /// The moments for which [`SiteSurvey::live`] has values.
    pub site_moments: Vec<i64>,
    /// The figures of the chosen sites, in the order of [`Options::sites`].
    pub sites: Vec<SiteSurvey>,
    /// The sampling rate of small blocks: one in this many was included. Greater than 1 if too many
    /// blocks were in use.
    pub one_in: u32,
}

/// Computes the figures of a survey from the events of a trace.
pub fn survey(trace: &Trace, options: &Options) -> Result<Survey> {
    let mut surveyor = Surveyor::new(trace, options)?;
    let walked = walk(trace, options.limits, &mut surveyor)?;
    let live = walked.live.iter();
    live.for_each(|block| surveyor.leave(block));
    Ok(surveyor.finish(walked.last_ns, walked.one_in, options))
}

struct Surveyor {
    live: f64,
    timeline: Highest,
    heat: Heat,
    frees: Frees,
    map: Map,
    chosen: Chosen,
    peak: Peak,
}

/// The peak of the bytes in use, from the manifest.
struct Peak {
    t_ns: i64,
    bytes: i64,
    is_over: bool,
}

impl Peak {
    /// Returns whether the bytes in use have their peak just before the next event, whose time is
    /// `t_ns`.
    #[inline]
    fn was_reached(&self, t_ns: i64, live: f64) -> bool {
        !self.is_over
            && t_ns >= self.t_ns
            && (t_ns > self.t_ns || live.round() as i64 >= self.bytes)
    }
}

impl Surveyor {
    fn new(trace: &Trace, options: &Options) -> Result<Surveyor> {
        let totals = &trace.manifest().totals;
        let end_ns = totals.duration_ns.max(0);
        let sites = &totals.sites;
        Ok(Surveyor {
            live: 0.0,
            timeline: Highest::new(end_ns, options.moments),
            heat: Heat::default(),
            frees: Frees::read(trace)?,
            map: Map::new(end_ns, options.map_moments),
            chosen: Chosen::new(&options.sites, end_ns, options.site_moments),
            peak: Peak { t_ns: sites.peak_t, bytes: sites.peak_bytes, is_over: false },
        })
    }

    /// Counts a block that is in use at the end of the recording.
    fn leave(&mut self, block: &Block) {
        let cell = heat::cell(block.size, None);
        self.heat.add(cell, block);
        self.chosen.heat(block, cell);
    }

    fn finish(self, last_ns: i64, one_in: u32, options: &Options) -> Survey {
        let (map, layout) = self.map.finish(options.cells);
        let (threads, frees) = self.frees.finish();
        Survey {
            timeline: self.timeline.finish(last_ns),
            heat: self.heat,
            threads,
            frees,
            map,
            site_moments: self.chosen.moments().to_vec(),
            sites: self.chosen.finish(&layout),
            one_in,
        }
    }
}

impl Visitor for Surveyor {
    #[inline]
    fn before(&mut self, t_ns: i64, live: &Live) {
        if self.peak.was_reached(t_ns, self.live) {
            self.peak.is_over = true;
            self.map.peak(self.peak.t_ns);
            self.chosen.peak(live, self.map.shift());
        }
        self.map.before(t_ns);
        self.chosen.before(t_ns);
        self.timeline.before(t_ns);
    }

    #[inline]
    fn begin(&mut self, block: &Block) {
        self.live += block.bytes();
        self.timeline.note(block.t0, self.live);
        self.frees.begin(block);
        self.map.add(block.addr, block.size, 1);
        self.chosen.change(block.node, block.bytes());
    }

    fn resize(&mut self, t_ns: i64, block: &Block, from: u64) {
        let bytes = block.bytes() - f64::from(block.weight) * from as f64;
        self.live += bytes;
        self.timeline.note(t_ns, self.live);
        self.map.add(block.addr, from, -1);
        self.map.add(block.addr, block.size, 1);
        self.chosen.change(block.node, bytes);
    }

    #[inline]
    fn end(&mut self, t_ns: i64, block: &Block, cause: Cause) {
        self.live -= block.bytes();
        self.timeline.note(t_ns, self.live);
        self.map.add(block.addr, block.size, -1);
        self.chosen.change(block.node, -block.bytes());
        let life = t_ns.saturating_sub(block.t0).max(0);
        let cell = heat::cell(block.size, Some(life).filter(|_| cause != Cause::ProcessEnd));
        self.heat.add(cell, block);
        self.chosen.heat(block, cell);
        if let Cause::Call(by) = cause {
            let pair = self.frees.end(block, by);
            self.chosen.free(block, pair);
        }
    }

    fn recount(&mut self, live: &Live) {
        self.live = live.iter().map(Block::bytes).sum();
        self.map.clear();
        self.chosen.clear();
        for block in live.iter() {
            self.map.add(block.addr, block.size, 1);
            self.chosen.change(block.node, block.bytes());
        }
    }
}

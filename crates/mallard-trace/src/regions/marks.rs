//! Tracks the regions that the program marks, whose instances have exact ends.
//!
//! A program without marks has no cost here. The blocks of marked regions are tracked separately
//! from those of the candidates, since any allocation may be inside a marked region.

use super::clocks::Clock;
use super::follow::{Following, Thread};
use super::places::{ListSum, MarkedPlaces, Places};
use super::region::Limits;
use super::tally::{Costs, Tally};
use crate::format::Kind;
use crate::hash::NumberMap;
use crate::instances;
use crate::rows::Row;

/// The maximum number of marked regions. The marks of further regions are ignored.
const REGIONS_MAX: usize = 4096;

/// The marked regions that are open on a thread.
#[derive(Default)]
struct ThreadMarks {
    open: instances::Marks<u16>,
    /// The index of the list of these regions.
    list: u32,
}

/// All marked regions.
pub(super) struct Marks {
    /// For each region, the node of the table `stacks` that represents its name.
    pub nodes: Vec<u32>,
    pub places: MarkedPlaces,
    pub following: Following,
    numbers: NumberMap<u32, u16>,
    /// The states of threads that have set a mark, by thread index.
    threads: Vec<Option<ThreadMarks>>,
}

impl Marks {
    pub fn new(limits: Limits, costs: Costs) -> Marks {
        let mut places = MarkedPlaces::default();
        places.list_of(&[]); // list 0 means outside of all marked regions
        Marks {
            nodes: Vec::new(),
            places,
            following: Following::new(0, 1, limits, costs),
            numbers: NumberMap::default(),
            threads: Vec::new(),
        }
    }

    /// Handles a mark, which begins or ends a region on a thread. `clock` is the clock of the
    /// thread.
    pub fn mark(&mut self, row: &Row, index: usize, clock: &Clock) {
        let Some(region) = self.number(row.stack as u32) else { return };
        if self.threads.len() <= index {
            self.threads.resize_with(index + 1, || None);
            self.following.threads.resize_with(index + 1, Thread::default);
        }
        let thread = self.threads[index].get_or_insert_with(|| {
            let clock = clock.clone();
            self.following.threads[index] = Thread { tid: row.tid, clock, ..Thread::default() };
            ThreadMarks::default()
        });
        let mut is_over = false;
        thread.open.step(Kind::of(row.op), region, |_| is_over = true);
        thread.list = self.places.list_of(thread.open.open());
        let lists = self.places.lists();
        self.following.lists.resize(lists, ListSum::default());
        self.following.threads[index].opened.seen(row.t_ns);
        if is_over {
            let open = self.places.members(thread.list);
            self.following.end(index, true, |opened, clock, mut ended| {
                opened.end_unless(open, clock, &mut ended);
            });
        }
    }

    /// Returns the index of a region, by the node that represents its name. Returns `None` if there
    /// are too many regions.
    fn number(&mut self, node: u32) -> Option<u16> {
        if let Some(&number) = self.numbers.get(&node) {
            return Some(number);
        }
        let number = self.nodes.len();
        if number >= REGIONS_MAX {
            return None;
        }
        self.nodes.push(node);
        self.following.tallies.push(Tally::default());
        self.numbers.insert(node, number as u16);
        Some(number as u16)
    }

    /// Ends all instances of a thread that has exited.
    pub fn end_thread(&mut self, index: usize) {
        if let Some(thread) = self.threads.get_mut(index).and_then(Option::as_mut) {
            *thread = ThreadMarks::default();
            self.following.end_thread(index, true);
        }
    }

    /// Adds a block, if its thread is inside of a marked region.
    pub fn allocate(&mut self, row: &Row, index: usize) {
        let thread = self.threads.get(index).and_then(Option::as_ref);
        let Some(list) = thread.map(|thread| thread.list).filter(|&list| list != 0) else { return };
        let place = self.places.place_of(list, row.stack.max(0) as u32);
        self.following.allocate(&self.places, row, index, (place, list));
        self.following.threads[index].opened.seen(row.t_ns);
    }

    /// Handles the free of a block by the thread `by`.
    pub fn free(&mut self, row: &Row, by: usize) {
        let freed = self.following.free(&self.places, row, by);
        if freed.is_some_and(|freed| freed.thread == by) {
            self.following.threads[by].opened.seen(row.t_ns);
        }
    }

    /// Handles a realloc of a block.
    pub fn resize(&mut self, row: &Row) {
        self.following.resize(&self.places, row);
    }

    /// Ends all instances, and counts the blocks in use.
    pub fn finish(&mut self) {
        self.following.finish(&self.places);
    }
}

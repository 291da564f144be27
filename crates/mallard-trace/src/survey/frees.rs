//! Which threads free the blocks of which threads.

use crate::error::Result;
use crate::tables::schema::THREADS;
use crate::trace::Trace;
use crate::walk::Block;

/// The most threads of a survey, the sum of all others included.
pub const THREADS_MAX: usize = 64;

/// What one thread, or all others together, did.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadSums {
    /// The number of the thread in the table `threads`. `None`: all threads that are not listed.
    pub tid: Option<i32>,
    /// Its name.
    pub name: String,
    /// Blocks that it allocated.
    pub allocs: f64,
    /// Blocks that it freed.
    pub frees: f64,
}

/// Counts frees by pairs of threads.
pub(super) struct Frees {
    threads: Vec<ThreadSums>,
    /// The place in `threads` of each row of the table `threads`.
    places: Vec<u8>,
    /// The place of a thread that is not in the table.
    others: u8,
    /// One count for each pair of places.
    counts: Vec<f64>,
}

impl Frees {
    /// Lists the threads with the most events.
    pub fn read(trace: &Trace) -> Result<Frees> {
        let table = trace.table(&THREADS)?;
        let tids = table.i64s("tid")?;
        let (names, events) = (table.texts("name")?, table.i64s("events")?);
        let mut order: Vec<usize> = (0..tids.len()).filter(|&row| events[row] > 0).collect();
        order.sort_by_key(|&row| (std::cmp::Reverse(events[row]), tids[row]));
        let has_others = order.len() > THREADS_MAX;
        order.truncate(if has_others { THREADS_MAX - 1 } else { THREADS_MAX });
        order.sort_by_key(|&row| tids[row]);
        let sums = |tid, name| ThreadSums { tid, name, allocs: 0.0, frees: 0.0 };
        let mut threads: Vec<ThreadSums> =
            order.iter().map(|&row| sums(Some(tids[row] as i32), names[row].clone())).collect();
        let others = threads.len() as u8;
        threads.push(sums(None, "others".to_string()));
        let mut places = vec![others; tids.len()];
        order.iter().zip(0..).for_each(|(&row, place)| places[row] = place);
        let counts = vec![0.0; threads.len() * threads.len()];
        Ok(Frees { threads, places, others, counts })
    }

    #[inline]
    fn place(&self, thread: u32) -> usize {
        usize::from(self.places.get(thread as usize).copied().unwrap_or(self.others))
    }

    #[inline]
    pub fn begin(&mut self, block: &Block) {
        let place = self.place(block.thread);
        self.threads[place].allocs += f64::from(block.weight);
    }

    /// Counts a free. Returns the pair of threads.
    #[inline]
    pub fn end(&mut self, block: &Block, by: u32) -> (u8, u8) {
        let (from, to) = (self.place(block.thread), self.place(by));
        self.threads[to].frees += f64::from(block.weight);
        self.counts[from * self.threads.len() + to] += f64::from(block.weight);
        (from as u8, to as u8)
    }

    /// Returns the threads, and the pairs whose count is not 0. The others are left out if they did
    /// nothing.
    pub fn finish(mut self) -> (Vec<ThreadSums>, Vec<(usize, usize, f64)>) {
        let count = self.threads.len();
        let pair = |(at, &number): (usize, &f64)| (at / count, at % count, number);
        let pairs = self.counts.iter().enumerate().map(pair);
        let pairs = pairs.filter(|&(_, _, number)| number > 0.0).collect();
        if self.threads.last().is_some_and(|others| others.allocs == 0.0 && others.frees == 0.0) {
            self.threads.pop();
        }
        (self.threads, pairs)
    }
}

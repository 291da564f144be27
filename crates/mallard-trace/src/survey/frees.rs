//! Counts frees by the allocating thread and the freeing thread.

use crate::error::Result;
use crate::tables::schema::THREADS;
use crate::trace::Trace;
use crate::walk::Block;

/// The maximum number of thread entries in a survey, including the entry for all other threads.
pub const THREADS_MAX: usize = 64;

/// The numbers of allocations and frees of one thread, or of all threads that have no separate
/// entry.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadSums {
    /// The thread, as in the column `tid` of the table `threads`. `None` for all threads without a
    /// separate entry.
    pub tid: Option<i32>,
    /// The name of the thread.
    pub name: String,
    /// The number of blocks that the thread allocated.
    pub allocs: f64,
    /// The number of blocks that the thread freed.
    pub frees: f64,
}

/// Counts frees for each pair of threads.
pub(super) struct Frees {
    threads: Vec<ThreadSums>,
    /// The index in `threads` for each row of the table `threads`.
    places: Vec<u8>,
    /// The index in `threads` of the entry for all other threads.
    others: u8,
    /// The number of frees for each pair of threads, as a matrix with a row for each allocating
    /// thread and a column for each freeing thread.
    counts: Vec<f64>,
}

impl Frees {
    /// Reads the threads. The threads with the most events get separate entries.
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

    /// Counts a free. Returns the indices of the allocating thread and the freeing thread.
    #[inline]
    pub fn end(&mut self, block: &Block, by: u32) -> (u8, u8) {
        let (from, to) = (self.place(block.thread), self.place(by));
        self.threads[to].frees += f64::from(block.weight);
        self.counts[from * self.threads.len() + to] += f64::from(block.weight);
        (from as u8, to as u8)
    }

    /// Returns the threads, and the pairs of threads with frees. Leaves out the entry for all other
    /// threads if they allocated and freed no blocks.
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

//! Tracks the instances of all candidates in one pass over the events.

use super::candidates::Candidates;
use super::clocks::{Clock, Clocks};
use super::drained::Draining;
use super::follow::{Following, Thread};
use super::instance::Ended;
use super::marks::Marks;
use super::places::key;
use super::region::Limits;
use super::tally::{Costs, Tally};
use crate::error::Result;
use crate::format::{is_family, is_mark, op};
use crate::hash::NumberMap;
use crate::lifetimes::{join, Left, ThreadRow, Visitor};
use crate::rows::{read_ahead, Row, Wanted};
use crate::tables::schema::EVENTS;
use crate::threads::{Indices, Process};
use crate::trace::Trace;

/// The results of the pass over the events.
#[derive(Default)]
pub(super) struct Passed {
    /// For each candidate, the sums over its instances with `End::Sure`, and over their blocks.
    pub sure: Following,
    /// For each candidate, the sums over its instances with `End::Drained`.
    pub drained: Vec<Tally>,
    /// The number of blocks, by the list of candidates and the call stack that freed the block.
    /// [`key`] packs both into a key.
    pub freed: NumberMap<u64, u64>,
    /// The number of frees without a call stack.
    pub frees_without_stack: u64,
    pub other_processes: u64,
    pub has_cpu: bool,
    /// Number of calls of malloc and related functions.
    pub calls: u64,
    /// The regions that the program marks, if any.
    pub marks: Option<Marks>,
}

pub(super) struct Pass<'a> {
    candidates: &'a Candidates,
    clocks: Clocks,
    indices: Indices,
    /// The open instances with `End::Drained` of each thread, and the number of its remaining
    /// events.
    threads: Vec<(Draining, u64)>,
    events_of: NumberMap<u32, u64>,
    passed: Passed,
    last_t: i64,
}

impl<'a> Pass<'a> {
    /// Reads all events of the process that used the most CPU time.
    pub fn over(trace: &Trace, candidates: &'a Candidates, limits: Limits) -> Result<Passed> {
        let process = Process::read(trace, None)?;
        let mut pass = Pass::new(trace, candidates, limits, &process)?;
        let wanted =
            Wanted { proc: process.others > 0, stack: true, fresh: true, ..Wanted::default() };
        read_ahead(&trace.table(&EVENTS)?, wanted, |rows| {
            for row in 0..rows.len() {
                if rows.process(row).is_none_or(|of| Some(of) == process.number) {
                    pass.row(&rows.row(row));
                }
            }
            Ok(())
        })?;
        Ok(pass.finish())
    }

    fn new(
        trace: &Trace,
        candidates: &'a Candidates,
        limits: Limits,
        process: &Process,
    ) -> Result<Self> {
        let notes = &trace.manifest().notes;
        let clocks = Clocks::read(trace)?;
        let costs = Costs {
            recording_ns: notes.recording_ns_per_event.unwrap_or(0.0),
            free_ns: notes.ns_per_free.unwrap_or(0.0),
            has_cpu: clocks.is_known,
        };
        let (count, lists) = (candidates.all.len(), candidates.entries.lists());
        Ok(Pass {
            candidates,
            indices: Indices::default(),
            threads: Vec::new(),
            events_of: process.threads.iter().map(|of| (of.tid as u32, of.events)).collect(),
            passed: Passed {
                sure: Following::new(count, lists, limits, costs),
                drained: (0..count).map(|_| Tally::default()).collect(),
                other_processes: process.others,
                has_cpu: clocks.is_known,
                ..Passed::default()
            },
            clocks,
            last_t: 0,
        })
    }

    #[cold]
    fn add_thread(&mut self, tid: i32) -> usize {
        let index = self.threads.len();
        self.indices.insert_first(tid, index);
        let events = self.events_of.get(&(tid as u32)).copied();
        self.threads.push((Draining::default(), events.unwrap_or(u64::MAX)));
        let thread = Thread { tid, clock: self.clocks.take(tid), ..Thread::default() };
        self.passed.sure.threads.push(thread);
        index
    }

    /// Handles an event, in the same order as the replay compiler: first ends the instances that
    /// are over according to the call stack, then counts the call.
    #[inline]
    fn row(&mut self, row: &Row) {
        let thread = self.indices.get(row.tid).unwrap_or_else(|| self.add_thread(row.tid));
        self.last_t = row.t_ns;
        if is_mark(row.op) {
            self.mark(row, thread);
        } else if row.stack >= 0 {
            let entries = &self.candidates.entries;
            self.passed.sure.end(thread, true, |opened, clock, ended| {
                opened.step(entries.running(row.stack, row.fresh), clock, ended);
            });
            self.passed.sure.threads[thread].opened.seen(row.t_ns);
        }
        if is_family(row.op) {
            join(self, (row, thread));
        }
        let events_left = &mut self.threads[thread].1;
        *events_left = events_left.saturating_sub(1);
        if *events_left == 0 {
            self.end_thread(thread);
        }
    }

    #[cold]
    fn mark(&mut self, row: &Row, thread: usize) {
        let sure = &self.passed.sure;
        let marks = self.passed.marks.get_or_insert_with(|| Marks::new(sure.limits, sure.costs));
        marks.mark(row, thread, &sure.threads[thread].clock);
    }

    #[cold]
    fn end_thread(&mut self, thread: usize) {
        if let Some(marks) = &mut self.passed.marks {
            marks.end_thread(thread);
        }
        self.passed.sure.end_thread(thread, true);
    }

    fn finish(mut self) -> Passed {
        let (candidates, last_t) = (self.candidates, self.last_t);
        self.passed.sure.finish(candidates);
        for thread in 0..self.threads.len() {
            self.drained(thread, |draining, clock, ended| draining.end_all(last_t, clock, ended));
        }
        if let Some(marks) = &mut self.passed.marks {
            marks.finish();
        }
        self.passed
    }

    /// Calls the function `end` with the open instances with `End::Drained` of a thread. The
    /// function ends some of them.
    #[inline]
    fn drained(
        &mut self,
        thread: usize,
        end: impl FnOnce(&mut Draining, &mut Clock, &mut dyn FnMut(Ended)),
    ) {
        let Following { threads, limits, costs, .. } = &mut self.passed.sure;
        let Thread { tid, clock, .. } = &mut threads[thread];
        end(&mut self.threads[thread].0, clock, &mut |ended| {
            let ended = Ended { thread: thread as u32, ..ended };
            let tally = &mut self.passed.drained[usize::from(ended.candidate)];
            tally.add(&ended, *tid, limits.lanes, costs);
        });
    }
}

impl Visitor<ThreadRow<'_>> for Pass<'_> {
    type Done = ();

    #[inline]
    fn begin(&mut self, (row, thread): ThreadRow) {
        self.passed.calls += 1;
        if let Some(marks) = &mut self.passed.marks {
            marks.allocate(row, thread);
        }
        let number = self.candidates.entries.list(row.stack);
        let list = self.candidates.entries.members(number);
        if !list.is_empty() {
            self.passed.sure.allocate(self.candidates, row, thread, (row.stack as u32, number));
            let clock = &mut self.passed.sure.threads[thread].clock;
            self.threads[thread].0.allocate(list, row.size, row.t_ns, clock);
        }
    }

    fn resize(&mut self, (row, _): ThreadRow) {
        self.passed.calls += 1;
        if let Some(marks) = &mut self.passed.marks {
            marks.resize(row);
        }
        if let Some(of) = self.passed.sure.resize(self.candidates, row) {
            let list = self.candidates.entries.members(of.list);
            self.threads[of.thread].0.resize(list, of.size, row.size.max(1));
        }
    }

    #[inline]
    fn end(&mut self, (row, by): ThreadRow) {
        self.passed.calls += 1;
        let lacks_stack = row.stack < 0 && row.op != op::REALLOC_TO;
        self.passed.frees_without_stack += u64::from(lacks_stack);
        if let Some(marks) = &mut self.passed.marks {
            marks.free(row, by);
        }
        // A block that is not tracked was allocated outside all candidates, or already counts as
        // never freed.
        let Some(of) = self.passed.sure.free(self.candidates, row, by) else { return };
        if let Ok(stack) = u64::try_from(row.stack) {
            *self.passed.freed.entry(key(of.list, stack)).or_default() += 1;
        }
        let list = self.candidates.entries.members(of.list);
        let freed = (of.size, row.t_ns, of.thread == by);
        self.drained(of.thread, |draining, clock, ended| draining.free(list, freed, clock, ended));
    }

    #[inline]
    fn leave(&mut self, _: ThreadRow, why: Left) {
        self.passed.calls += u64::from(why == Left::ReallocFailed);
    }

    /// Does nothing, because regions only have blocks of malloc and related functions.
    fn reset(&mut self, _: ThreadRow) {}

    fn pass(&mut self) {}
}

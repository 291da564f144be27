//! Compiles a trace: converts its events to ops of a replay, in the recorded order.
//!
//! One pass over the events makes all ops and stores them in a temporary file. In memory are some
//! MiB of events, the blocks in use, the free slots, at most 64 KiB for each thread, and the data
//! about call stacks that the plan needs.
//!
//! `calls` converts each call to ops, and `refusals` makes the errors.

mod calls;
mod refusals;

use super::compiled::{Compiled, RuleResult};
use super::emitter::Emitter;
use super::format::{op as to, Op, Sums, SLOTS_OF_OP};
use super::lead::Lead;
use super::numbers::Numbers;
use super::plan::{Plan, Rule, Scope};
use super::regions::Regions;
use super::selection::{Selection, NO_RULE};
use super::streams::Streams;
use super::threads::{ThreadState, Threads};
use super::validity::{self, Oddities};
use crate::error::Result;
use crate::format::{is_mark, Kind};
use crate::hash::NumberMap;
use crate::manifest::Manifest;
use crate::rows::{Reader, Row, Wanted};
use crate::tables::schema::{EVENTS, SITES};
use crate::tables::Table;
use crate::threads::{Process, Recorded};
use crate::trace::{Stacks, Trace};
use refusals::{escapes, no_events, refused};
use std::collections::VecDeque;
use std::io;
use std::path::Path;
use tempfile::NamedTempFile;

/// How to compile a trace.
#[derive(Debug, Clone)]
pub struct Options {
    /// The process to compile. `None` means the process with the most CPU time, or with the most
    /// events if a CPU time is unknown.
    pub process: Option<i32>,
    /// Whether to compile a sampled trace, although it lacks some of the calls.
    pub allow_samples: bool,
    /// Whether to compile a plan even if wink-out would free blocks that are still used afterwards.
    /// The individual frees of such blocks are left out.
    pub allow_escapes: bool,
    /// The number of free slots of other threads that may stay idle. Only if there are more does a
    /// thread reuse a slot of another thread, for which it must wait. More idle slots mean fewer
    /// waits, but each costs the replayer 8 bytes.
    pub spare_slots: usize,
    /// The number of bytes by which a thread may run ahead of other threads, or a sixteenth of the
    /// peak if that is more. Before an op, the thread waits until the other threads have done what
    /// they did at least this many bytes earlier in the recording. Blocks that another thread frees
    /// count in full, and allocated bytes count as an eighth.
    pub step_bytes: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            process: None,
            allow_samples: false,
            allow_escapes: false,
            spare_slots: 1 << 20,
            step_bytes: 1 << 20,
        }
    }
}

/// Compiles one process of a trace into an op stream, the file `to`. If an error occurs, the file
/// stays as it was.
pub fn compile(trace: &Trace, plan: &Plan, options: &Options, to: &Path) -> Result<Compiled> {
    validity::check_samples(trace.manifest(), options.allow_samples)?;
    let process = Process::read(trace, options.process)?;
    if process.threads.is_empty() {
        return Err(no_events(trace, options.process)?);
    }
    let is_for_some = |rule: &Rule| rule.scope != Scope::Everything;
    let needs_stacks = process.threads.len() > 1 || plan.rules.iter().any(is_for_some);
    let stacks = needs_stacks.then(|| trace.stacks()).transpose()?;
    let selection = match &stacks {
        Some(stacks) => {
            let allocating = trace.table(&SITES)?.i64s("stack")?;
            Selection::new(plan, stacks, &allocating)?
        }
        None => Selection::without_stacks(plan),
    };
    let (file, spool) = files_beside(to).map_err(|error| refused(to, &error))?;
    let mut compiler = Compiler::new(plan, options, selection, stacks, spool, &process);
    let counts = &trace.manifest().counts;
    let wanted = Wanted {
        proc: process.others > 0,
        stack: needs_stacks,
        fresh: compiler.selection.has_sure_ends(),
        // Only addresses distinguish frees of a null pointer from frees of unknown blocks.
        addr: counts.null_frees > 0,
        details: true,
    };
    compiler.read(&trace.table(&EVENTS)?, wanted, process.number)?;
    compiler.finish();
    compiler.odd.other_processes = process.others;
    compiler.write(trace.manifest(), file, to)
}

/// Opens the file that will be renamed to `to`, and a temporary file in the same directory.
fn files_beside(to: &Path) -> io::Result<(NamedTempFile, std::fs::File)> {
    let parent = to.parent().filter(|parent| *parent != Path::new(""));
    let parent = parent.unwrap_or(Path::new("."));
    Ok((NamedTempFile::new_in(parent)?, tempfile::tempfile_in(parent)?))
}

/// A block in use.
struct Block {
    size: u64,
    /// The position of thread `writer` after the latest op that wrote the slot.
    at: u64,
    writer: u32,
    slot: u32,
    instance: u32,
    /// The call stack of the allocation.
    node: i32,
    align: u8,
    /// Whether operator new allocated the block.
    is_new: bool,
}

struct Compiler<'a> {
    plan: &'a Plan,
    options: Options,
    process: i32,
    selection: Selection,
    stacks: Option<Stacks>,
    threads: Threads,
    /// Threads that have not started yet.
    coming: VecDeque<Recorded>,
    emitter: Emitter,
    lead: Lead,
    regions: Regions,
    slots: Numbers,
    /// The blocks in use, by block ID in the trace.
    live: NumberMap<u64, Block>,
    live_bytes: u64,
    sums: Sums,
    odd: Oddities,
    /// Number of rows compiled so far.
    rows: u64,
    /// The time of the first event.
    first_ns: i64,
}

impl<'a> Compiler<'a> {
    fn new(
        plan: &'a Plan,
        options: &Options,
        selection: Selection,
        stacks: Option<Stacks>,
        spool: std::fs::File,
        process: &Process,
    ) -> Self {
        Compiler {
            plan,
            options: options.clone(),
            process: process.number.unwrap_or(0),
            selection,
            stacks,
            threads: Threads::default(),
            coming: process.threads.iter().copied().collect(),
            emitter: Emitter::new(Streams::new(spool)),
            lead: Lead::new(options.step_bytes),
            regions: Regions::new(plan),
            slots: Numbers::new(options.spare_slots, SLOTS_OF_OP),
            live: NumberMap::default(),
            live_bytes: 0,
            sums: Sums::default(),
            odd: Oddities::default(),
            rows: 0,
            first_ns: 0,
        }
    }

    /// Compiles all events of a process.
    fn read(&mut self, events: &Table, wanted: Wanted, process: Option<i32>) -> Result<()> {
        for group in events.groups() {
            let mut reader = Reader::open(events, group, wanted)?;
            while let Some(rows) = reader.next()? {
                for row in 0..rows.len() {
                    if rows.process(row).is_none_or(|of| Some(of) == process) {
                        self.row(&rows.row(row))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Compiles an event.
    fn row(&mut self, row: &Row) -> Result<()> {
        if self.rows == 0 {
            self.first_ns = row.t_ns;
        }
        self.join_threads(row.t_ns);
        self.start_threads(row.t_ns)?;
        let thread = match self.threads.indices.get(row.tid) {
            Some(thread) => thread,
            None => self.start_late(row)?,
        };
        self.lead.hold_back(thread, &mut self.emitter);
        if is_mark(row.op) {
            self.mark(row, thread);
        } else if row.stack >= 0 {
            for &rule in self.selection.sure() {
                let is_open = self.regions.is_open(thread, rule);
                if is_open && self.selection.is_over(rule, row.stack, row.fresh) {
                    self.regions.over(thread, rule, &mut self.emitter);
                }
            }
        }
        self.regions.give_back(&mut self.slots);
        if !is_mark(row.op) {
            self.call(row, thread)?;
        }
        self.rows += 1;
        if self.selection.starts_thread(row.stack) {
            self.threads.state(thread).starts_at = Some(self.rows);
        }
        if self.threads.count_event(thread) {
            self.regions.end_thread(thread, &mut self.emitter);
        }
        Ok(())
    }

    /// Makes the creator of each exited thread wait for the end of that thread. A trace does not
    /// show which thread joins another, but in the recorded order, the thread had exited. Without
    /// this wait, a program that starts one thread after another would have all these threads run
    /// at the same time in the replay.
    #[inline]
    fn join_threads(&mut self, now: i64) {
        while let Some((thread, creator)) = self.threads.next_ended(now) {
            if let Some(creator) = creator {
                self.wait_for_all_of(creator, thread);
            }
        }
    }

    /// Makes a thread wait until another thread has done all its ops so far.
    fn wait_for_all_of(&mut self, thread: usize, other: usize) {
        let position = self.emitter.streams.position(other);
        if position > 0 {
            self.emitter.wait_for(thread, other, position);
        }
    }

    /// Starts the threads whose recorded start is at or before `now`.
    #[inline]
    fn start_threads(&mut self, now: i64) -> Result<()> {
        while let Some(&thread) = self.coming.front() {
            if thread.t0.is_none_or(|t0| t0 > now) {
                break;
            }
            self.coming.pop_front();
            self.start(&thread, thread.t0.unwrap_or(now))?;
        }
        Ok(())
    }

    /// Starts a thread at its first event, because its start is unknown or was recorded after that
    /// event.
    #[cold]
    fn start_late(&mut self, row: &Row) -> Result<usize> {
        let place = self.coming.iter().position(|thread| thread.tid == row.tid);
        let thread = place.and_then(|place| self.coming.remove(place));
        let thread =
            thread.unwrap_or(Recorded { tid: row.tid, t0: None, t1: None, events: u64::MAX });
        self.start(&thread, row.t_ns)
    }

    fn start(&mut self, thread: &Recorded, t0: i64) -> Result<usize> {
        let start_ns = t0.saturating_sub(self.first_ns).max(0) as u64;
        let (creator, latest) = (self.threads.creator(t0), self.threads.indices.latest());
        let index = self.emitter.add_thread(thread.tid as u32 as u64, start_ns, creator);
        let state = ThreadState {
            creator,
            t1: thread.t1,
            end_of_call: t0,
            events_left: thread.events,
            ..ThreadState::default()
        };
        self.threads.add(thread.tid, state);
        // The creator may start this thread long before its first call, so this thread also waits
        // for other threads.
        for other in self.threads.take_ended().into_iter().chain(latest) {
            self.wait_for_all_of(index, other);
        }
        self.regions.add_thread(index, &mut self.emitter)?;
        Ok(index)
    }

    /// Handles the begin or end of a marked region.
    fn mark(&mut self, row: &Row, thread: usize) {
        let marks = &mut self.threads.state(thread).marks;
        marks.step(Kind::of(row.op), row.stack, |mark| {
            if let Some(rule) = self.selection.marked(mark) {
                self.regions.over(thread, rule, &mut self.emitter);
            }
        });
    }

    /// Returns the rule of an allocation. If a rule selects the call stack, a site or functions,
    /// that rule takes precedence over marked regions. Otherwise, the marked region that began last
    /// decides.
    #[inline]
    fn rule_of(&mut self, node: i32, thread: usize) -> usize {
        let rule = self.selection.rule(node);
        let marks = self.threads.state(thread).marks.open();
        if marks.is_empty() {
            return rule;
        }
        let scope = (rule != NO_RULE).then(|| &self.plan.rules[rule].scope);
        if matches!(scope, Some(Scope::Stack(_) | Scope::Site(_) | Scope::Functions(_))) {
            return rule;
        }
        let marked = marks.iter().rev().find_map(|&mark| self.selection.marked(mark));
        marked.unwrap_or(rule)
    }

    /// Adds the last ops of all threads.
    fn finish(&mut self) {
        self.count_left_blocks();
        self.regions.finish(&mut self.emitter);
        for thread in 0..self.emitter.streams.threads() {
            self.emitter.push(thread, Op::new(to::END, 0, 0));
        }
    }

    /// Counts the blocks of regions that are still in use at the end of the recording. They count
    /// as blocks that outlived their region.
    fn count_left_blocks(&mut self) {
        let of_region = |(_, block): &(&u64, &Block)| self.regions.is_of_region(block.instance);
        let mut left: Vec<u64> = self.live.iter().filter(of_region).map(|(&id, _)| id).collect();
        left.sort_unstable();
        for id in left {
            let block = self.live.remove(&id).expect("a block in use");
            self.escape(&block, None);
        }
    }

    /// Checks the result of each rule. Fails if blocks would be used after wink-out has freed them.
    fn check_rules(&mut self, rules: &[RuleResult]) -> Result<()> {
        for ((result, rule), number) in rules.iter().zip(&self.plan.rules).zip(1..) {
            self.odd.unfinished += result.unfinished;
            self.odd.idle_rules += u64::from(result.blocks == 0);
            if !rule.strategy.winks_out() || result.escapes == 0 {
                continue;
            }
            if !self.options.allow_escapes {
                return Err(escapes(&self.plan.name, number, rule, result));
            }
            self.odd.escapes += result.escapes;
        }
        Ok(())
    }

    /// Writes the op stream.
    fn write(mut self, manifest: &Manifest, file: NamedTempFile, path: &Path) -> Result<Compiled> {
        let regions = std::mem::take(&mut self.regions);
        let (targets, rules) = regions.into_results();
        self.check_rules(&rules)?;
        let sums =
            Sums { slots: self.slots.count().into(), calls: self.emitter.calls, ..self.sums };
        let streams = &mut self.emitter.streams;
        let (checksum, ops) = file
            .as_file()
            .try_clone()
            .and_then(|to| streams.write(to, &targets, &sums))
            .and_then(|written| file.persist(path).map(|_| written).map_err(|error| error.error))
            .map_err(|error| refused(path, &error))?;
        Ok(Compiled {
            path: path.to_path_buf(),
            process: self.process,
            threads: streams.threads() as u32,
            ops,
            calls: sums.calls,
            slots: sums.slots,
            targets: targets.len() as u32,
            live_peak: sums.live_peak,
            blocks_peak: sums.blocks_peak,
            virtual_calls: rules.iter().map(|rule| rule.virtual_calls).sum(),
            edges: self.emitter.edges,
            rules,
            validity: validity::of(manifest, &self.odd),
            checksum,
        })
    }
}

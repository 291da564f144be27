//! Makes one recording: reads the ring while the program runs, samples the system, and writes the
//! stream.

use crate::ring::{Owner, Ring};
use crate::subject::{Ending, Subject};
use crate::system::{is_alive, Memory, Sampler};
use crate::ticks;
use crate::unrecorded::{Events, RecordedTime};
use mallard_measure::process::launch::Ended;
use mallard_measure::process::proc::{self, Process};
use mallard_trace::format::{is_family, loss, op, Record, RECORD_BYTES};
use mallard_trace::stream::Writer;
use nix::sys::signal::Signal;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Seek};
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How often the ring is read and the system is sampled.
const PASS: Duration = Duration::from_millis(10);

/// When a smaller share of the ring is free, the session searches for segments of threads that have
/// exited.
const FREE_SHARE_MIN: f64 = 0.5;

/// The status of an ended process that is not a child of this process.
const UNKNOWN_STATUS: u64 = u64::MAX;

/// Limits of a recording that the user has set.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The part of the run that is recorded, as times since the start of the run.
    pub window: Option<Range<Duration>>,
    /// The recording stops when the stream has this size in bytes.
    pub max_bytes: u64,
}

/// When a recording began.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// The clock of the stream, one of `mallard_trace::format::clock`.
    pub clock: u32,
    /// The time of `Header::start`, in nanoseconds of CLOCK_MONOTONIC.
    pub ns: u64,
    /// When the program was started.
    pub begin: Instant,
}

/// The outcome of a recording.
#[derive(Debug)]
pub struct Outcome {
    /// How the program ended.
    pub ended: Ended,
    /// How the recording of a running process went. `None` for a program that was started.
    pub ending: Option<Ending>,
    /// Wall time of the program.
    pub wall: Duration,
    /// The signal that asked the program to terminate. `None` if no such signal arrived.
    pub interrupted_by: Option<i32>,
    /// The limit of the program's address space in bytes when it ended. `None` if unlimited.
    pub address_space_limit: Option<u64>,
    /// The bytes of the address space that the ring uses.
    pub ring_bytes: u64,
    /// Whether the recorder was loaded.
    pub is_attached: bool,
    /// Why the recorder did not start, if it was loaded.
    pub refused: Option<io::Error>,
    /// The number of events that were not written, because the stream had become unwritable.
    pub lost_written: u64,
    /// How often a thread waited because the ring buffer was full.
    pub waits: u64,
    /// The number of ring pages that the program has filled.
    pub ring_pages: u64,
    /// The mean number of ticks that recording added to the program for each event; 0 if unknown.
    pub ticks_per_event: f64,
    /// The mean number of ticks of a free; 0 if unknown.
    pub ticks_per_free: f64,
    /// Why the stream could not be written completely.
    pub write_error: Option<io::Error>,
    /// The size of the stream in bytes, if the recording stopped because the stream reached
    /// `max_bytes`.
    pub stopped_at: Option<u64>,
    /// CPU time of processes that were not recorded, in nanoseconds.
    pub unrecorded_ns: u64,
    /// The number of processes that the program had forked, that continued after its end, and that
    /// were not recorded.
    pub forked: u64,
}

/// Sees a recording while the program runs, for a live view.
pub trait Observer {
    /// Receives the next records of a thread: whole records with their texts and frames.
    fn records(&mut self, owner: Owner, records: &[u8]);

    /// Receives the memory and CPU time of a process.
    fn memory(&mut self, process: u32, memory: &Memory);

    /// Receives the CPU time of a thread, in nanoseconds.
    fn cpu(&mut self, thread: u32, cpu_ns: u64);

    /// Learns that a process has ended at the time `t`, in ticks. All its records have been received.
    fn ended(&mut self, process: u32, t: u64);

    /// Shows what was received. All events before the time `t`, in ticks, have been received. Called some
    /// 100 times a second. Must return soon, because the program waits when the ring is full. Returns a
    /// signal if the recording should end: the signal is sent to a program that was started, and a process
    /// that was already running continues.
    fn show(&mut self, t: u64, log: Log) -> Option<Signal>;
}

/// What a session has written to the event log.
#[derive(Clone, Copy, Debug, Default)]
pub struct Log {
    /// The size of the event log in bytes.
    pub bytes: u64,
    /// Whether the session writes no further events, because of the maximum size or of an error.
    pub is_closed: bool,
    /// The number of events that were dropped because the ring was full.
    pub lost: u64,
}

/// The error that the stream has reached the maximum size that the user allows.
struct Full;

/// A running recording.
pub struct Session {
    ring: Ring,
    running: Subject,
    /// The writer of the stream; `None` after a failed write.
    writer: Option<Writer<File>>,
    file: File,
    limits: Limits,
    start: Start,
    /// For each running process, by process id, its number in the stream, which an exec changes,
    /// and its sampler.
    samplers: BTreeMap<u32, (u32, Sampler)>,
    /// The threads of these processes, by thread id.
    threads: BTreeMap<u32, Owner>,
    /// The CPU time of these processes.
    recorded: RecordedTime,
    /// The time when the last pass ended, on the clock of the stream.
    passed: u64,
    /// How the program ended, once it has ended.
    ended: Option<Ended>,
    forked: u64,
    address_space_limit: Option<u64>,
    lost_written: u64,
    write_error: Option<io::Error>,
    reached_max_bytes: bool,
    /// While there is an observer, the program is recorded even if nothing can be written.
    observer: Option<Box<dyn Observer>>,
    /// Whether the observer has ended the recording of processes that outlive the program.
    is_given_up: bool,
}

impl Session {
    /// Makes a session for a program that was just started, or for a process that has just loaded
    /// the recorder.
    pub fn new(
        ring: Ring,
        running: Subject,
        file: File,
        writer: Writer<File>,
        limits: Limits,
        start: Start,
        recorded: RecordedTime,
    ) -> Session {
        // In the stream, the first process has the number 1.
        let program = running.process();
        Session {
            ring,
            running,
            writer: Some(writer),
            file,
            limits,
            start,
            samplers: BTreeMap::from([(program, (1, Sampler::new(program)))]),
            threads: BTreeMap::new(),
            recorded,
            passed: 0,
            ended: None,
            forked: 0,
            address_space_limit: None,
            lost_written: 0,
            write_error: None,
            reached_max_bytes: false,
            observer: None,
            is_given_up: false,
        }
    }

    /// Returns the session with an observer. If the event log is full, the session continues for
    /// the observer, and writes no further events.
    pub fn with_observer(self, observer: impl Observer + 'static) -> Session {
        Session { observer: Some(Box::new(observer)), ..self }
    }

    /// Returns the process id of the program.
    pub fn process(&self) -> u32 {
        self.running.process()
    }

    /// Records until the program and all followed processes have ended. In a running process,
    /// records until its recorder is inactive again.
    pub fn run(mut self) -> io::Result<Outcome> {
        loop {
            if self.ended.is_some() {
                std::thread::sleep(PASS);
            } else if self.running.wait(PASS)? {
                self.pass(true);
                self.address_space_limit =
                    proc::address_space_limit(Process::Id(self.running.process()));
                self.forked = match self.running.leaves_segments() {
                    true => 0, // the process may have forked other processes before the recording
                    false => self.recorded.forked(),
                };
                self.ended = Some(self.running.reap()?);
                // The observer must be dropped before a signal may end this process.
                self.running.ends_by_signals().store(self.observer.is_none(), Ordering::Relaxed);
            }
            if self.ended.is_some() && self.running.leaves_segments() {
                self.ring.find_segments();
                self.ring.seal_segments_of(|_| true);
            }
            self.pass(false);
            if let (Some(ended), true) = (self.ended, self.is_over()) {
                return Ok(self.finish(ended));
            }
            self.apply_limits();
        }
    }

    /// Returns whether no process records any more, and all events are read.
    fn is_over(&mut self) -> bool {
        let has_ended = self.ended.is_some() && self.ring.owners().is_empty();
        if self.ended.is_some() && self.is_given_up {
            return true;
        }
        if !has_ended || self.ring.is_mapped_elsewhere() {
            return false;
        }
        // A process may have recorded events and ended during the search for processes that have
        // mapped the ring, so the ring is read again.
        self.pass(false);
        self.ring.owners().is_empty()
    }

    /// Starts and stops recording, depending on the window and the maximum size.
    fn apply_limits(&mut self) {
        if let Some(window) = &self.limits.window {
            self.ring.set_recording(
                !self.reached_max_bytes && window.contains(&self.start.begin.elapsed()),
            );
        }
        let written = self.file.stream_position().unwrap_or(0);
        if written > self.limits.max_bytes && !self.reached_max_bytes {
            self.reached_max_bytes = true;
            self.ring.set_recording(self.observer.is_some());
        }
    }

    /// Moves all new records from the ring to the stream, and adds samples of memory and CPU time.
    /// If `last` is set, reads the CPU time of all threads, because the system soon discards them.
    fn pass(&mut self, last: bool) {
        // `over` is read before `t`, so all events of ended processes are earlier than `t`.
        let mut over = self.ended_processes();
        let (t, ns) = (ticks::now(self.start.clock), ticks::monotonic_ns() - self.start.ns);
        if !over.is_empty() {
            self.ring.find_segments(); // so that all segments of ended processes are sealed below
        }
        let (program, samplers) = (self.running.process(), &self.samplers);
        self.ring.seal_segments_of(|owner| {
            // After an exec, the process has a new number, and its old program writes no more.
            let known = samplers.get(&owner.system_process);
            let is_replaced = known.is_some_and(|&(process, _)| owner.process < process);
            over.contains_key(&owner.system_process)
                || is_replaced && owner.system_process >= program
        });
        if self.ring.free_share() < FREE_SHARE_MIN && self.running.has_known_threads() {
            self.ring.seal_segments_of(|owner| !is_thread_alive(owner));
        }
        let (writer, lost) = (&mut self.writer, &mut self.lost_written);
        let mut observer = self.observer.as_deref_mut();
        let recorded = &mut self.recorded;
        let (mut file, max_bytes) = (&self.file, self.limits.max_bytes);
        let mut is_full = self.reached_max_bytes;
        let mut error = None;
        let mut owners = BTreeSet::new();
        let mut begun: BTreeMap<u32, Events> = BTreeMap::new();
        let mut write = |owner: Owner, records: &[u8]| {
            if !is_full && file.stream_position().is_ok_and(|written| written > max_bytes) {
                is_full = true;
                if observer.is_none() {
                    return Err(Full);
                }
            }
            if let Some(observer) = &mut observer {
                observer.records(owner, records);
            }
            let known = samplers.get(&owner.system_process);
            let is_new = known.is_none_or(|&(process, _)| process < owner.process);
            owners.insert(owner);
            if is_new {
                begun.entry(owner.system_process).or_default().add(each(records));
            }
            if let Some(end) = over.get_mut(&owner.system_process) {
                let last = each(records).map(|record| record.t).fold(0, u64::max);
                recorded.saw(owner.system_process, last);
                *end = last.saturating_add(1).max(*end);
            }
            if let (Some(w), false) = (&mut *writer, is_full && observer.is_some()) {
                if let Err(e) = w.piece(owner.thread.into(), t, records) {
                    error = Some(e);
                    *writer = None;
                }
            }
            if writer.is_none() {
                *lost += events_in(records);
            }
            Ok(())
        };
        if self.ring.drain(&mut write).is_err() {
            // The program must not add events while the rest of the ring is written.
            self.ring.set_recording(false);
            let _ = self.ring.drain(&mut write); // the error is not reported twice
        }
        self.reached_max_bytes = is_full;
        if let Some(error) = error {
            self.fail(error);
        }
        for owner in self.ring.owners() {
            // A segment that was found only now will be sealed and read in the next pass, so its
            // process is not finished yet.
            over.remove(&owner.system_process);
        }
        for owner in owners {
            self.threads.insert(owner.system_thread, owner);
            let known = self.samplers.get(&owner.system_process);
            if known.is_none_or(|&(process, _)| process < owner.process) {
                let sampler = Sampler::new(owner.system_process);
                self.samplers.insert(owner.system_process, (owner.process, sampler));
            }
        }
        begun.iter().for_each(|(&process, of)| self.recorded.begin(process, of, self.passed));
        let now = ticks::now(self.start.clock);
        self.samplers.keys().for_each(|&process| self.recorded.look(process, now));
        let written = self
            .write_samples(t, last)
            .and_then(|()| self.write_ends(&over))
            .and_then(|()| self.checkpoint(t, ns));
        if let Err(error) = written {
            self.fail(error);
        }
        for (&process, &end) in &over {
            self.recorded.end(process, t);
            if let (Some(observer), Some((number, _))) =
                (&mut self.observer, self.samplers.get(&process))
            {
                observer.ended(*number, end);
            }
        }
        self.samplers.retain(|process, _| !over.contains_key(process));
        let samplers = &self.samplers;
        self.threads.retain(|_, owner| samplers.contains_key(&owner.system_process));
        self.show(t);
        self.passed = ticks::now(self.start.clock);
    }

    fn show(&mut self, t: u64) {
        let Some(observer) = &mut self.observer else { return };
        let log = Log {
            bytes: self.file.stream_position().unwrap_or(0),
            is_closed: self.reached_max_bytes || self.writer.is_none(),
            lost: self.ring.lost_full() + self.ring.lost_nested(),
        };
        if let Some(signal) = observer.show(t, log) {
            match self.ended {
                Some(_) => self.is_given_up = true,
                None => self.running.end(signal),
            }
        }
    }

    /// Returns the ids of the processes that have ended since the last pass, and the earliest time
    /// at which they can have ended. With a later time, their memory would be counted together with
    /// that of processes that started later.
    ///
    /// The program counts as running until it is reaped, because its status is not known before. A
    /// process with a smaller id counts as running too, because the id may be from another PID
    /// namespace. Then the process may be running although its id is unknown here.
    fn ended_processes(&self) -> BTreeMap<u32, u64> {
        let has_ended = |&process: &u32| match &self.ended {
            None if process <= self.running.process() => false,
            _ => !is_alive(process),
        };
        let ended = self.samplers.keys().copied().filter(has_ended);
        ended.map(|process| (process, self.passed)).collect()
    }

    /// Closes the stream after a failed write. The program continues without being recorded.
    fn fail(&mut self, error: io::Error) {
        self.writer = None;
        self.ring.set_recording(self.observer.is_some());
        self.write_error.get_or_insert(error);
    }

    fn write_samples(&mut self, t: u64, last: bool) -> io::Result<()> {
        // After the maximum size, only the observer gets samples.
        let is_full = self.reached_max_bytes && self.observer.is_some();
        let mut writer = self.writer.as_mut().filter(|_| !is_full);
        for (process, sampler) in self.samplers.values_mut() {
            if let Some(memory) = sampler.memory() {
                self.observer.iter_mut().for_each(|observer| observer.memory(*process, &memory));
                writer.iter_mut().try_for_each(|w| write_memory(w, t, *process, &memory))?;
            }
            for (thread, cpu_ns) in sampler.threads(last) {
                let Some(owner) = self.threads.get(&thread) else { continue };
                self.observer.iter_mut().for_each(|observer| observer.cpu(owner.thread, cpu_ns));
                let cpu = Record { stack: owner.thread, ..Record::new(op::CPU, t, cpu_ns, 0) };
                writer.iter_mut().try_for_each(|w| w.record(&cpu))?;
            }
        }
        Ok(())
    }

    /// Writes the records that processes have ended.
    fn write_ends(&mut self, over: &BTreeMap<u32, u64>) -> io::Result<()> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        for (id, &t) in over {
            let Some((process, _)) = self.samplers.get(id) else { continue };
            let program = self.ended.filter(|_| *id == self.running.process());
            let status = program.map_or(UNKNOWN_STATUS, |ended| ended.status as u64);
            let end = Record::new(op::PROCESS_END, t, status, 0);
            writer.record(&Record { stack: *process, ..end })?;
        }
        Ok(())
    }

    fn checkpoint(&mut self, t: u64, ns: u64) -> io::Result<()> {
        let is_full = self.reached_max_bytes && self.observer.is_some();
        let Some(writer) = self.writer.as_mut().filter(|_| !is_full) else { return Ok(()) };
        writer.checkpoint(t, ns)?;
        writer.flush()
    }

    fn finish(mut self, ended: Ended) -> Outcome {
        let wall = self.start.begin.elapsed();
        drop(self.observer.take());
        self.running.ends_by_signals().store(true, Ordering::Relaxed);
        let size = self.file.stream_position().ok();
        if let Some(writer) = self.writer.take() {
            if let Err(error) = self.write_end(writer) {
                self.fail(error);
            }
        }
        let mean = |(ticks, count): (u64, u64)| ticks as f64 / count.max(1) as f64;
        Outcome {
            ended,
            ending: self.running.ending(),
            wall,
            interrupted_by: self.running.interrupted_by(),
            address_space_limit: self.address_space_limit,
            ring_bytes: self.ring.bytes(),
            is_attached: self.ring.is_attached(),
            refused: self.ring.refused(),
            lost_written: self.lost_written,
            waits: self.ring.waits(),
            ring_pages: self.ring.filled_pages(),
            ticks_per_event: mean(self.ring.own_ticks()),
            ticks_per_free: mean(self.ring.free_ticks()),
            write_error: self.write_error,
            stopped_at: size.filter(|_| self.reached_max_bytes),
            forked: self.forked,
            unrecorded_ns: self.recorded.missing(ended.user_ns + ended.system_ns),
        }
    }

    fn write_end(&self, mut writer: Writer<File>) -> io::Result<()> {
        let t = ticks::now(self.start.clock);
        writer.checkpoint(t, ticks::monotonic_ns() - self.start.ns)?;
        let lost = [(loss::FULL, self.ring.lost_full()), (loss::NESTED, self.ring.lost_nested())];
        for (cause, count) in lost {
            if count > 0 {
                writer.record(&Record { stack: cause, ..Record::new(op::LOST, t, 0, count) })?;
            }
        }
        writer.finish(t).map(drop)
    }
}

fn write_memory(
    writer: &mut Writer<File>,
    t: u64,
    process: u32,
    memory: &Memory,
) -> io::Result<()> {
    let record = Record { stack: process, ..Record::new(op::MEMORY, t, 0, 0) };
    memory.texts().iter().try_for_each(|text| writer.text(record, text))
}

fn is_thread_alive(owner: Owner) -> bool {
    proc::has_thread(owner.system_process, owner.system_thread)
}

/// Returns the number of events in some records.
fn events_in(records: &[u8]) -> u64 {
    each(records).filter(|record| is_family(record.op())).count() as u64
}

/// Returns the records one by one, without their texts and frames.
fn each(records: &[u8]) -> impl Iterator<Item = Record> + '_ {
    let mut rest = records;
    std::iter::from_fn(move || {
        let record = (rest.len() >= RECORD_BYTES).then(|| Record::from_bytes(rest))?;
        let tail = (record.tail_bytes() as usize).next_multiple_of(RECORD_BYTES);
        rest = rest.get(RECORD_BYTES + tail..).unwrap_or_default();
        Some(record)
    })
}

//! Prints the summary at the end of `mallard record`: what was recorded, what is missing, what
//! recording cost, and how much any allocator could save at most.

use super::bound::{bound, cost, unknown};
use super::names::Names;
use super::options::Follow;
use super::serving::Unserved;
use crate::import::with_progress;
use crate::output::missing::{incomplete, joined, losses};
use clap::ValueEnum;
use mallard_measure::error::status::{CANNOT_RECORD, MALLARD_FAILED};
use mallard_measure::error::Failure;
use mallard_measure::error::{tell, tell_as_is};
use mallard_measure::output::shell::{as_called, quoted, quoted_path, quoted_words};
use mallard_measure::output::units::{self, bytes, of_threads, percent, plural, time};
use mallard_measure::process::launch::{stdin_file, Ended};
use mallard_measure::process::load::WAITING_LOAD;
use mallard_measure::process::proc;
use mallard_measure::process::program::{allocates_by, Finding};
use mallard_record::attach;
use mallard_record::session::Outcome;
use mallard_trace::format::Header;
use mallard_trace::import::Options;
use mallard_trace::manifest::Manifest;
use mallard_trace::run_notes::{RunNotes, SystemText};
use mallard_trace::Trace;
use nix::sys::signal::Signal;
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The factor by which a trace may be larger than `--max-size`.
const CLOSE: f64 = 1.1;
/// Below this limit, a trace is not made smaller, because much of the size of a small trace does
/// not depend on its events.
const CUT_MIN: u64 = 256 << 10;
/// How often a trace is made again from a smaller part of its stream. Each time, the size comes
/// closer to the allowed size.
const CUTS_MAX: u32 = 8;

/// A finished recording.
pub struct Summary<'a> {
    pub command: &'a super::options::Command,
    pub path: &'a Path,
    pub names: &'a Names,
    pub header: Header,
    pub outcome: Outcome,
    /// How often the load of a server succeeded, or why it failed. `None` without a load.
    pub served: Option<Result<u64, Unserved>>,
    /// Facts about the program file that may make the recording differ from other runs.
    pub findings: Vec<Finding>,
}

impl Summary<'_> {
    /// Makes the trace, prints the summary, and returns the exit status of the program. For a
    /// server, the status is 0, however it exits after its load.
    pub fn finish(self) -> Result<ExitCode, Failure> {
        let status = match &self.served {
            None => ExitCode::from(self.outcome.ended.exit_code()),
            Some(_) => ExitCode::SUCCESS,
        };
        if !self.outcome.is_attached {
            self.names.remove_stream();
            return Err(self.not_loaded());
        }
        if self.command.top.as_ref().is_some_and(|top| !top.keeps.load(Ordering::Relaxed)) {
            self.names.remove_stream();
            tell(format!("mallard: {}; the recording was not saved", self.end()));
            return Ok(status);
        }
        let fault_ns = ns_per_fault();
        let options = Options {
            force: self.command.force,
            debug_folders: self.command.debug_dir.clone(),
            fetch_for: self.command.debuginfod.time(),
            without_symbols: self.command.no_symbols,
            redact: self.command.anonymize,
            records_max: None,
            notes: self.notes(fault_ns),
        };
        let begin = Instant::now();
        let trace = self.import(options).map_err(|failure| {
            let stream = self.names.stream.display();
            let pasted = quoted_path(&self.names.stream);
            let (recorded, which) = match self.stopped() {
                Some(why) => {
                    (format!("the first events were recorded, until {why}"), "the first events")
                }
                None => ("the events were recorded".to_string(), "its events"),
            };
            Failure::new(
                format!("{recorded}, but no trace was written: {}", failure.what()),
                format!(
                    "the program ended with status {}; {which} are in {stream}",
                    self.outcome.ended.exit_code()
                ),
                format!("mallard import {pasted}, when this is fixed: {}", failure.help()),
            )
            .with_status(MALLARD_FAILED)
        })?;
        let took = begin.elapsed();
        if !self.command.keep_stream {
            self.names.remove_stream();
        }
        let manifest = trace.manifest();
        if let (Some(print), false, false) =
            (self.command.growth, self.command.json, self.command.quiet)
        {
            print(&self.names.trace)?;
        }
        if self.command.json {
            tell_as_is(self.json(manifest, took.as_secs_f64()));
        } else if !self.command.quiet {
            tell(self.text(manifest).trim_end());
        }
        match &self.served {
            Some(Err(_)) if self.outcome.interrupted_by.is_some() => {
                Ok(ExitCode::from(self.outcome.ended.exit_code()))
            }
            Some(Err(why)) => Err(self.not_served(why)),
            _ => Ok(status),
        }
    }

    /// Makes the trace. If the trace is larger than the user allows, makes it again from the first
    /// part of the stream. This may happen because a trace also has the names of functions, which
    /// may be larger than the events.
    fn import(&self, mut options: Options) -> Result<Trace, Failure> {
        let (stream, to, limit) = (&self.names.stream, &self.names.trace, self.command.max_size);
        let mut trace = with_progress(stream, to, &options)?;
        for _ in 0..CUTS_MAX {
            let size = size_of(to);
            if limit < CUT_MIN || size as f64 <= limit as f64 * CLOSE {
                break;
            }
            let records = trace.manifest().stream.records as f64 * limit as f64 / size as f64;
            let [limit, size] = [limit, size].map(units::bytes);
            let why = format!("the trace had {size}, more than the {limit} of --max-size");
            options.notes.stopped.get_or_insert(why);
            (options.records_max, options.force) = (Some(records as u64), true);
            trace = with_progress(stream, to, &options)?;
        }
        Ok(trace)
    }

    /// Returns the error for a server whose load stopped early.
    fn not_served(&self, why: &Unserved) -> Failure {
        let program = quoted_words(&self.command.program);
        let load = quoted(self.command.work.load.as_deref().unwrap_or_default());
        let (what, help) = match why {
            Unserved::Ended => (
                format!(
                    "the program ended before its load finished: {}",
                    how_it_ended(&self.outcome.ended)
                ),
                format!("{program}: a server must run in the foreground until a signal ends it"),
            ),
            Unserved::Failed(how) => {
                (how.clone(), format!("sh -c {load}: this must succeed while {program} runs"))
            }
            Unserved::Hung(how) => (
                how.clone(),
                "--load with a command that ends by itself, or a longer --timeout".to_string(),
            ),
        };
        let trace = self.names.trace.display();
        let state = format!("the program has ended, and its events until then are in {trace}");
        Failure::new(what, state, help).with_status(MALLARD_FAILED)
    }

    /// Returns the error for a program that ran without the recorder.
    fn not_loaded(&self) -> Failure {
        let program = self.path.display();
        if let (Some(Ok(_)), None) = (&self.served, &self.outcome.refused) {
            let what = format!("the load ended before {program} had started");
            let state = "the program was ended; nothing was recorded";
            return Failure::new(what, state, WAITING_LOAD).with_status(CANNOT_RECORD);
        }
        let why = match &self.outcome.refused {
            Some(error) => format!("the recorder could not start in {program}: {error}"),
            None => format!("the recorder was not loaded into {program}"),
        };
        Failure::new(
            why,
            format!(
                "the program ran and ended with status {}; nothing was recorded",
                self.outcome.ended.exit_code()
            ),
            format!("mallard doctor {}", quoted_path(self.path)),
        )
        .with_status(CANNOT_RECORD)
    }

    /// Returns the CPU time of the program and of all recorded processes, in ns. `waited_ns` lacks
    /// children for which no parent has waited.
    fn cpu_ns(&self, manifest: &Manifest) -> u64 {
        let recorded = manifest.totals.cpu_ns.and_then(|ns| u64::try_from(ns).ok());
        self.waited_ns().max(recorded.unwrap_or(0))
    }

    /// Returns the CPU time of the program and of all children for which their parent has waited,
    /// in ns.
    fn waited_ns(&self) -> u64 {
        self.outcome.ended.user_ns + self.outcome.ended.system_ns
    }

    /// Returns the CPU time that the recorder used in the program.
    fn own_ns(&self, events: u64) -> f64 {
        self.outcome.ticks_per_event * 1e9 / self.header.clock_hz as f64 * events as f64
    }

    /// Returns the notes about the run for the manifest of the trace.
    fn notes(&self, fault_ns: f64) -> RunNotes {
        let Ended { user_ns, system_ns, peak_rss, minor_faults, major_faults, status } =
            self.outcome.ended;
        let is_own = self.outcome.ending.is_none();
        let host = nix::sys::utsname::uname().ok();
        let text = |value: &std::ffi::OsStr| value.to_string_lossy().into_owned();
        let follow = self.command.follow.iter().filter_map(Follow::to_possible_value);
        let warnings = self.findings.iter().map(|finding| finding.what.clone());
        let stdin = self.command.streams.stdin.clone().or_else(stdin_file);
        // A path below /proc means this file in the current process only.
        let stdin = stdin.filter(|file| file.is_file() && !proc::has(file));
        let stopped = self.stopped();
        let served = self.served.as_ref().and_then(|served| served.as_ref().ok());
        let work = Some(&self.command.work).filter(|work| work.load.is_some() && served.is_some());
        let ns = |ticks: f64| ticks * 1e9 / self.header.clock_hz as f64;
        RunNotes {
            allocates_by: allocates_by(&self.findings).map(String::from),
            arguments: is_own.then(|| self.command.program.iter().map(SystemText::from).collect()),
            attached_after: self.outcome.ending.map(|ending| ending.age),
            cores: Some(std::thread::available_parallelism().map_or(0, usize::from) as u64),
            cpu: proc::processor(),
            environment: is_own.then(environment),
            folder: std::env::current_dir().ok().filter(|_| is_own).map(SystemText::from),
            follow: Some(follow.map(|of| of.get_name().to_string()).collect()),
            forked: Some(self.outcome.forked),
            host: host.as_ref().map(|host| text(host.nodename())),
            kernel: host.as_ref().map(|host| text(host.release())),
            load: work.and_then(|work| work.load.clone()),
            load_seconds: work.and_then(|work| Some(work.repeated_for?.as_secs_f64())),
            loads: work.and(served).copied(),
            major_faults: Some(major_faults),
            minor_faults: Some(minor_faults),
            ns_per_fault: Some(fault_ns),
            ns_per_free: Some(ns(self.outcome.ticks_per_free)),
            peak_rss: Some(peak_rss),
            program: Some(self.path.as_os_str().into()),
            recorded_cpu_ns: Some(self.waited_ns().saturating_sub(self.outcome.unrecorded_ns)),
            recording_ns_per_event: Some(ns(self.outcome.ticks_per_event)),
            ring_pages: Some(self.outcome.ring_pages),
            status: is_own.then_some(status),
            stdin: stdin
                .filter(|_| is_own)
                .map(|file| std::path::absolute(&file).unwrap_or(file).into()),
            system_ns: Some(system_ns),
            unrecorded_ns: Some(self.outcome.unrecorded_ns),
            unwritten: stopped.as_ref().map(|_| self.outcome.lost_written),
            stopped,
            user_ns: Some(user_ns),
            waits: Some(self.outcome.waits),
            wall_ns: Some(self.outcome.wall.as_nanos() as u64),
            warnings: Some(warnings.chain(self.narrow()).collect()),
            window: self.command.window.as_ref().map(shown_window),
            ..RunNotes::default()
        }
    }

    fn text(&self, manifest: &Manifest) -> String {
        let name = self.names.trace.display();
        let (events, failed) = (manifest.counts.events, manifest.counts.failed);
        let mut text = format!(
            "mallard: {}{} in {}, {}: {name} ({})\n",
            plural(events, "event"),
            of_threads(manifest.totals.threads, manifest.totals.processes),
            time(self.outcome.wall.as_nanos() as f64),
            self.end(),
            bytes(size_of(&self.names.trace)),
        );
        text += &manifest.origin().map_or(String::new(), |origin| format!("  {origin}\n"));
        text.extend(self.stops().map(|stops| format!("  {stops}\n")));
        text += &format!("  lost: {}\n", joined(losses(manifest)));
        text.extend(incomplete(manifest).iter().map(|what| format!("  incomplete: {what}\n")));
        if failed > 0 {
            text += &format!("  {} failed: they returned null\n", plural(failed, "allocation"));
        }
        text.extend(self.narrow().map(|warning| format!("  {warning}\n")));
        if let Some(Ok(count)) = self.served {
            text += &format!("  the load ran {}\n", plural(count, "time"));
        }
        let own = self.own_ns(events);
        if own > 0.0 {
            text += &format!("  {}\n", cost(own, self.cpu_ns(manifest) as f64));
        }
        if let Some(bound) = bound(manifest) {
            text += &format!(
                "  malloc, free and page faults took at most {} of the rest: no allocator can save \
                 more, except by better locality\n",
                percent(bound)
            );
        } else if let Some(why) = unknown(manifest) {
            text += &format!("  how much malloc, free and page faults took is unknown: {why}\n");
        }
        if self.outcome.ended.signal() == Some(Signal::SIGSYS as i32) {
            text += "  its system call filter (seccomp) killed it; if that happens only in \
                     recordings, use --on-full drop, which needs no nanosleep\n";
        }
        let sort = if self.outcome.ending.is_some() { " --sort leaked" } else { "" };
        let next = format!("mallard sites {}{sort}", quoted_path(&self.names.trace));
        text += &format!("  next: {}\n", as_called(&next));
        text
    }

    /// Describes in a few words how the recording ended.
    fn end(&self) -> String {
        let Some(ending) = &self.outcome.ending else { return how_it_ended(&self.outcome.ended) };
        let process = ending.process;
        match ending.outcome {
            attach::Outcome::Detached => format!("process {process} runs on as before"),
            attach::Outcome::Ended => format!("process {process} has ended"),
            attach::Outcome::Executed => {
                format!("process {process} has executed another program or closed all its files")
            }
            attach::Outcome::Silent => {
                format!("process {process} does not answer; the recorder detaches when the process runs again")
            }
        }
    }

    /// Describes for how long threads of a running process were stopped. `None` unless the user has
    /// set `--verbose`.
    fn stops(&self) -> Option<String> {
        let ending = self.outcome.ending.as_ref().filter(|_| self.command.verbose)?;
        let loading = ending.ticks as f64 * 1e9 / self.header.clock_hz as f64;
        Some(format!(
            "the longest stop of a thread was {}; one thread loaded the recorder in {}",
            time(ending.longest_stop.as_nanos() as f64),
            time(loading)
        ))
    }

    /// Returns a warning that the address space of the program is limited. `None` without a limit.
    fn narrow(&self) -> Option<String> {
        let limit = self.outcome.address_space_limit?;
        Some(format!(
            "the program may use {} of address space, of which the recorder takes {}, so allocations may \
             fail that succeed without recording",
            bytes(limit),
            bytes(self.outcome.ring_bytes)
        ))
    }

    /// Returns why the recording stopped before the program ended.
    fn stopped(&self) -> Option<String> {
        match &self.outcome.write_error {
            Some(error) => {
                let error = error.to_string().to_lowercase();
                Some(format!("the event log could not be written ({error})"))
            }
            None => self.outcome.stopped_at.map(|at| {
                let limit = bytes(self.command.max_size);
                format!("the event log had {}, more than the {limit} of --max-size", bytes(at))
            }),
        }
    }

    fn json(&self, manifest: &Manifest, import_seconds: f64) -> Value {
        let lost = manifest.losses.all() + self.outcome.lost_written;
        json!({
            "trace": self.names.trace.to_string_lossy(),
            "events": manifest.counts.events,
            "allocations": manifest.counts.allocations,
            "frees": manifest.counts.frees,
            "failed": manifest.counts.failed,
            "bytes": size_of(&self.names.trace),
            "events_lost": lost,
            "losses": manifest.losses,
            "waits": self.outcome.waits,
            "seconds": self.outcome.wall.as_secs_f64(),
            "cpu_seconds": self.cpu_ns(manifest) as f64 / 1e9,
            "peak_rss_kib": self.outcome.ended.peak_rss / 1024,
            "recording_seconds": self.own_ns(manifest.counts.events) / 1e9,
            "import_seconds": import_seconds,
            "bound": bound(manifest),
            "status": self.outcome.ended.exit_code(),
            "longest_stop_seconds":
                self.outcome.ending.map(|ending| ending.longest_stop.as_secs_f64()),
        })
    }
}

fn how_it_ended(ended: &Ended) -> String {
    match ended.signal() {
        Some(signal) => match Signal::try_from(signal) {
            Ok(name) => format!("ended by signal {signal}, {name}"),
            Err(_) => format!("ended by signal {signal}"),
        },
        None => format!("status {}", ended.exit_code()),
    }
}

/// Returns the size of all files in a directory.
fn size_of(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => size_of(&entry.path()),
            Ok(meta) => meta.len(),
            Err(_) => 0,
        })
        .sum()
}

/// Returns the environment variables, with which `mallard advise NAME` starts the program again.
fn environment() -> BTreeMap<String, SystemText> {
    std::env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value.into()))
        .collect()
}

/// Measures the time of a page fault in ns, including the clearing of the page. Returns the lowest
/// of three measurements.
fn ns_per_fault() -> f64 {
    const BYTES: usize = 4 << 20;
    const PAGE: usize = 4096;
    let measure = || {
        let mut pages = memmap2::MmapMut::map_anon(BYTES).ok()?;
        let begin = Instant::now();
        pages.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
        Some(begin.elapsed().as_nanos() as f64 / (BYTES / PAGE) as f64)
    };
    (0..3).filter_map(|_| measure()).fold(f64::INFINITY, f64::min).min(1e6)
}

/// Formats the recorded part of the run: `10s..70s`, `10s..`.
fn shown_window(window: &Range<Duration>) -> String {
    let end = match window.end {
        Duration::MAX => String::new(),
        end => format!("{}s", end.as_secs_f64()),
    };
    format!("{}s..{end}", window.start.as_secs_f64())
}

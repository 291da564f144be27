//! The summary that `mallard record` prints at the end: what was recorded, what is missing, what
//! recording cost, and how much any allocator could save at most.

use super::bound::{bound, cost, unknown};
use super::launch::{stdin_file, Ended};
use super::names::Names;
use super::serving::Unserved;
use super::session::Outcome;
use super::Follow;
use crate::error::status::{CANNOT_RECORD, MALLARD_FAILED};
use crate::error::tell;
use crate::error::Failure;
use crate::import::with_progress;
use crate::output::missing::{incomplete, joined, losses};
use crate::output::shell::concerns_malloc;
use crate::output::shell::{as_called, quoted, quoted_path};
use crate::output::units::{bytes, of_threads, percent, plural, time};
use crate::turns::load::WAITING_LOAD;
use clap::ValueEnum;
use mallard_trace::format::Header;
use mallard_trace::import::Options;
use mallard_trace::manifest::Manifest;
use nix::sys::signal::Signal;
use serde_json::{json, Map, Value};
use std::ops::Range;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// A finished recording.
pub struct Summary<'a> {
    pub command: &'a super::Command,
    pub path: &'a Path,
    pub names: &'a Names,
    pub header: Header,
    pub outcome: Outcome,
    /// How often the load of a server succeeded, or why it failed. `None` without a load.
    pub served: Option<Result<u64, Unserved>>,
    /// What was found in the file of the program that may make the recording differ from other runs.
    pub warnings: Vec<String>,
}

impl Summary<'_> {
    /// Makes the trace, prints the summary, and returns the status of the program. The status of a
    /// server is 0, however it ends after its load.
    pub fn finish(self) -> Result<ExitCode, Failure> {
        let status = match &self.served {
            None => ExitCode::from(self.outcome.ended.exit_code()),
            Some(_) => ExitCode::SUCCESS,
        };
        if !self.outcome.is_attached {
            self.names.remove_stream();
            return Err(self.not_loaded());
        }
        let fault_ns = ns_per_fault();
        let options = Options {
            force: self.command.force,
            debug_folders: self.command.debug_dir.clone(),
            without_symbols: self.command.no_symbols,
            redact: self.command.anonymize,
            notes: self.notes(fault_ns),
        };
        let begin = Instant::now();
        let trace =
            with_progress(&self.names.stream, &self.names.trace, &options).map_err(|failure| {
                let stream = self.names.stream.display();
                let pasted = quoted_path(&self.names.stream);
                let (recorded, which) = match self.stopped() {
                    Some(why) => {
                        (format!("the first events were recorded, until {why}"), "the first events")
                    }
                    None => ("the events were recorded".to_string(), "its events"),
                };
                Failure::new(
                    format!("{recorded}, but no trace was made: {}", failure.what()),
                    format!(
                        "the program ended with status {}; {which} are in {stream}",
                        self.outcome.ended.exit_code()
                    ),
                    format!("mallard import {pasted}, once that can succeed: {}", failure.help()),
                )
                .with_status(MALLARD_FAILED)
            })?;
        let took = begin.elapsed();
        if !self.command.keep_stream {
            self.names.remove_stream();
        }
        let manifest = trace.manifest();
        if self.command.json {
            tell(self.json(manifest, took.as_secs_f64()));
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

    /// The error for a server that was not given all of its work.
    fn not_served(&self, why: &Unserved) -> Failure {
        let words = self.command.program.iter().map(|word| quoted(&word.to_string_lossy()));
        let program = words.collect::<Vec<_>>().join(" ");
        let load = quoted(self.command.work.load.as_deref().unwrap_or_default());
        let (what, help) = match why {
            Unserved::Ended => (
                format!(
                    "the program ended before its load did: {}",
                    how_it_ended(&self.outcome.ended)
                ),
                format!("{program}: a server must run in the foreground until a signal ends it"),
            ),
            Unserved::Failed(how) => {
                (how.clone(), format!("sh -c {load}: this must succeed while {program} runs"))
            }
        };
        let trace = self.names.trace.display();
        let state = format!("the program has ended, and its events until then are in {trace}");
        Failure::new(what, state, help).with_status(MALLARD_FAILED)
    }

    /// The error for a program that ran without the recorder.
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

    /// CPU time of the program and of all recorded processes, in ns. `waited_ns` lacks children for
    /// which no parent has waited.
    fn cpu_ns(&self, manifest: &Manifest) -> u64 {
        let recorded = manifest.totals.cpu_ns.and_then(|ns| u64::try_from(ns).ok());
        self.waited_ns().max(recorded.unwrap_or(0))
    }

    /// CPU time of the program and of all children for which their parent has waited, in ns.
    fn waited_ns(&self) -> u64 {
        self.outcome.ended.user_ns + self.outcome.ended.system_ns
    }

    /// CPU time that the recorder took in the program.
    fn own_ns(&self, events: u64) -> f64 {
        self.outcome.ticks_per_event * 1e9 / self.header.clock_hz as f64 * events as f64
    }

    /// Notes about the run, for the manifest.
    fn notes(&self, fault_ns: f64) -> Map<String, Value> {
        let Ended { user_ns, system_ns, peak_rss, minor_faults, major_faults, status } =
            self.outcome.ended;
        let arguments: Vec<_> =
            self.command.program.iter().map(|word| word.to_string_lossy()).collect();
        let host = nix::sys::utsname::uname().ok();
        let host = host.as_ref();
        let text =
            |value: Option<&std::ffi::OsStr>| value.map(|v| v.to_string_lossy().into_owned());
        let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model =
            cpu.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
        let follow = self.command.follow.iter().filter_map(Follow::to_possible_value);
        let notes = json!({
            "program": self.path.to_string_lossy(),
            "arguments": arguments,
            "folder": std::env::current_dir().map(|f| f.to_string_lossy().into_owned()).ok(),
            "status": status,
            "wall_ns": self.outcome.wall.as_nanos() as u64,
            "user_ns": user_ns,
            "system_ns": system_ns,
            "recorded_cpu_ns": self.waited_ns().saturating_sub(self.outcome.unrecorded_ns),
            "peak_rss": peak_rss,
            "minor_faults": minor_faults,
            "major_faults": major_faults,
            "ns_per_fault": fault_ns,
            "unrecorded_ns": self.outcome.unrecorded_ns,
            "forked": self.outcome.forked,
            "follow": follow.map(|of| of.get_name().to_string()).collect::<Vec<_>>(),
            "recording_ns_per_event": self.outcome.ticks_per_event * 1e9 / self.header.clock_hz as f64,
            "ns_per_free": self.outcome.ticks_per_free * 1e9 / self.header.clock_hz as f64,
            "waits": self.outcome.waits,
            "ring_pages": self.outcome.ring_pages,
            "host": text(host.map(|h| h.nodename())),
            "kernel": text(host.map(|h| h.release())),
            "cpu": model,
            "cores": std::thread::available_parallelism().map_or(0, usize::from),
            "environment": mallocs_environment(),
        });
        let Value::Object(mut notes) = notes else { return Map::new() };
        let warnings: Vec<String> = self.warnings.iter().cloned().chain(self.narrow()).collect();
        notes.insert("warnings".to_string(), warnings.into());
        let stdin = self.command.streams.stdin.clone().or_else(stdin_file);
        // A file below /proc has this name in the current process only.
        if let Some(file) = stdin.filter(|file| file.is_file() && !file.starts_with("/proc")) {
            let file = std::path::absolute(&file).unwrap_or(file);
            notes.insert("stdin".to_string(), file.to_string_lossy().into());
        }
        if let Some(window) = &self.command.window {
            notes.insert("window".to_string(), shown_window(window).into());
        }
        if let Some(why) = self.stopped() {
            notes.insert("stopped".to_string(), why.into());
            notes.insert("unwritten".to_string(), self.outcome.lost_written.into());
        }
        if let (Some(load), Some(Ok(count))) = (&self.command.work.load, &self.served) {
            notes.insert("load".to_string(), load.clone().into());
            notes.insert("loads".to_string(), (*count).into());
            let seconds = self.command.work.repeated_for.map(|time| time.as_secs_f64());
            notes.insert("load_seconds".to_string(), seconds.into());
        }
        notes
    }

    fn text(&self, manifest: &Manifest) -> String {
        let name = self.names.trace.display();
        let (events, failed) = (manifest.counts.events, manifest.counts.failed);
        let mut text = format!(
            "mallard: {}{} in {}, {}: {name} ({})\n",
            plural(events, "event"),
            of_threads(manifest.totals.threads, manifest.totals.processes),
            time(self.outcome.wall.as_nanos() as f64),
            how_it_ended(&self.outcome.ended),
            bytes(size_of(&self.names.trace)),
        );
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
                 more, locality aside\n",
                percent(bound)
            );
        } else if let Some(why) = unknown(manifest) {
            text += &format!("  how much malloc, free and page faults took is unknown: {why}\n");
        }
        if self.outcome.ended.signal() == Some(Signal::SIGSYS as i32) {
            text +=
                "  its filter of system calls (seccomp) ended it: if that happens in recordings \
                     alone, use --on-full drop, which needs no nanosleep\n";
        }
        let next = format!("mallard sites {}", quoted_path(&self.names.trace));
        text += &format!("  next: {}\n", as_called(&next));
        text
    }

    /// A warning that the address space of the program is limited. `None` without a limit.
    fn narrow(&self) -> Option<String> {
        let limit = self.outcome.address_space_limit?;
        Some(format!(
            "the program may have {} of address space, and the ring took {} of it: allocations may \
             fail that succeed without recording",
            bytes(limit),
            bytes(self.outcome.ring_bytes)
        ))
    }

    /// Why the recording stopped before the program ended.
    fn stopped(&self) -> Option<String> {
        match &self.outcome.write_error {
            Some(error) => {
                let error = error.to_string().to_lowercase();
                Some(format!("the stream could not be written ({error})"))
            }
            None => self.outcome.stopped_at.map(|at| {
                let limit = bytes(self.command.max_size);
                format!("the stream had {}, more than the {limit} of --max-size", bytes(at))
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

/// Bytes of all files in a folder.
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

/// Environment variables that change how programs allocate.
fn mallocs_environment() -> Map<String, Value> {
    let concerns = |name: &str| {
        concerns_malloc(name) || name.starts_with("LD_PRELOAD") || name.starts_with("MALLARD_")
    };
    std::env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value))
        .filter(|(name, _)| concerns(name))
        .map(|(name, value)| (name, Value::from(value.to_string_lossy().into_owned())))
        .collect()
}

/// The time of a page fault in ns, clearing the page included: the lowest of three measurements.
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

/// The recorded part of the run: `10s..70s`, `10s..`.
fn shown_window(window: &Range<Duration>) -> String {
    let end = match window.end {
        Duration::MAX => String::new(),
        end => format!("{}s", end.as_secs_f64()),
    };
    format!("{}s..{end}", window.start.as_secs_f64())
}

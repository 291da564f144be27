//! `mallard record`: runs a program, or attaches to a process, and makes a trace.

use super::options::{Command, Follow, Growth, OnFull, Stacks};
use super::serving::{ServerWork, Serving, Unserved};
use super::{names, summary};
use crate::output::debuginfod::Debuginfod;
use mallard_measure::error::status::{CANNOT_RECORD, MALLARD_FAILED};
use mallard_measure::error::tell;
use mallard_measure::error::Failure;
use mallard_measure::output::shell::quoted_path;
use mallard_measure::output::units;
use mallard_measure::process::installed::RECORDER;
use mallard_measure::process::launch::Running;
use mallard_measure::process::launch::Streams;
use mallard_measure::process::proc::{self, Process};
use mallard_measure::process::program::{self, Finding};
use mallard_measure::process::starter;
use mallard_record::attach::{self, Attached, Interrupt};
use mallard_record::ring::{self, Ring};
use mallard_record::session::{Limits, Outcome, Session, Start};
use mallard_record::subject::Subject;
use mallard_record::ticks;
use mallard_record::unrecorded::RecordedTime;
use mallard_top::Top;
use mallard_trace::format::Header;
use mallard_trace::stream::{Compression, Writer};
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Instant;

/// The result of a recording that another command requested.
pub struct Recorded {
    /// The trace.
    pub trace: PathBuf,
    /// A flag. While it is set, SIGINT, SIGTERM and similar signals end this process.
    pub ends_by_signals: Arc<AtomicBool>,
    /// The signal that asked the program to terminate. `None` if no such signal arrived.
    pub interrupted_by: Option<i32>,
}

/// A recording whose ring and stream exist, but whose program does not run yet.
struct Begun {
    ring: Ring,
    names: names::Names,
    file: File,
    header: Header,
    writer: Writer<File>,
    start: Start,
}

impl Command {
    /// Makes a recording of all events, for another command. The trace has the name `output`, or
    /// else the name of the program. Prints nothing.
    pub fn of(
        program: &[OsString],
        output: Option<PathBuf>,
        follow: &[Follow],
        work: &ServerWork,
        streams: Streams,
        debuginfod: Debuginfod,
    ) -> Command {
        Command {
            output,
            stacks: Stacks::Full,
            no_free_stacks: false,
            sample: 0,
            window: None,
            follow: follow.to_vec(),
            work: work.clone(),
            on_full: OnFull::Block,
            max_size: 16 << 30,
            debug_dir: Vec::new(),
            debuginfod,
            no_symbols: false,
            anonymize: false,
            keep_stream: false,
            force: false,
            json: false,
            quiet: true,
            verbose: false,
            growth: None,
            pid: None,
            top: None,
            prints_begin: false,
            streams,
            program: program.to_vec(),
        }
    }

    /// Returns a recording of a process that is already running, for another command. Prints that the recording
    /// has begun, unless `quiet`.
    pub fn of_process(
        process: u32,
        output: Option<PathBuf>,
        work: &ServerWork,
        debuginfod: Debuginfod,
        quiet: bool,
    ) -> Command {
        let command = Command::of(&[], output, &[], work, Streams::default(), debuginfod);
        Command { pid: Some(process), prints_begin: !quiet, ..command }
    }

    /// Returns this recording with a live view. The event log has at most `max_size` bytes, and no
    /// call stacks of frees, which the view does not show.
    pub fn with_top(self, top: mallard_top::Options, max_size: u64) -> Command {
        let debug_dir = top.debug_folders.clone();
        Command { top: Some(top), max_size, no_free_stacks: true, quiet: false, debug_dir, ..self }
    }

    /// Runs the program, and returns its exit status.
    pub fn run(self) -> Result<ExitCode, Failure> {
        starter::prepare();
        Ok(self.record()?.0)
    }

    /// Returns this recording with a function that prints the growth of a running process before
    /// the summary.
    pub fn with_growth(self, growth: Growth) -> Command {
        Command { growth: self.pid.map(|_| growth), ..self }
    }

    /// Runs the program, and returns its exit status and the trace.
    pub fn record(self) -> Result<(ExitCode, Recorded), Failure> {
        if let Some(process) = self.pid {
            return self.record_running(process);
        }
        let path = program::find(&self.program[0], "mallard record --")?;
        let findings = self.refuse_unrecordable(&path)?;
        let recorder = RECORDER.find("the program was not started")?;
        let limit = proc::address_space_limit(Process::This);
        if let Some(limit) = limit.filter(|&limit| limit < ADDRESS_SPACE_MIN) {
            return Err(too_narrow(limit));
        }
        let Begun { ring, names, file, header, writer, start } = self.begin(limit, &path)?;
        // The terminal is changed before the program runs, because the program waits while this command is
        // stopped.
        let top = self.top.clone().map(Top::open);
        let running = Running::start(
            &path,
            &self.program[0],
            &self.program[1..],
            &recorder,
            &ring.variable(),
            &self.streams,
        )
        .inspect_err(|_| names.remove_stream())?;
        let ends_by_signals = running.ends_by_signals();
        let serving = Serving::begin(&self.work, &running);
        let recorded = RecordedTime::new(
            running.process(),
            &path,
            self.follow.contains(&Follow::Fork),
            header.clock_hz,
        );
        let subject = Subject::Started(running);
        let session = Session::new(ring, subject, file, writer, self.limits(), start, recorded);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let session = observed(session, top, &names, &name);
        let outcome = session.run().map_err(|e| lost_program(&names, &e))?;
        let served = serving.map(Serving::finish);
        self.finish(&path, names, header, outcome, served, findings, ends_by_signals)
    }

    /// Records a process that is already running.
    fn record_running(self, process: u32) -> Result<(ExitCode, Recorded), Failure> {
        let recorder = RECORDER.find("the process runs on, and nothing was recorded")?;
        let recorder = std::path::absolute(&recorder).unwrap_or(recorder);
        let target = attach::check(process, &recorder)?;
        let path = target.path.clone();
        let limit = proc::address_space_limit(Process::Id(process));
        let Begun { ring, names, file, header, writer, start } =
            self.begin(limit, Path::new(&target.name))?;
        let interrupt = Interrupt::take().map_err(|e| no_ring(&e))?;
        let top = self.top.clone().map(Top::open);
        let loaded = attach::load(&target, &recorder, ring.file(), &interrupt.came)
            .inspect_err(|_| names.remove_stream())?;
        if self.prints_begin || (!self.quiet && !self.json && self.top.is_none()) {
            let end = match self.work.repeated_for {
                Some(for_time) => format!("for {}", units::time(for_time.as_nanos() as f64)),
                None => "until Ctrl-C".to_string(),
            };
            tell(format!("mallard: recording process {process} ({}) {end}", target.name));
        }
        let attached = Attached::new(&target, loaded, interrupt, self.work.repeated_for);
        let ends_by_signals = attached.ends_by_signals();
        let recorded =
            RecordedTime::new(process, &path, self.follow.contains(&Follow::Fork), header.clock_hz);
        let subject = Subject::Attached(Box::new(attached));
        let session = Session::new(ring, subject, file, writer, self.limits(), start, recorded);
        let session = observed(session, top, &names, &target.name);
        let outcome = session.run().map_err(|e| lost_program(&names, &e))?;
        self.finish(&path, names, header, outcome, None, Vec::new(), ends_by_signals)
    }

    /// Makes the ring, and the stream file with its header.
    fn begin(&self, limit: Option<u64>, path: &Path) -> Result<Begun, Failure> {
        let ring = Ring::create(&self.ring_options(limit)).map_err(|e| no_ring(&e))?;
        let (names, file) = names::claim(self.output.as_deref(), path, self.force)?;
        let clock = ticks::best();
        let header = Header {
            clock_hz: ticks::per_second(clock),
            start: ticks::now(clock),
            start_unix: unix_ns(),
            clock,
            pid: std::process::id(),
            sample_bytes: self.sample,
        };
        let start_ns = ticks::monotonic_ns();
        let writer = file
            .try_clone()
            .and_then(|f| Writer::new(f, &header, Compression::Packed))
            .inspect_err(|_| names.remove_stream())
            .map_err(|e| names.unwritable(&e))?;
        let start = Start { clock, ns: start_ns, begin: Instant::now() };
        Ok(Begun { ring, names, file, header, writer, start })
    }

    fn limits(&self) -> Limits {
        Limits { window: self.window.clone(), max_bytes: self.max_size }
    }

    /// Makes the trace and prints the summary.
    #[allow(clippy::too_many_arguments)] // all parts of a recording are needed here
    fn finish(
        &self,
        path: &Path,
        names: names::Names,
        header: Header,
        outcome: Outcome,
        served: Option<Result<u64, Unserved>>,
        findings: Vec<Finding>,
        ends_by_signals: Arc<AtomicBool>,
    ) -> Result<(ExitCode, Recorded), Failure> {
        let interrupted_by = outcome.interrupted_by;
        let summary = summary::Summary {
            command: self,
            path,
            names: &names,
            header,
            outcome,
            served,
            findings,
        };
        let status =
            summary.finish().inspect_err(|_| ends_by_signals.store(false, Ordering::Relaxed))?;
        Ok((status, Recorded { trace: names.trace, ends_by_signals, interrupted_by }))
    }

    /// Rejects a program into which the recorder cannot be loaded. Prints warnings about other
    /// problems, and returns them.
    fn refuse_unrecordable(&self, path: &Path) -> Result<Vec<Finding>, Failure> {
        let shown = path.display();
        // If the file is unreadable, the start of the program fails later and prints why.
        let mut findings = program::examine(path).unwrap_or_default();
        findings.extend(program::script(path).filter(|_| !self.follow.contains(&Follow::Exec)));
        for finding in &findings {
            let help = finding.help.clone();
            if finding.refuses {
                let what = format!("cannot record {shown}: {}", finding.what);
                let failure = Failure::new(what, "the program was not started", help);
                return Err(failure.with_status(CANNOT_RECORD));
            }
            if !self.quiet {
                let what = format!("{shown}: {}", finding.what);
                tell(Failure::new(what, "the program is recorded anyway", help));
            }
        }
        Ok(findings)
    }

    fn ring_options(&self, address_space: Option<u64>) -> ring::Options {
        ring::Options {
            segments: segments(address_space, self.max_size),
            drops: self.on_full == OnFull::Drop,
            stacks: match self.stacks {
                Stacks::None => 0,
                Stacks::Caller => 1,
                Stacks::Fp => 2,
                Stacks::Full => 3,
            },
            free_stacks: !self.no_free_stacks,
            follow: u32::from(self.follow.contains(&Follow::Fork))
                + 2 * u32::from(self.follow.contains(&Follow::Exec)),
            sample_bytes: self.sample,
            time_calls: 16,
            clock: ticks::best(),
            clock_ticks: ticks::of_reading(ticks::best()),
            recording: self.window.as_ref().is_none_or(|window| window.start.is_zero()),
        }
    }
}

/// Lets a live view observe a session, if there is one.
fn observed(session: Session, top: Option<Top>, names: &names::Names, name: &str) -> Session {
    let process = session.process();
    match top {
        Some(top) => session.with_observer(top.begin(name, process, names.trace.clone())),
        None => session,
    }
}

/// Returns the error for a program whose end the system does not report.
fn lost_program(names: &names::Names, error: &std::io::Error) -> Failure {
    Failure::new(
        format!("cannot wait for the program: {error}"),
        format!("the events until now are in {}", names.stream.display()),
        format!("mallard import {}", quoted_path(&names.stream)),
    )
    .with_status(MALLARD_FAILED)
}

/// The address space that is needed to make a trace, in bytes.
const ADDRESS_SPACE_MIN: u64 = 400 << 20;

fn too_narrow(limit: u64) -> Failure {
    let [limit, needed] = [limit, ADDRESS_SPACE_MIN].map(units::bytes);
    let what = format!("the address space is limited to {limit}, but mallard needs {needed}");
    let help = "ulimit -v: allow more, or record without this limit";
    Failure::new(what, "the program was not started", help).with_status(MALLARD_FAILED)
}

/// Returns the number of segments of the ring. If the address space is limited, the program has the
/// same limit, and the ring uses at most an eighth of it. When the stream reaches `max_size`, the
/// events in the ring are still added to the stream, in about a fifth of their size, so they add at
/// most a tenth of `max_size`.
fn segments(limit: Option<u64>, max_size: u64) -> u32 {
    let bytes = (limit.unwrap_or(u64::MAX) / 8).min(max_size / 2);
    let share = bytes / ring::SEGMENT_BYTES as u64;
    share.clamp(256, ring::SEGMENTS.into()) as u32
}

fn no_ring(error: &std::io::Error) -> Failure {
    use nix::errno::Errno;
    let help = match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EPERM | Errno::EACCES | Errno::ENOSYS) => {
            "a sandbox forbids it: permit the system calls memfd_create and mmap, or record outside of it"
        }
        Some(Errno::EMFILE | Errno::ENFILE) => "ulimit -n: mallard needs a few more open files",
        _ => "ulimit -a: the limit of file size must allow 260 MiB",
    };
    let error = error.to_string().to_lowercase();
    let what = format!("cannot create the shared memory for events: {error}");
    Failure::new(what, "the program was not started", help).with_status(MALLARD_FAILED)
}

fn unix_ns() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}

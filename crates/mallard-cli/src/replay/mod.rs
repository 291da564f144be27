//! Implements `mallard replay`, which estimates what another allocator would change for a recorded
//! program.
//!
//! `candidates` makes op streams from the trace, one for each plan, and lists what is compared.
//! `player` finds and runs the replayer, which makes the calls of an op stream. `playing` measures
//! interleaved runs of the replayer (see `mallard_measure::rounds` for subjects, rounds and
//! columns), and `effects` computes the CPU time of the program from these runs. `report` shows the
//! result, with `text` and `json`. `write` writes an op stream to a file instead of replaying.
//! `session` is the interface for other commands, which add candidates one by one.

mod candidates;
mod effects;
mod json;
mod options;
mod part;
mod player;
mod playing;
mod report;
mod session;
mod text;
mod write;

use crate::look;
use candidates::Candidates;
use effects::{effects, Program};
use mallard_measure::error::Failure;
use mallard_measure::mallocs::wanted::Wanted;
use mallard_measure::process::starter;
use mallard_measure::rounds::host::Host;
use mallard_measure::rounds::timing::Timing;
use mallard_measure::verdict;
use mallard_measure::verdict::paired::Differences;
use mallard_trace::Trace;
use options::{temporary_folder, Compiling};
use player::Manner;
use playing::Playing;
use report::Report;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

pub use effects::{cpu_ns, threads_at_once};
pub use options::Command;
pub use part::recorded_share;
pub use report::likely;
pub use session::{Accounted, Pilot, Played, Session};

impl Command {
    /// Replays, and prints the result.
    pub fn run(self) -> Result<ExitCode, Failure> {
        starter::prepare();
        let trace = look::open(&self.name)?;
        if let Some(file) = &self.write {
            return self.write_stream(&trace, file);
        }
        let player = player::find()?;
        let folder = temporary_folder()?;
        let candidates = Candidates::make(&self, &trace, &player, folder.path())?;
        let program = Program::of(&trace, &candidates)?;
        let playing = Playing::new(self.timing.runner()?, &candidates, &program);
        let mut host = Host::now();
        let (measured, seed) = playing.measure(&self.timing, &candidates)?;
        let mut report = Report::new(&self, &trace, &candidates, &program, measured, seed);
        report.notes.extend(host.notes());
        report.show(&self.timing)?;
        Ok(report.status())
    }
}

/// The savings that a replay finds for mallocs.
pub struct Savings {
    /// The savings of each malloc that could be replayed, by name, as shares of `program_ns`. No
    /// entries if nothing was measured.
    pub of: BTreeMap<String, Differences>,
    /// The CPU time of the program in ns, as the recording shows it, without the time of recording.
    pub program_ns: f64,
}

/// Replays a recording under some mallocs.
pub fn savings(
    trace: &Trace,
    allocators: &[Wanted],
    budget: Duration,
    quiet: bool,
) -> Result<Savings, Failure> {
    let command = Command {
        name: trace.folder().to_path_buf(),
        allocator: allocators.to_vec(),
        plan: Vec::new(),
        strategy: Vec::new(),
        write: None,
        manner: Manner::default(),
        compiling: Compiling::default(),
        timing: Timing::of(budget, quiet),
    };
    let player = player::find()?;
    let folder = temporary_folder()?;
    let candidates = Candidates::make(&command, trace, &player, folder.path())?;
    let program = Program::of(trace, &candidates)?;
    let (measured, _) = Playing::new(command.timing.runner()?, &candidates, &program)
        .measure(&command.timing, &candidates)?;
    let effects = effects(&candidates, &program, &measured);
    let all = effects.alive.iter().enumerate().filter_map(|(at, &index)| {
        let name = candidates.all[index].name.clone();
        Some((name, verdict::candidate(&effects.cpu, at)?))
    });
    Ok(Savings { of: all.collect(), program_ns: effects.program_ns })
}

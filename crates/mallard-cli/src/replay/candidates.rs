//! Chooses what a replay compares, which is op streams, and the allocators under which they are
//! replayed.

use super::options::{name_of, Command};
use super::player::{ask, Manner, Mode};
use mallard_measure::clock;
use mallard_measure::error::status::MALLARD_FAILED;
use mallard_measure::error::Failure;
use mallard_measure::mallocs::wanted::Wanted;
use mallard_measure::mallocs::{self, probe, Allocator};
use mallard_measure::output::progress::Work;
use mallard_measure::rounds::subject::Subject;
use mallard_trace::replay::{compile, Compiled, Options, Plan, Strategy};
use mallard_trace::Trace;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// An op stream, which contains the calls of a recorded program.
pub struct Stream {
    /// The facts about the stream.
    pub compiled: Compiled,
    /// The exact memory that the plan's local allocators use.
    pub account: Account,
    /// The index in `Candidates::subjects` of the run under an allocator that does nothing. The
    /// time of this run is the time of the replayer itself.
    pub no_op: usize,
}

/// The exact memory of local allocators, from `mallard-replay --account`.
#[derive(Clone, Debug, Deserialize)]
pub struct Account {
    /// The peak of the requested bytes in use, of malloc and the local allocators together.
    pub requested_peak_bytes: u64,
    /// The local allocators.
    pub counted: Counted,
}

/// Bytes that local allocators allocate from malloc.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Counted {
    /// The peak of the bytes held.
    pub peak_bytes: u64,
    /// The bytes for each rule of the plan.
    pub rules: Vec<CountedRule>,
}

/// Bytes that the local allocators of one rule allocate from malloc.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct CountedRule {
    /// The position of the rule in the plan, from 1.
    pub rule: usize,
    /// The peak of the bytes held for this rule.
    pub peak_bytes: u64,
    /// The number of allocated chunks.
    pub chunks: u64,
}

/// The figures that mallard uses from the replayer's output after the first run.
#[derive(Deserialize)]
struct First {
    minor_faults: f64,
    start_rss_kib: f64,
    own_kib: f64,
}

/// One line of the result.
pub struct Candidate {
    /// The name in tables.
    pub name: String,
    /// The index in `Candidates::subjects` of the run that is measured for this line. `None` for
    /// the base.
    pub measured: Option<usize>,
    /// The index of the op stream in `Candidates::streams`.
    pub stream: usize,
    /// The number of calls through an abstract base class. A replay makes no such calls, so their
    /// cost is shown separately.
    pub virtual_calls: u64,
    /// The name of the candidate that is measured instead of this one, because both make the same
    /// calls.
    pub measured_as: Option<String>,
    /// Whether only the malloc differs, so that `mallard try` can check the result.
    pub is_malloc: bool,
}

/// All op streams, allocators and candidates of a replay.
pub struct Candidates {
    /// The op streams; the first one has the calls as recorded.
    pub streams: Vec<Stream>,
    /// The recorded calls under glibc's malloc, or under the malloc in LD_PRELOAD.
    pub base: Subject,
    /// The subjects that are replayed in addition to the base, including each stream under the
    /// allocator that does nothing.
    pub subjects: Vec<Subject>,
    /// The lines of the result.
    pub all: Vec<Candidate>,
    /// Notes for the reader.
    pub notes: Vec<String>,
    /// What a replay writes to each new block: nothing (`none`), one byte of each page (`page`), or
    /// every byte (`all`).
    pub touch: &'static str,
    /// The resident memory of the replayer under the malloc of the base, before the first op and
    /// without the replayer's own tables, in KiB. All further memory of a run is the heap of the
    /// malloc.
    pub start_kib: f64,
    /// The time of the first run, in which the replayer also reads the op stream.
    pub first_play: Duration,
    /// The cost of a virtual call on this machine, in ns, as the smallest and the largest figure of
    /// several call patterns. `None` if no candidate has virtual calls.
    pub virtual_ns: Option<(f64, f64)>,
}

/// A builder that adds candidates one by one.
pub(super) struct Builder<'a> {
    trace: &'a Trace,
    player: PathBuf,
    folder: PathBuf,
    options: Options,
    work: Option<Work>,
    manner: Manner,
    pub(super) out: Candidates,
}

impl Candidates {
    /// Compiles the op streams and finds the allocators.
    pub fn make(
        command: &Command,
        trace: &Trace,
        player: &Path,
        folder: &Path,
    ) -> Result<Candidates, Failure> {
        let own = crate::record::recorded::base_of(trace)?;
        let work = (!command.timing.quiet).then(Work::begin);
        let manner = command.manner.clone();
        let options = command.compiling.options();
        let mut builder = Builder::begin(trace, player, folder, &own, (manner, options, work))?;
        builder.mallocs(command, &own)?;
        builder.strategies(command, &own)?;
        builder.plans(command, &own)?;
        builder.virtual_calls()?;
        Ok(builder.out)
    }
}

impl Candidates {
    /// Keeps only the candidates in `kept`, in the given order, and the op streams that they need.
    pub(super) fn only(mut self, kept: &[usize]) -> Candidates {
        let mut streams: Vec<usize> = kept.iter().map(|&i| self.all[i].stream).collect();
        streams.push(0);
        streams.sort_unstable();
        streams.dedup();
        let players = streams.iter().map(|&stream| self.streams[stream].no_op);
        let mut subjects: Vec<usize> =
            kept.iter().filter_map(|&i| self.all[i].measured).chain(players).collect();
        subjects.sort_unstable();
        subjects.dedup();
        let place = |all: &[usize], one: usize| all.iter().position(|&of| of == one).unwrap_or(0);
        let candidate = |&i: &usize| {
            let of = &self.all[i];
            Candidate {
                name: of.name.clone(),
                measured: of.measured.map(|subject| place(&subjects, subject)),
                stream: place(&streams, of.stream),
                virtual_calls: of.virtual_calls,
                measured_as: of.measured_as.clone(),
                is_malloc: of.is_malloc,
            }
        };
        let candidates = kept.iter().map(candidate).collect();
        self.all = candidates;
        let all = std::mem::take(&mut self.streams).into_iter().enumerate();
        self.streams = all
            .filter(|(number, _)| streams.contains(number))
            .map(|(_, stream)| Stream { no_op: place(&subjects, stream.no_op), ..stream })
            .collect();
        self.subjects = subjects.iter().map(|&of| self.subjects[of].clone()).collect();
        self
    }
}

impl<'a> Builder<'a> {
    /// Compiles the recorded calls, and replays them once.
    pub(super) fn begin(
        trace: &'a Trace,
        player: &Path,
        folder: &Path,
        own: &Allocator,
        (manner, options, work): (Manner, Options, Option<Work>),
    ) -> Result<Builder<'a>, Failure> {
        let out = Candidates {
            streams: Vec::new(),
            base: subject(&manner, player, own, &folder.join("0.ops"), Mode::Play),
            subjects: Vec::new(),
            all: Vec::new(),
            notes: Vec::new(),
            touch: "",
            start_kib: 0.0,
            first_play: Duration::ZERO,
            virtual_ns: None,
        };
        let (player, folder) = (player.to_path_buf(), folder.to_path_buf());
        let mut builder = Builder { trace, player, folder, options, work, manner, out };
        builder.stream(&Plan::default(), own)?;
        Ok(builder)
    }
}

impl Builder<'_> {
    /// Compiles the op stream of a plan, and adds a subject that replays it under the allocator
    /// that does nothing.
    pub(super) fn stream(&mut self, plan: &Plan, own: &Allocator) -> Result<usize, Failure> {
        let number = self.out.streams.len();
        if let Some(work) = &self.work {
            work.say("preparing the recorded calls for replay");
        }
        let path = self.folder.join(format!("{number}.ops"));
        let compiled = compile(self.trace, plan, &self.options, &path)?;
        if number == 0 {
            self.play_first(own, &path)?;
        }
        let words = self.manner.words(&path, Mode::Account);
        let account: Account = ask(&self.player, &words)?;
        let no_op = self.add(subject(&self.manner, &self.player, own, &path, Mode::NoOp));
        for validity in &compiled.validity {
            let note = validity.to_string();
            if !self.out.notes.contains(&note) {
                self.out.notes.push(note);
            }
        }
        self.out.streams.push(Stream { compiled, account, no_op });
        Ok(number)
    }

    /// Replays the recorded calls once. This run shows how much memory the replayer uses before the
    /// first op, and what replays should write to new blocks.
    fn play_first(&mut self, own: &Allocator, path: &Path) -> Result<(), Failure> {
        let player = &self.player;
        let begin = Instant::now();
        let first: First = ask(player, &self.manner.words(path, Mode::Play))?;
        self.out.first_play = clock::ran(begin.elapsed());
        self.out.start_kib = first.start_rss_kib - first.own_kib;
        let of_program = self.trace.manifest().notes.minor_faults.map(|n| n as f64);
        self.out.notes.extend(self.manner.decide(of_program, first.minor_faults));
        self.out.touch = self.manner.touch();
        self.out.base = subject(&self.manner, player, own, path, Mode::Play);
        Ok(())
    }

    fn add(&mut self, subject: Subject) -> usize {
        self.out.subjects.push(subject);
        self.out.subjects.len() - 1
    }

    fn path(&self, stream: usize) -> PathBuf {
        self.out.streams[stream].compiled.path.clone()
    }

    /// Adds a subject that replays a stream under an allocator. Returns the index of the subject.
    pub(super) fn play(&mut self, name: &str, stream: usize, allocator: &Allocator) -> usize {
        let path = self.path(stream);
        let mut played = subject(&self.manner, &self.player, allocator, &path, Mode::Play);
        played.name = name.to_string();
        self.add(played)
    }

    /// Adds the mallocs that the user has named. If the user has named no malloc, plan or strategy,
    /// adds all installed mallocs.
    fn mallocs(&mut self, command: &Command, own: &Allocator) -> Result<(), Failure> {
        let named = &command.allocator;
        let names_others = !command.plan.is_empty() || !command.strategy.is_empty();
        let mut found: Vec<Allocator> = named.iter().map(Wanted::find).collect::<Result<_, _>>()?;
        found.iter().try_for_each(probe::check)?;
        if named.is_empty() && !names_others {
            let (installed, missing) = mallocs::installed();
            found = installed;
            found.retain(|allocator| allocator.name != own.name);
            self.out.notes.extend(mallocs::note_of_missing(&missing));
        }
        for allocator in found {
            self.malloc(&allocator);
        }
        Ok(())
    }

    /// Adds a malloc as a candidate.
    pub(super) fn malloc(&mut self, allocator: &Allocator) {
        let played = self.play(&allocator.name, 0, allocator);
        self.out.all.push(Candidate {
            name: allocator.name.clone(),
            measured: Some(played),
            stream: 0,
            virtual_calls: 0,
            measured_as: None,
            is_malloc: true,
        });
    }

    /// Adds a plan as a candidate. `default` is the malloc of the process.
    pub(super) fn plan(
        &mut self,
        name: &str,
        plan: &Plan,
        own: &Allocator,
        default: &Allocator,
    ) -> Result<(), Failure> {
        let stream = self.stream(plan, own)?;
        let measured = Some(self.play(name, stream, default));
        let virtual_calls = self.out.streams[stream].compiled.virtual_calls;
        self.out.all.push(Candidate {
            name: name.to_string(),
            measured,
            stream,
            virtual_calls,
            measured_as: None,
            is_malloc: false,
        });
        Ok(())
    }

    /// Adds the strategies that the user has named. Strategies with an abstract base class are not
    /// replayed, because the same strategies with a type parameter make the same calls.
    fn strategies(&mut self, command: &Command, own: &Allocator) -> Result<(), Failure> {
        let mut played: Vec<(Strategy, Option<usize>, usize)> = Vec::new();
        for strategy in command.strategies() {
            let alike = |other: &Strategy| {
                other.allocator() == strategy.allocator()
                    && other.winks_out() == strategy.winks_out()
                    && !other.is_virtual()
            };
            let direct = Strategy::all().find(alike).unwrap_or(strategy);
            let (measured, stream) = match played.iter().find(|(known, ..)| *known == direct) {
                Some((_, measured, stream)) => (*measured, *stream),
                None if direct.number() == 1 => (None, 0),
                None => {
                    let stream = self.stream(&Plan::of_strategy(direct), own)?;
                    (Some(self.play(&direct.to_string(), stream, own)), stream)
                }
            };
            played.push((direct, measured, stream));
            let calls = self.out.streams[stream].compiled.calls;
            self.out.all.push(Candidate {
                name: strategy.to_string(),
                measured,
                stream,
                virtual_calls: if strategy.is_virtual() { calls } else { 0 },
                measured_as: (direct != strategy).then(|| direct.to_string()),
                is_malloc: false,
            });
        }
        Ok(())
    }

    fn plans(&mut self, command: &Command, own: &Allocator) -> Result<(), Failure> {
        for file in &command.plan {
            let plan = Plan::read(file)?;
            let default = match plan.default.name.as_str() {
                "malloc" => own.clone(),
                name => {
                    let library = plan.default.library.iter().map(|library| format!("={library}"));
                    let named = format!("{name}{}", library.collect::<String>());
                    let found = named.parse::<Wanted>().map_err(|why| {
                        let what = format!("{}: {why}", file.display());
                        Failure::new(what, "nothing was replayed", "default = \"malloc\"")
                            .with_status(MALLARD_FAILED)
                    })?;
                    let found = found.find()?;
                    probe::check(&found)?;
                    found
                }
            };
            self.plan(&name_of(file), &plan, own, &default)?;
        }
        Ok(())
    }

    /// Measures the cost of a virtual call, if a candidate has virtual calls.
    fn virtual_calls(&mut self) -> Result<(), Failure> {
        if self.out.all.iter().all(|candidate| candidate.virtual_calls == 0) {
            return Ok(());
        }
        let cost: VirtualCost = ask(&self.player, &["".into(), "--virtual-call".into()])?;
        let shapes = [cost.one_target, cost.alternating, cost.cold].map(|s| s.difference_ns);
        let least = shapes.iter().copied().fold(f64::INFINITY, f64::min);
        let most = shapes.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        self.out.virtual_ns = Some((least, most));
        Ok(())
    }
}

#[derive(Deserialize)]
struct VirtualCost {
    one_target: Shape,
    alternating: Shape,
    cold: Shape,
}

#[derive(Deserialize)]
struct Shape {
    difference_ns: f64,
}

fn subject(
    manner: &Manner,
    player: &Path,
    allocator: &Allocator,
    stream: &Path,
    mode: Mode,
) -> Subject {
    Subject {
        name: allocator.name.clone(),
        path: player.to_path_buf(),
        words: manner.words(stream, mode),
        variables: allocator.variables(player),
        library: allocator.library.clone(),
        is_setting: false,
    }
}

//! Prints the advice as text, JSON or SARIF, and saves it in the directory of the trace.

use super::budget::Budget;
use super::candidate::{Candidate, Dropped, Forced, Kind, Name};
use super::card::{self, cards, Card};
use super::facts::Site;
use super::force::wish;
use super::measured::Measured;
use super::reason::{Gap, Note, Reason};
use super::sarif;
use super::stages::Stages;
use super::words;
use crate::output::file::write_whole;
use crate::report::ADVICE_FILE;
use mallard_measure::error::Failure;
use mallard_measure::output::shell::{as_called, quoted_path};
use mallard_measure::output::terminal::{self, say};
use mallard_measure::output::units::{budget, bytes, of_threads, plural, time};
use mallard_measure::rounds::timing::Timing;
use mallard_trace::regions::Region;
use mallard_trace::replay::Strategy;
use serde_json::{json, Value};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

/// The version of the JSON keys.
const VERSION: u32 = 1;
/// The verdict if the user asked for a strategy (--force), so that nothing else was considered.
const FORCED: &str = "forced";

/// The output of the advice on a program.
pub struct Output<'a> {
    evidence: &'a Measured,
    cards: Vec<Card>,
    budget: Duration,
    taken: Duration,
    stages: &'a Stages,
    /// A note that earlier advice stays in the directory of the trace. `None` if this advice
    /// replaces the earlier advice, or if there was no earlier advice.
    stays: Option<Note>,
}

impl Output<'_> {
    /// Makes the cards.
    pub fn new<'a>(evidence: &'a Measured, budget: &Budget, stages: &'a Stages) -> Output<'a> {
        let (budget, taken) = (budget.all(), budget.taken());
        Output { cards: cards(evidence), evidence, budget, taken, stages, stays: None }
    }

    /// Returns the verdict in one word.
    fn verdict(&self) -> &'static str {
        match self.evidence.forced {
            Some(_) => FORCED,
            None => card::verdict(&self.cards),
        }
    }

    /// Saves the advice in the directory of the trace. If the directory cannot be written, the
    /// advice is still printed. Earlier advice that decides more stays, and a note reports that.
    pub fn save(&mut self, folder: &Path, errors: &mut dyn Write) {
        let advice = self.json();
        let path = folder.join(ADVICE_FILE);
        let earlier = std::fs::read_to_string(&path).unwrap_or_default();
        let earlier: Value = serde_json::from_str(&earlier).unwrap_or_default();
        if decides(&earlier) > decides(&advice) {
            self.stays = Some(Note::EarlierStays(folder.to_path_buf()));
            return;
        }
        let text = format!("{advice}\n");
        if let Err(failure) = write_whole(&path, true, |to| Ok(to.write_all(text.as_bytes())?)) {
            let _ = writeln!(errors, "mallard: the advice could not be saved: {}", failure.what());
        }
    }

    /// Writes the advice to stdout.
    pub fn show(&self, timing: &Timing, is_sarif: bool) -> Result<(), Failure> {
        if is_sarif {
            let folder = std::env::current_dir().unwrap_or_default();
            return terminal::write(&format!(
                "{}\n",
                sarif::log(self.evidence, &self.cards, &folder)
            ));
        }
        if timing.json {
            return terminal::write(&format!("{}\n", self.json()));
        }
        let evidence = self.evidence;
        let mut text = format!("{}\n\n", self.head());
        if let Some(forced) = &evidence.forced {
            text += &format!("{}\n", wish(forced));
        } else {
            text += &format!("{}\n", card::text(&self.cards));
        }
        // If nothing was decided, the card itself has the reasons.
        if self.verdict() != "undecided" {
            let undecided = words::undecided(evidence);
            text.extend(undecided.iter().map(|what| format!("  undecided: {what}\n")));
        }
        if !timing.quiet {
            text.extend(evidence.facts.validity.iter().map(|what| format!("  note: {what}\n")));
            text.extend(self.notes().map(|note| format!("  note: {}\n", as_called(&note))));
            text += &self.not_again();
        }
        text += &format!("  next: {}\n", as_called(&self.next()));
        if let Some(card) = self.cards.first() {
            text += &format!("\n{}\n", card.sentence);
        }
        say(&text)
    }

    /// Returns the program, the trace and the figures above the cards.
    fn head(&self) -> String {
        let program = &self.evidence.facts.program;
        let cpu = match program.cpu_ns {
            Some(ns) => format!("{}{} of CPU time", program.about(), time(ns)),
            None => "an unknown CPU time".to_string(),
        };
        let failure = program.failure.as_ref().map_or(String::new(), |how| format!(" {how}"));
        format!(
            "{}{failure}: {}{} in {cpu}, at most {} in use",
            program.name,
            plural(program.calls, "call"),
            of_threads(program.threads, program.processes),
            bytes(self.evidence.facts.memory.live_peak)
        )
    }

    fn notes(&self) -> impl Iterator<Item = String> + '_ {
        let notes = self.evidence.all_notes().chain(&self.stays);
        notes.map(|note| words::note(note, &self.evidence.facts.program.name))
    }

    /// Returns a note that the program was not run again. Returns an empty text if the program can
    /// run.
    fn not_again(&self) -> String {
        match self.evidence.cannot_run() {
            Some(why) => format!("  note: the program was not run again: {why}\n"),
            None => String::new(),
        }
    }

    /// Returns the command that the user should run next. If the verdict is undecided, returns the
    /// command that records the whole run, or `mallard advise` with a larger budget. After an
    /// interruption, returns `mallard advise`. Otherwise, returns `mallard report`.
    fn next(&self) -> String {
        let is_open = self.verdict() == "undecided";
        if let (true, Some(again)) = (is_open, &self.evidence.facts.records_all) {
            return again.clone();
        }
        let longer = self.evidence.proposed.filter(|_| is_open);
        let longer = longer.map(|time| format!("--budget {}", budget(time)));
        let facts = &self.evidence.facts;
        match longer.or(self.evidence.interrupted.then(String::new)) {
            Some(more) => facts.typed.advise(&quoted_path(facts.program.trace.as_ref()), &more),
            None => format!(
                "mallard report {}",
                quoted_path(self.evidence.facts.program.trace.as_ref())
            ),
        }
    }

    /// Returns the advice as JSON. The keys are stable.
    pub fn json(&self) -> Value {
        let evidence = self.evidence;
        let program = &evidence.facts.program;
        json!({
            "version": VERSION,
            "name": program.trace,
            "program": program.command.as_ref().unwrap_or(&program.name),
            "verdict": self.verdict(),
            "sentence": self.cards.first().map(|card| &card.sentence),
            "min_gain": evidence.facts.min_gain,
            "budget_s": self.budget.as_secs_f64(),
            "took_s": self.taken.as_secs_f64(),
            "stages": self.stages,
            "interrupted": evidence.interrupted,
            "noisy": evidence.noise.is_some(),
            "noise": evidence.noise,
            "bound": evidence.bound(),
            "run": run(evidence),
            "cards": self.cards,
            "matrix": matrix(evidence, self.cards.first()),
            "regions": evidence.facts.regions,
            "sites": evidence.facts.sites.iter().map(site).collect::<Vec<_>>(),
            "forced": evidence.forced.as_ref().map(forced_json),
            "undecided": words::undecided(evidence),
            "validity": evidence.facts.validity.iter().map(Gap::to_string).collect::<Vec<_>>(),
            "notes": self.notes().collect::<Vec<_>>(),
            "next": self.next(),
        })
    }
}

/// Returns a rank for how much an advice decides. An interrupted measurement decides less than a
/// complete one, and the result of a strategy that the user asked for decides nothing.
fn decides(advice: &Value) -> u8 {
    match advice["verdict"].as_str() {
        Some("change" | "leave") if advice["interrupted"] == true => 2,
        Some("change" | "leave") => 3,
        Some("undecided") => 1,
        _ => 0,
    }
}

/// Returns figures of the recorded run.
fn run(evidence: &Measured) -> Value {
    let (program, memory) = (&evidence.facts.program, &evidence.facts.memory);
    json!({
        "malloc": program.malloc,
        "cpu_ns": program.cpu_ns,
        "cpu_by": if program.cpu_measured.is_some() { "runs" } else { "recording" },
        "wall_ns": program.wall_ns,
        "status": program.status,
        "failure": program.failure,
        "calls": program.calls,
        "threads": program.threads,
        "threads_at_once": program.threads_at_once,
        "cores": program.cores,
        "cannot_run": evidence.cannot_run().map(|why| why.to_string()),
        "recordings": evidence.recordings,
        "peak_rss_bytes": memory.peak_rss,
        "live_peak_bytes": memory.live_peak,
        "leaked_bytes": memory.leaked,
    })
}

fn site(site: &Site) -> Value {
    json!({
        "node": site.node,
        "function": site.function,
        "shown": site.shown,
        "owner": site.owner.shown,
        "file": site.file,
        "line": site.line,
        "is_growing": site.is_growing,
        "bytes": site.figures.bytes,
        "call_ns": site.figures.call_ns,
    })
}

/// Makes the `matrix` of the JSON output, with one entry for each measured or dropped candidate.
/// The region of the first card has an entry for each of the 14 strategies.
fn matrix(evidence: &Measured, first: Option<&Card>) -> Vec<Value> {
    let others = not_proposed(evidence, first);
    let dropped = evidence.dropped.iter().chain(&others);
    let dropped = dropped.map(|of| row(evidence, (&of.name, of.kind, of.region), Err(&of.why)));
    let measured = evidence.candidates.iter();
    let measured = measured.map(|of| row(evidence, (&of.name, of.kind, of.region), Ok(of)));
    measured.chain(dropped).collect()
}

/// Returns the strategies that no rule proposes for the region of the first card, with the reason.
fn not_proposed(evidence: &Measured, first: Option<&Card>) -> Vec<Dropped> {
    let of_card = first.and_then(|card| card.region.as_ref());
    let is_it = |of: &Region| {
        of_card.is_some_and(|it| it.function == of.function && it.ends == of.ends.word())
    };
    let Some(place) = evidence.facts.regions.iter().position(is_it) else { return Vec::new() };
    let played = evidence.candidates.iter().map(|of| (&of.name, of.region));
    let dropped = evidence.dropped.iter().map(|of| (&of.name, of.region));
    let of_region = played.chain(dropped).filter(|(_, region)| *region == Some(place));
    let known: Vec<&Name> = of_region.map(|(name, _)| name).collect();
    let is_open = |strategy: &Strategy| {
        !known.iter().any(|name| matches!(name, Name::Plan(of, _) if of == strategy))
    };
    let row = |strategy| Dropped {
        name: Name::Plan(strategy, format!("in {}", evidence.facts.regions[place].shown)),
        kind: Kind::Strategy,
        region: Some(place),
        why: why_not_proposed(strategy),
    };
    Strategy::all().filter(is_open).map(row).collect()
}

fn why_not_proposed(strategy: Strategy) -> Reason {
    let makes_the_same_calls = |other: &Strategy| {
        other.allocator() == strategy.allocator() && other.winks_out() == strategy.winks_out()
    };
    match Strategy::all().find(makes_the_same_calls) {
        _ if strategy.number() == 1 => Reason::IsBase,
        Some(plain) if plain != strategy => Reason::SameCalls(plain),
        _ => Reason::NotProposed,
    }
}

/// Makes an entry of the `matrix`, with the figures of a measured candidate, or with the reason why
/// the candidate was not measured.
fn row(
    evidence: &Measured,
    (name, kind, region): (&Name, Kind, Option<usize>),
    measured: Result<&Candidate, &Reason>,
) -> Value {
    let of = measured.ok();
    let at_end = of.and_then(|of| of.memory_at_end.as_ref().map(|at_end| (at_end, of.end_bytes)));
    let figure = |figure: fn(&Candidate) -> f64| of.map(figure).and_then(finite);
    let interval = |(low, high)| json!({"low": low, "high": high});
    json!({
        "name": name.short(),
        "label": name.to_string(),
        "kind": kind,
        "region": region.and_then(|place| Some(&evidence.facts.regions.get(place)?.shown)),
        "measured_by": of.map(|of| of.by),
        "saving": figure(|of| of.cpu.saving),
        "low": figure(|of| of.cpu.low),
        "high": figure(|of| of.cpu.high),
        "verdict": of.map(|of| of.cpu.verdict),
        "expected": of.and_then(|of| of.expected).map(interval),
        "predicted": of.and_then(|of| of.predicted).map(interval),
        "replayed": of.and_then(|of| finite(of.replayed.as_ref()?.saving)),
        "peak_bytes": of.map(|of| of.peak_bytes.1),
        "base_peak_bytes": of.map(|of| of.peak_bytes.0),
        "memory_saving": figure(|of| of.memory.saving),
        "memory_low": figure(|of| of.memory.low),
        "memory_high": figure(|of| of.memory.high),
        "memory_verdict": of.map(|of| of.memory.verdict),
        "end_bytes": at_end.map(|(_, bytes)| bytes.1),
        "base_end_bytes": at_end.map(|(_, bytes)| bytes.0),
        "end_saving": at_end.and_then(|(at_end, _)| finite(at_end.saving)),
        "end_verdict": at_end.map(|(at_end, _)| at_end.verdict),
        "dropped": measured.err().map(Reason::to_string),
    })
}

fn finite(figure: f64) -> Option<f64> {
    Some(figure).filter(|figure| figure.is_finite())
}

/// Returns the result of a strategy that the user asked for, as JSON.
fn forced_json(forced: &Forced) -> Value {
    json!({
        "name": forced.name,
        "dangling": forced.dangling,
        "sites": forced.sites,
        "cpu": forced.played.as_ref().map(|played| &played.cpu),
        "memory": forced.played.as_ref().map(|played| &played.memory),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::rules::sample;
    use std::collections::BTreeSet;

    #[test]
    fn an_estimated_cpu_time_is_labelled_as_an_estimate() {
        let budget = Budget::begin(Duration::from_secs(1), Default::default(), true);
        let head = |evidence: &Measured| Output::new(evidence, &budget, &Stages::default()).head();
        let mut evidence = sample::program();
        assert!(head(&evidence).contains(" in about 1.0 s of CPU time"), "{}", head(&evidence));
        evidence.facts_mut().program.cpu_measured = Some((0.9e9, 1e9, 1.1e9));
        assert!(head(&evidence).contains(" in 1.0 s of CPU time"), "{}", head(&evidence));
    }

    #[test]
    fn new_advice_replaces_earlier_advice_unless_the_earlier_advice_was_more_decisive() {
        let folder = tempfile::tempdir().unwrap();
        let budget = Budget::begin(Duration::from_secs(1), Default::default(), true);
        let forced = Measured { forced: Some(sample::wish(0)), ..sample::program() };
        let interrupted = Measured { interrupted: true, ..sample::document() };
        // In increasing order of how much each advice decides.
        let order = [forced, sample::noisy(), interrupted, sample::document()];
        let advise = |evidence: &Measured| {
            let stages = Stages::default();
            let mut advice = Output::new(evidence, &budget, &stages);
            advice.save(folder.path(), &mut std::io::sink());
            advice.json()
        };
        let kept = || -> Value {
            let text = std::fs::read_to_string(folder.path().join(ADVICE_FILE)).unwrap();
            serde_json::from_str(&text).unwrap()
        };
        for (rank, evidence) in order.iter().enumerate() {
            let earlier = advise(evidence);
            assert_eq!(kept()["verdict"], earlier["verdict"]);
            assert!(!earlier["notes"].to_string().contains("stays"), "{}", earlier["notes"]);
            let earlier = kept();
            for less in &order[..rank] {
                let later = advise(less);
                assert_eq!(kept(), earlier, "{}", later["verdict"]);
                let show = format!("; mallard report {} shows it", quoted_path(folder.path()));
                assert!(later["notes"][0].as_str().unwrap().ends_with(&show), "{}", later["notes"]);
            }
            let again = advise(evidence);
            assert_eq!(kept()["took_s"], again["took_s"], "{}", again["verdict"]);
        }
        // A file that is not valid advice is replaced.
        std::fs::write(folder.path().join(ADVICE_FILE), "{").unwrap();
        assert_eq!(advise(&order[0])["verdict"], kept()["verdict"]);
    }

    #[test]
    fn the_matrix_shows_each_strategy_once_for_the_region_of_the_first_recommendation() {
        let mut evidence = Measured { recordings: 2, ..sample::document() };
        // An overload of the function has the same short name, but the candidates for the overload
        // do not count for the region of the recommendation.
        let function = "render_document(int)".to_string();
        evidence.facts_mut().regions.insert(0, Region { function, ..sample::region() });
        for of in &mut evidence.candidates {
            of.region = of.region.map(|place| place + 1);
        }
        let cards = cards(&evidence);
        assert_eq!(cards[0].region.as_ref().unwrap().function, sample::region().function);
        let rows = matrix(&evidence, cards.first());
        let is_here = |row: &&Value| row["kind"] == "strategy";
        let names: Vec<&str> =
            rows.iter().filter(is_here).map(|row| row["name"].as_str().unwrap()).collect();
        let all: BTreeSet<String> = (1..=14).map(|number| format!("AS{number}")).collect();
        assert_eq!(names.len(), all.len(), "{names:?}");
        assert!(names.iter().all(|name| all.contains(*name)), "{names:?}");
        let why = |name: &str| {
            let row = rows.iter().find(|row| row["name"] == name).unwrap();
            row["dropped"].as_str().unwrap_or_default().to_string()
        };
        assert_eq!(why("AS6"), "is the same as AS4, but called through a virtual interface");
        assert_eq!(why("AS8"), "no rule proposes it for this function");
        assert_eq!(why("AS4"), "", "measured");
    }
}

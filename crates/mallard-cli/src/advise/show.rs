//! Shows the advice as text, JSON or SARIF, and saves it in the folder of the trace.

use super::budget::Budget;
use super::card::{self, cards, Card};
use super::evidence::{Candidate, Dropped, Evidence, Forced, Kind, Site};
use super::force::wish;
use super::stages::Stages;
use super::{sarif, typed};
use crate::error::Failure;
use crate::look::frames::in_words;
use crate::output::file::write_whole;
use crate::output::shell::{as_called, quoted_path};
use crate::output::terminal::say;
use crate::output::units::{budget, bytes, of_threads, plural, time};
use crate::report::ADVICE_FILE;
use crate::turns::timing::Timing;
use mallard_trace::regions::Region;
use mallard_trace::replay::Strategy;
use serde_json::{json, Value};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

/// The version of the JSON keys.
const VERSION: u32 = 1;
/// The verdict if the user asked for a strategy (--force): nothing else was looked at.
const FORCED: &str = "forced";

/// The advice on a program.
pub struct Advice<'a> {
    evidence: &'a Evidence,
    cards: Vec<Card>,
    budget: Duration,
    taken: Duration,
    stages: &'a Stages,
    /// A note that earlier advice stays in the folder of the trace. `None` if this advice replaces it, or
    /// if there was none.
    stays: Option<String>,
}

impl Advice<'_> {
    /// Makes the cards. There are none if the user asked for a strategy: no other change was looked at.
    pub fn new<'a>(evidence: &'a Evidence, budget: &Budget, stages: &'a Stages) -> Advice<'a> {
        let mut cards = if evidence.forced.is_some() { Vec::new() } else { cards(evidence) };
        for card in &mut cards {
            card.sentence.insert_str(0, &evidence.failure_sentence());
        }
        let (budget, taken) = (budget.all(), budget.taken());
        Advice { cards, evidence, budget, taken, stages, stays: None }
    }

    /// The verdict in one word.
    fn verdict(&self) -> &'static str {
        match self.evidence.forced {
            Some(_) => FORCED,
            None => card::verdict(&self.cards),
        }
    }

    /// Saves the advice in the folder of the trace. If the folder cannot be written, the advice is
    /// still shown. Earlier advice that decides more stays, and a note says so.
    pub fn save(&mut self, folder: &Path, errors: &mut dyn Write) {
        let advice = self.json();
        let path = folder.join(ADVICE_FILE);
        let earlier = std::fs::read_to_string(&path).unwrap_or_default();
        let earlier: Value = serde_json::from_str(&earlier).unwrap_or_default();
        if decides(&earlier) > decides(&advice) {
            self.stays = Some(format!(
                "the earlier advice on this recording decides more, and stays in place of this one; \
                 mallard report {} shows it",
                quoted_path(folder)
            ));
            return;
        }
        let text = format!("{advice}\n");
        if let Err(failure) = write_whole(&path, true, |to| Ok(to.write_all(text.as_bytes())?)) {
            let _ = writeln!(errors, "mallard: the advice was not kept: {}", failure.what());
        }
    }

    /// Writes the advice to stdout.
    pub fn show(&self, timing: &Timing, is_sarif: bool) -> Result<(), Failure> {
        if is_sarif {
            let folder = std::env::current_dir().unwrap_or_default();
            return say(&format!("{}\n", sarif::log(self.evidence, &self.cards, &folder)));
        }
        if timing.json {
            return say(&format!("{}\n", self.json()));
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
            text.extend(
                evidence.all_undecided().map(|what| format!("  undecided: {}\n", in_words(what))),
            );
        }
        if !timing.quiet {
            text.extend(evidence.validity.iter().map(|what| format!("  note: {what}\n")));
            text.extend(self.notes().map(|note| format!("  note: {}\n", as_called(note))));
            text += &self.not_again();
        }
        text += &format!("  next: {}\n", as_called(&self.next()));
        if let Some(card) = self.cards.first() {
            text += &format!("\n{}\n", card.sentence);
        }
        say(&text)
    }

    /// The program, the trace and the figures above the cards.
    fn head(&self) -> String {
        let program = &self.evidence.program;
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
            bytes(self.evidence.memory.live_peak)
        )
    }

    fn notes(&self) -> impl Iterator<Item = &String> {
        self.evidence.notes.iter().chain(&self.stays)
    }

    /// A note that the program itself was not run again. Empty if the program can run.
    fn not_again(&self) -> String {
        match &self.evidence.program.cannot_run {
            Some(why) => format!("  note: the program was not run again: {why}\n"),
            None => String::new(),
        }
    }

    /// The command to type next: if nothing is decided, the one that records the whole run, or `mallard
    /// advise` with more time; after an interruption, `mallard advise`; otherwise the report.
    fn next(&self) -> String {
        let is_open = self.verdict() == "undecided";
        if let (true, Some(again)) = (is_open, &self.evidence.records_all) {
            return again.clone();
        }
        let longer = self.evidence.proposed.filter(|_| is_open);
        let longer = longer.map(|time| format!("--budget {}", budget(time)));
        match longer.or(self.evidence.interrupted.then(String::new)) {
            Some(more) => typed::again(self.evidence, &more),
            None => format!("mallard report {}", quoted_path(self.evidence.program.trace.as_ref())),
        }
    }

    /// The advice as JSON. The keys are stable.
    pub fn json(&self) -> Value {
        let evidence = self.evidence;
        let program = &evidence.program;
        json!({
            "version": VERSION,
            "name": program.trace,
            "program": program.command.as_ref().unwrap_or(&program.name),
            "verdict": self.verdict(),
            "sentence": self.cards.first().map(|card| &card.sentence),
            "min_gain": evidence.min_gain,
            "budget_s": self.budget.as_secs_f64(),
            "took_s": self.taken.as_secs_f64(),
            "stages": self.stages,
            "interrupted": evidence.interrupted,
            "noisy": evidence.noise.is_some(),
            "noise": evidence.noise,
            "bound": evidence.bound,
            "run": run(evidence),
            "cards": self.cards,
            "matrix": matrix(evidence, self.cards.first()),
            "regions": evidence.regions,
            "sites": evidence.sites.iter().map(site).collect::<Vec<_>>(),
            "forced": evidence.forced.as_ref().map(forced_json),
            "undecided": evidence.all_undecided().collect::<Vec<_>>(),
            "validity": evidence.validity,
            "notes": self.notes().collect::<Vec<_>>(),
            "next": self.next(),
        })
    }
}

/// How much an advice decides, as a rank. An interrupted measurement decides less than a whole one, and
/// the result of a strategy that the user asked for decides nothing.
fn decides(advice: &Value) -> u8 {
    match advice["verdict"].as_str() {
        Some("change" | "leave") if advice["interrupted"] == true => 2,
        Some("change" | "leave") => 3,
        Some("undecided") => 1,
        _ => 0,
    }
}

/// Figures of the recorded run.
fn run(evidence: &Evidence) -> Value {
    let (program, memory) = (&evidence.program, &evidence.memory);
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
        "cannot_run": program.cannot_run,
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
        "file": site.file,
        "line": site.line,
        "is_growing": site.is_growing,
        "bytes": site.figures.bytes,
        "call_ns": site.figures.call_ns,
    })
}

/// One row for each candidate, measured or not. The region of the first card has a row for each of the
/// 14 strategies.
fn matrix(evidence: &Evidence, first: Option<&Card>) -> Vec<Value> {
    let measured = evidence.candidates.iter().map(|of| measured_row(evidence, of));
    let others = not_proposed(evidence, first);
    let dropped = evidence.dropped.iter().chain(&others).map(|of| dropped_row(evidence, of));
    measured.chain(dropped).collect()
}

/// The strategies that no rule proposes for the region of the first card, with the reason.
fn not_proposed(evidence: &Evidence, first: Option<&Card>) -> Vec<Dropped> {
    let of_card = first.and_then(|card| card.region.as_ref());
    let is_it = |of: &Region| {
        of_card.is_some_and(|it| it.function == of.function && it.ends == of.ends.word())
    };
    let Some(place) = evidence.regions.iter().position(is_it) else { return Vec::new() };
    let played = evidence.candidates.iter().map(|of| (&of.name, of.region));
    let dropped = evidence.dropped.iter().map(|of| (&of.name, of.region));
    let of_region = played.chain(dropped).filter(|(_, region)| *region == Some(place));
    let names: Vec<&str> = of_region.map(|(name, _)| short_name(name, Kind::Strategy)).collect();
    let open = Strategy::all().filter(|strategy| !names.contains(&strategy.to_string().as_str()));
    open.map(|strategy| Dropped {
        name: format!("{strategy} in {}", evidence.regions[place].shown),
        kind: Kind::Strategy,
        region: Some(place),
        why: why_not_proposed(strategy),
    })
    .collect()
}

fn why_not_proposed(strategy: Strategy) -> String {
    let makes_the_same_calls = |other: &Strategy| {
        other.allocator() == strategy.allocator() && other.winks_out() == strategy.winks_out()
    };
    match Strategy::all().find(makes_the_same_calls) {
        _ if strategy.number() == 1 => {
            "the malloc of the program: other rows save in relation to it".to_string()
        }
        Some(plain) if plain != strategy => {
            format!("makes the calls of {plain}, through a virtual interface")
        }
        _ => "no rule proposes it for this function".to_string(),
    }
}

fn region_name(evidence: &Evidence, region: Option<usize>) -> Option<&str> {
    region.and_then(|place| evidence.regions.get(place)).map(|region| region.shown.as_str())
}

/// The name without the region: `AS4 in parse` is `AS4`.
fn short_name(name: &str, kind: Kind) -> &str {
    match kind {
        Kind::Strategy => name.split(' ').next().unwrap_or(name),
        _ => name,
    }
}

fn measured_row(evidence: &Evidence, of: &Candidate) -> Value {
    json!({
        "name": short_name(&of.name, of.kind),
        "label": of.name,
        "kind": of.kind,
        "region": region_name(evidence, of.region),
        "measured_by": of.by,
        "saving": finite(of.cpu.saving),
        "low": finite(of.cpu.low),
        "high": finite(of.cpu.high),
        "verdict": of.cpu.verdict,
        "expected": of.expected.map(|(low, high)| json!({"low": low, "high": high})),
        "predicted": of.predicted.map(|(low, high)| json!({"low": low, "high": high})),
        "replayed": of.replayed.as_ref().and_then(|replayed| finite(replayed.saving)),
        "peak_bytes": of.peak_bytes.1,
        "base_peak_bytes": of.peak_bytes.0,
        "memory_saving": finite(of.memory.saving),
        "memory_low": finite(of.memory.low),
        "memory_high": finite(of.memory.high),
        "memory_verdict": of.memory.verdict,
        "end_bytes": of.memory_at_end.as_ref().map(|_| of.end_bytes.1),
        "base_end_bytes": of.memory_at_end.as_ref().map(|_| of.end_bytes.0),
        "end_saving": of.memory_at_end.as_ref().and_then(|at_end| finite(at_end.saving)),
        "end_verdict": of.memory_at_end.as_ref().map(|at_end| at_end.verdict),
        "dropped": null,
    })
}

fn dropped_row(evidence: &Evidence, of: &Dropped) -> Value {
    json!({
        "name": short_name(&of.name, of.kind),
        "label": of.name,
        "kind": of.kind,
        "region": region_name(evidence, of.region),
        "measured_by": null,
        "saving": null,
        "low": null,
        "high": null,
        "verdict": null,
        "expected": null,
        "predicted": null,
        "replayed": null,
        "peak_bytes": null,
        "base_peak_bytes": null,
        "memory_saving": null,
        "memory_low": null,
        "memory_high": null,
        "memory_verdict": null,
        "end_bytes": null,
        "base_end_bytes": null,
        "end_saving": null,
        "end_verdict": null,
        "dropped": of.why,
    })
}

fn finite(figure: f64) -> Option<f64> {
    Some(figure).filter(|figure| figure.is_finite())
}

/// The result of a strategy that the user asked for, as JSON.
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
    fn an_estimate_of_the_cpu_time_is_named_as_such() {
        let budget = Budget::begin(Duration::from_secs(1), Default::default(), true);
        let head = |evidence: &Evidence| Advice::new(evidence, &budget, &Stages::default()).head();
        let mut evidence = sample::program();
        assert!(head(&evidence).contains(" in about 1.0 s of CPU time"), "{}", head(&evidence));
        evidence.program.cpu_measured = Some((0.9e9, 1e9, 1.1e9));
        assert!(head(&evidence).contains(" in 1.0 s of CPU time"), "{}", head(&evidence));
    }

    #[test]
    fn advice_replaces_earlier_advice_unless_that_decides_more() {
        let folder = tempfile::tempdir().unwrap();
        let budget = Budget::begin(Duration::from_secs(1), Default::default(), true);
        let forced = Evidence { forced: Some(sample::wish(0)), ..sample::program() };
        let interrupted = Evidence { interrupted: true, ..sample::document() };
        // From the one that decides least to the one that decides most.
        let order = [forced, sample::noisy(), interrupted, sample::document()];
        let advise = |evidence: &Evidence| {
            let stages = Stages::default();
            let mut advice = Advice::new(evidence, &budget, &stages);
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
        // A file that is no advice is replaced.
        std::fs::write(folder.path().join(ADVICE_FILE), "{").unwrap();
        assert_eq!(advise(&order[0])["verdict"], kept()["verdict"]);
    }

    #[test]
    fn the_matrix_has_each_strategy_once_for_the_region_of_the_first_card() {
        let mut evidence = Evidence { recordings: 2, ..sample::document() };
        // An overload has the same short name. Its rows do not count for the region of the card.
        let function = "render_document(int)".to_string();
        evidence.regions.insert(0, Region { function, ..sample::region() });
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
        assert_eq!(why("AS6"), "makes the calls of AS4, through a virtual interface");
        assert_eq!(why("AS8"), "no rule proposes it for this function");
        assert_eq!(why("AS4"), "", "measured");
    }
}

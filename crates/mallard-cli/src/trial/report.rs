//! Shows a measurement: as a table, a sentence and the next command, or as JSON.

use super::options::Options;
use super::sentence::sentence;
use crate::error::Failure;
use crate::output::shell::as_called;
use crate::output::terminal::{plain_table, say};
use crate::output::units::{budget, bytes, count, percent, plural, time};
#[cfg(feature = "recordings")]
use crate::replay::Savings;
use crate::starter;
use crate::turns::blocks::shown;
use crate::turns::measured::Measured;
use crate::turns::subject::{Figures, Subject};
use crate::turns::timing::status;
use crate::turns::words::{cells, lacks_fresh};
use crate::verdict::estimate::share_explained;
use crate::verdict::fresh::{winner, Confirmed, Fresh};
use crate::verdict::paired::Interval;
use crate::verdict::{blocks_missing, Judged, Judgement, Verdict, Why, BLOCKS_MIN};
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

/// A shorter run is mostly the start of a process.
const SHORT: Duration = Duration::from_millis(10);

/// The columns of the table that have verdicts.
const CPU_VERDICT: usize = 3;
const MEMORY_VERDICT: usize = 7;

/// The words that differ between reports of `mallard try` and of `mallard verify`.
pub struct Words {
    /// The title of the first column.
    pub kind: &'static str,
    /// The program with its arguments, as the user typed it.
    pub program: String,
    /// The short name of the program.
    pub name: String,
    /// Words for a candidate whose output or status differs from those of the base.
    pub breaks: &'static str,
    /// Whether two programs are compared, instead of mallocs.
    pub is_pair: bool,
}

impl Default for Words {
    fn default() -> Words {
        Words {
            kind: "malloc",
            program: String::new(),
            name: String::new(),
            breaks: "breaks the program",
            is_pair: false,
        }
    }
}

/// The result of one candidate.
pub struct Row<'a> {
    /// The candidate.
    pub subject: &'a Subject,
    /// The index of the candidate.
    pub index: usize,
    /// The judgements on CPU time and memory. `None` if the candidate is broken or nothing was
    /// measured.
    pub judged: Option<(&'a Judgement, &'a Judgement)>,
    /// How the candidate breaks the program. `None` if it does not.
    pub broken: Option<&'a str>,
}

/// The result of a comparison.
pub struct Report {
    base: Subject,
    candidates: Vec<Subject>,
    /// The measurement.
    pub measured: Measured,
    cpu: Judged,
    memory: Judged,
    /// The judgements on CPU time by the blocks of the choice alone (see `turns`).
    chosen: Judged,
    /// The results of fresh runs of the best candidates. Key: the place in `Measured::alive`.
    confirmed: Confirmed,
    /// The least difference that counts, as a share of the base.
    pub min_gain: f64,
    seed: u64,
    is_server: bool,
    /// The words of this comparison.
    pub words: Words,
    /// The largest share of CPU time that an allocator could save.
    pub bound: Option<f64>,
    /// The shares of the real savings that a replay finds, by the names of the candidates.
    explained: BTreeMap<String, Interval>,
    /// Notes for the reader.
    pub notes: Vec<String>,
    /// The command to type next.
    pub next: String,
}

impl Report {
    /// Judges a measurement.
    pub fn new(
        base: Subject,
        candidates: Vec<Subject>,
        measured: Measured,
        options: &Options,
        seed: u64,
    ) -> Report {
        let min_gain = options.timing.min_gain;
        let (cpu, confirmed) = measured.settle(|f| f.cpu_ns, min_gain);
        let (memory, _) = measured.settle(|f| f.peak_rss, min_gain);
        let mut report = Report {
            cpu,
            confirmed,
            memory,
            chosen: measured.judge(|f| f.cpu_ns, min_gain),
            base,
            candidates,
            measured,
            min_gain,
            seed,
            is_server: options.is_server(),
            words: Words::default(),
            bound: None,
            explained: BTreeMap::new(),
            notes: Vec::new(),
            next: String::new(),
        };
        report.notes = report.own_notes(options);
        report
    }

    /// Notes about the measurement itself.
    fn own_notes(&self, options: &Options) -> Vec<String> {
        let mut notes = Vec::new();
        let measured = &self.measured;
        let (blocks, first) = (measured.all_blocks(), measured.first);
        if blocks > 0 && first < SHORT && !self.is_server {
            notes.push(format!(
                "one run takes {}: mostly the start of a process, so give the program more work",
                shown(first)
            ));
        }
        if let (true, Some(needed)) = (measured.ran_out, blocks_missing(&self.cpu)) {
            let budget = shown(options.timing.budget);
            let runs = plural(blocks as u64, "run");
            notes.push(format!("the budget of {budget} was enough for {runs} of each, and verdicts need {needed} or more"));
        }
        if measured.status != 0 && blocks > 0 {
            let how = crate::turns::subject::ending(measured.status, &Default::default());
            notes.push(format!("the program fails in every run: {how}"));
        }
        if blocks > 0 && measured.median_of_all(0, |f| f.peak_rss) < 1.1 * floor() {
            let floor = bytes(floor() as u64);
            notes.push(format!("peaks below {floor} cannot be compared: a process begins with a copy of mallard's memory"));
        }
        if options.is_server() {
            notes.push("CPU time, wall time and page faults are those of one load".to_string());
        }
        if measured.dropped.contains(&Some(1)) {
            let note =
                "the budget allowed one run of each to choose by, so another one may save more";
            notes.push(note.to_string());
        }
        notes.extend(lacks_fresh(measured).filter(|_| self.winner().is_some()));
        notes
    }

    /// The result of the fresh runs of a candidate.
    pub fn fresh(&self, index: usize) -> Option<&Fresh> {
        self.confirmed.get(&self.place(index)?)
    }

    /// A line that says which rows are from fresh runs. Empty without fresh runs.
    fn fresh_lines(&self) -> String {
        let alive = self.measured.alive();
        let name = |place: &usize| self.candidates[alive[*place]].name.as_str();
        let names: Vec<&str> = self.confirmed.keys().map(name).collect();
        let Some(first) = self.confirmed.values().next() else { return String::new() };
        format!(
            "  savings from {} of each, which had no part in the choice: {}\n",
            plural(first.blocks as u64, "fresh run"),
            names.join(", ")
        )
    }

    /// Stores which shares of the measured savings a replay found.
    #[cfg(feature = "recordings")]
    pub fn explain(&mut self, replayed: &Savings) {
        // The savings of the replay are shares of another CPU time: the CPU time in the recording.
        let scale = replayed.program_ns / self.measured.median_of_all(0, |f| f.cpu_ns);
        let measured = &self.measured;
        let share = |index: usize| {
            let name = &self.candidates[index].name;
            let real = measured.differences(index, |f| f.cpu_ns)?;
            let share = share_explained(replayed.of.get(name)?, scale, &real)?;
            Some((name.clone(), share))
        };
        self.explained = self.measured.alive().into_iter().filter_map(share).collect();
    }

    /// One line for each malloc: the share of its real saving that a replay finds.
    fn explanations(&self) -> String {
        let line = |(name, of): (&String, &Interval)| {
            let [low, high] = [of.low, of.high].map(|end| percent(end).replace(" %", ""));
            let share = percent(of.saving);
            format!("  the replay finds {share} of what {name} changes ({low} to {high}): the rest is locality, or noise\n")
        };
        self.explained.iter().map(line).collect()
    }

    /// All candidates.
    pub fn rows<'a>(&'a self) -> Vec<Row<'a>> {
        let mut judged = self.cpu.candidates.iter().zip(&self.memory.candidates);
        let row = |(index, subject): (usize, &'a Subject)| {
            let broken = self.measured.broken[index].as_deref();
            let judged = if broken.is_none() { judged.next() } else { None };
            Row { subject, index, judged, broken }
        };
        self.candidates.iter().enumerate().map(row).collect()
    }

    /// The name of the winner.
    pub fn best(&self) -> Option<String> {
        self.winner().map(|(row, _)| row.subject.name.clone())
    }

    /// The candidate that the result names as the best, with its judgement on CPU time. `None` if no
    /// candidate has a gain.
    pub fn winner(&self) -> Option<(Row<'_>, &Judgement)> {
        let place = winner(&self.chosen, &self.cpu, &self.confirmed)?;
        let row = self.rows().into_iter().find(|row| self.place(row.index) == Some(place))?;
        Some((row, &self.cpu.candidates[place]))
    }

    /// The place of a candidate among the candidates that are not broken. `None` if it is broken.
    fn place(&self, index: usize) -> Option<usize> {
        self.measured.alive().iter().position(|&alive| alive == index)
    }

    /// The candidate with a gain that saves the most of one metric.
    pub fn best_by<'a>(
        &'a self,
        of: impl Fn((&'a Judgement, &'a Judgement)) -> &'a Judgement,
    ) -> Option<(Row<'a>, &'a Judgement)> {
        let gains = self.rows().into_iter().filter_map(|row| {
            let judgement = of(row.judged?);
            (judgement.verdict == Verdict::Gain).then_some((row, judgement))
        });
        gains.max_by(|(_, a), (_, b)| a.saving.total_cmp(&b.saving))
    }

    /// Whether the CPU time of a candidate is not measurable so far.
    pub fn is_open(&self) -> bool {
        self.measured.blocks() == 0 || self.cpu.candidates.iter().any(is_open)
    }

    /// Whether a candidate loses CPU time or memory, or breaks the program.
    pub fn has_loss(&self) -> bool {
        self.rows().iter().any(|row| {
            let lost = |(cpu, memory): (&Judgement, &Judgement)| {
                cpu.verdict == Verdict::Loss || memory.verdict == Verdict::Loss
            };
            row.broken.is_some() || row.judged.is_some_and(lost)
        })
    }

    /// The exit status of a command that is not a gate.
    pub fn status(&self) -> ExitCode {
        status(&self.measured)
    }

    /// Writes the result to stdout. The last line is a sentence that stands alone.
    pub fn show(&self, options: &Options) -> Result<(), Failure> {
        if options.timing.json {
            return say(&format!("{}\n", self.json()));
        }
        let mut text = String::new();
        if self.measured.blocks() > 0 {
            text += &format!("{}\n\n", self.table());
        }
        for row in self.rows() {
            if let Some(why) = row.broken {
                text += &format!("{} {}: {why}\n", row.subject.name, self.words.breaks);
            }
        }
        text += &self.fresh_lines();
        text += &self.explanations();
        text.extend(self.reasons().iter().map(|reason| format!("  {reason}\n")));
        if !options.timing.quiet {
            text.extend(self.notes.iter().map(|note| format!("  note: {}\n", as_called(note))));
        }
        text += &format!("  next: {}\n\n{}\n", as_called(&self.next), sentence(self));
        say(&text)
    }

    /// The reasons why CPU time or memory is not measurable, each with its candidates.
    fn reasons(&self) -> Vec<String> {
        let mut reasons: BTreeMap<(&str, String), Vec<&str>> = BTreeMap::new();
        let rows = self.rows();
        for row in &rows {
            let Some((cpu, memory)) = row.judged else { continue };
            for (metric, judgement) in [("CPU time", cpu), ("memory", memory)] {
                if let Some(why) = judgement.why.filter(|_| is_open(judgement)) {
                    let names = reasons.entry((metric, why.to_string())).or_default();
                    names.push(&row.subject.name);
                }
            }
        }
        let all = rows.iter().filter(|row| row.judged.is_some()).count();
        let names = |names: &[&str]| match names.len() == all && all > 1 {
            true => "all".to_string(),
            false => names.join(", "),
        };
        let line = |((metric, why), of): (&(&str, String), &Vec<&str>)| {
            format!("not measurable: {metric} of {}: {why}", names(of))
        };
        reasons.iter().map(line).collect()
    }

    /// The command to type next, if more time is likely to decide more.
    pub fn more_time(&self, options: &Options) -> Option<String> {
        if !self.is_open() {
            return None;
        }
        // An interval of half the width needs four times the runs.
        let blocks = self.measured.all_blocks().max(1);
        let times = if blocks < BLOCKS_MIN { (2 * BLOCKS_MIN).div_ceil(blocks) } else { 4 };
        let more = budget(options.timing.budget * times as u32);
        Some(format!("the same command with --budget {more}, on a quiet machine"))
    }

    fn table(&self) -> comfy_table::Table {
        let titles = [
            self.words.kind,
            "CPU",
            "CPU saved",
            "CPU verdict",
            "wall",
            "peak RSS",
            "memory saved",
            "memory verdict",
            "page faults",
        ];
        let control = format!("{} again", self.base.name);
        let judged = Some((&self.cpu.control, &self.memory.control));
        let mut lines = vec![self.line(&self.base.name, 0, None), self.line(&control, 1, judged)];
        for row in self.rows().iter().filter(|row| row.broken.is_none()) {
            lines.push(self.line_of(row));
        }
        plain_table(&titles, lines)
    }

    /// The line of a candidate. The cell of the verdict says whether it was dropped early.
    fn line_of(&self, row: &Row) -> Vec<String> {
        let mut line = self.line(&row.subject.name, row.index + 2, row.judged);
        let Some((cpu, memory)) = row.judged else { return line };
        let Some(runs) = self.measured.dropped[row.index] else { return line };
        if cpu.verdict != Verdict::NotMeasurable {
            line[CPU_VERDICT] += &format!(", {}", Why::DroppedEarly { runs });
        }
        if memory.verdict == Verdict::NotMeasurable {
            line[MEMORY_VERDICT].clear();
        }
        line
    }

    fn line(
        &self,
        name: &str,
        column: usize,
        judged: Option<(&Judgement, &Judgement)>,
    ) -> Vec<String> {
        let median = |figure: fn(&Figures) -> f64| self.measured.median_of_all(column, figure);
        let (cpu, memory) = match judged {
            Some((cpu, memory)) => (cells(cpu, column), cells(memory, column)),
            None => (["".into(), "base".into()], ["".into(), "base".into()]),
        };
        let [cpu_saved, cpu_verdict] = cpu;
        let [memory_saved, memory_verdict] = memory;
        vec![
            name.to_string(),
            time(median(|f| f.cpu_ns)),
            cpu_saved,
            cpu_verdict,
            time(median(|f| f.wall_ns)),
            bytes(median(|f| f.peak_rss) as u64),
            memory_saved,
            memory_verdict,
            count(median(|f| f.faults) as u64),
        ]
    }

    /// The result as a JSON object.
    pub fn json(&self) -> Value {
        let row = |row: Row| {
            let variables = row.subject.variables.iter().map(|(name, value)| {
                let value = value.as_ref().map(|value| value.to_string_lossy().into_owned());
                (name.to_string_lossy().into_owned(), json!(value))
            });
            let mut object = self.figures(&row.subject.name, row.index + 2);
            object["library"] = json!(row.subject.library);
            object["environment"] = variables.collect::<serde_json::Map<_, _>>().into();
            object["explained"] = json!(self.explained.get(&row.subject.name));
            object["broken"] = json!(row.broken);
            object["cpu"] = json!(row.judged.map(|(cpu, _)| cpu));
            object["runs"] = json!(self.measured.runs(row.index));
            object["dropped_after"] = json!(self.measured.dropped[row.index]);
            object["fresh"] = json!(self.fresh(row.index));
            object["memory"] = json!(row.judged.map(|(_, memory)| memory));
            object
        };
        let mut base = self.figures(&self.base.name, 0);
        base["control_cpu"] = json!(self.cpu.control);
        base["control_memory"] = json!(self.memory.control);
        json!({
            "program": self.words.program,
            "base": base,
            "candidates": self.rows().into_iter().map(row).collect::<Vec<_>>(),
            "blocks": self.measured.all_blocks(),
            "min_gain": self.min_gain,
            "seed": self.seed,
            "bound": self.bound,
            "interrupted": self.measured.interrupted,
            "notes": self.notes,
            "sentence": sentence(self),
            "next": self.next,
        })
    }

    /// The medians of a column (see `turns`) as JSON.
    fn figures(&self, name: &str, column: usize) -> Value {
        let is_broken = column > 1 && self.measured.broken[column - 2].is_some();
        let median = |figure: fn(&Figures) -> f64| match is_broken {
            true => None,
            false => Some(self.measured.median_of_all(column, figure)).filter(|m| m.is_finite()),
        };
        json!({
            "name": name,
            "cpu_ns": median(|f| f.cpu_ns),
            "wall_ns": median(|f| f.wall_ns),
            "peak_rss_bytes": median(|f| f.peak_rss),
            "page_faults": median(|f| f.faults),
        })
    }
}

/// Whether a candidate has no verdict because it was dropped early.
pub fn is_dropped(of: &Judgement) -> bool {
    matches!(of.why, Some(Why::DroppedEarly { .. }))
}

/// Whether more runs could decide about a candidate.
pub fn is_open(of: &Judgement) -> bool {
    of.verdict == Verdict::NotMeasurable && !is_dropped(of)
}

/// The smallest peak that can be measured, in bytes. Between fork and exec, a process has a copy of the
/// anonymous memory of the process that made it, and this copy counts as a part of the peak.
pub fn floor() -> f64 {
    let maker = starter::process().map_or("self".to_string(), |process| process.to_string());
    let status = std::fs::read_to_string(format!("/proc/{maker}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.and_then(|line| line.trim().split(' ').next()?.parse::<f64>().ok());
    kib.unwrap_or(0.0) * 1024.0
}

//! Prints a report as text and as JSON.

use super::answer::is_open;
use super::options::Options;
use super::report::{Report, Row};
use super::sentence::sentence;
use crate::error::Failure;
use crate::output::columns::Columns;
use crate::output::shell::as_called;
use crate::output::terminal::{plain_table, say, write};
use crate::output::units::{bytes, count, percent, percents, plural, time};
use crate::rounds::measured::LeftOut;
use crate::rounds::subject::Figures;
use crate::rounds::words::cells;
use crate::verdict::paired::Interval;
use crate::verdict::{Judgement, Verdict, Why};
use serde_json::{json, Value};
use std::collections::BTreeMap;

/// The columns of the table that contain verdicts.
const CPU_VERDICT: usize = 3;
const MEMORY_VERDICT: usize = 7;

impl Report {
    /// Writes the result to stdout. The last line is a sentence that is clear without the table.
    pub fn show(&self, options: &Options) -> Result<(), Failure> {
        if options.timing.json {
            return write(&format!("{}\n", self.json()));
        }
        let mut text = String::new();
        if self.measured.rounds() > 0 {
            text += &format!("{}\n\n", self.table());
        }
        for row in self.rows() {
            if let Some(why) = row.broken {
                text += &format!("{} {}: {why}\n", row.subject.name, self.words.breaks);
            }
        }
        for (why, words) in [
            (LeftOut::NoEffect, "page faults and memory stay the same"),
            (LeftOut::NoTime, "the budget is small"),
        ] {
            let names = self.left_out(why).join(", ");
            if !names.is_empty() {
                text += &format!("  left out, because {words}: {names}\n");
            }
        }
        text += &self.fresh_lines();
        text.extend(self.planned.as_ref().map(|planned| planned.lines(&self.measured)));
        text += &self.explanations();
        text.extend(self.reasons().iter().map(|reason| format!("  {reason}\n")));
        if !options.timing.quiet {
            text.extend(self.notes.iter().map(|note| format!("  note: {}\n", as_called(note))));
        }
        text += &format!("  next: {}\n\n{}\n", as_called(&self.next), sentence(self));
        say(&text)
    }

    /// Returns the reasons why CPU time or memory is not measurable, each with its candidates.
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

    fn table(&self) -> Columns {
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
        let is_measured =
            |row: &&Row| row.broken.is_none() && self.measured.left_out[row.index].is_none();
        for row in self.rows().iter().filter(is_measured) {
            lines.push(self.line_of(row));
        }
        plain_table(&titles, lines)
    }

    /// Returns the table line of a candidate. The cell of the verdict shows whether the candidate
    /// was dropped early.
    fn line_of(&self, row: &Row) -> Vec<String> {
        let mut line = self.line(&row.subject.name, row.index + 2, row.judged);
        let Some((cpu, memory)) = row.judged else { return line };
        let Some(why) = self.measured.dropped[row.index] else { return line };
        if cpu.verdict != Verdict::NotMeasurable {
            line[CPU_VERDICT] += &format!(", {why}");
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

    /// Returns the result as a JSON object.
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
            let left_out = self.measured.left_out[row.index];
            object["has_no_effect"] = json!(left_out == Some(LeftOut::NoEffect));
            object["cpu"] = json!(row.judged.map(|(cpu, _)| cpu));
            object["runs"] = json!(self.measured.runs(row.index));
            object["dropped_after"] = json!(self.measured.dropped[row.index].and_then(Why::runs));
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
            "blocks": self.measured.all_rounds(),
            "min_gain": self.min_gain,
            "seed": self.seed,
            "bound": self.bound,
            "plan": self.planned.as_ref().map(|planned| planned.json(&self.measured)),
            "interrupted": self.measured.interrupted,
            "notes": self.notes,
            "sentence": sentence(self),
            "next": self.next,
        })
    }

    /// Returns the medians of a column of the measurement (see `rounds`) as JSON.
    fn figures(&self, name: &str, column: usize) -> Value {
        let is_left_out = column > 1 && !self.measured.alive().contains(&(column - 2));
        let median = |figure: fn(&Figures) -> f64| match is_left_out {
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

    /// Returns a line that names the results from confirmation runs. Empty without confirmation
    /// runs.
    fn fresh_lines(&self) -> String {
        let alive = self.measured.alive();
        let name = |place: &usize| self.candidates[alive[*place]].name.as_str();
        let names: Vec<&str> = self.confirmed.keys().map(name).collect();
        let Some(first) = self.confirmed.values().next() else { return String::new() };
        format!(
            "  savings from {} of each after the choice: {}\n",
            plural(first.rounds as u64, "confirmation run"),
            names.join(", ")
        )
    }

    /// Returns one line for each malloc with the share of its real saving that a replay finds.
    fn explanations(&self) -> String {
        let line = |(name, of): (&String, &Interval)| {
            let range = percents(of.low, of.high).replace(" %", "");
            let share = percent(of.saving);
            format!("  the replay finds {share} of what {name} changes ({range}); the rest is locality or noise\n")
        };
        self.explained.iter().map(line).collect()
    }
}

//! Formats cards for the terminal.

use super::card::{Card, Memory, Part};
use super::phrases::{predicted, share};
use crate::advise::candidate::By;
use crate::advise::code::{Language, Place};
use crate::look::frames::in_words;
use mallard_measure::output::shell::as_called;
use mallard_measure::output::units::{bytes, percent, percents, plural};
use mallard_measure::output::width::{unbroken, width};
use mallard_measure::verdict::Verdict;

/// A part of the CPU time below this share is not shown.
const LEAST_PART: f64 = 0.005;
/// The width of the column of names at the left.
const NAMES: usize = 10;

/// Formats all cards: the first in full, the others without the parts of the saving and without
/// other changes. The sentence of the first card is left out, because the command prints it at the
/// very end.
pub fn text(cards: &[Card]) -> String {
    let Some((first, others)) = cards.split_first() else { return String::new() };
    let mut text = first.text();
    for (card, number) in others.iter().zip(2..) {
        text += &format!("\nAlso, {number}: {}", card.short_text());
    }
    text
}

impl Card {
    /// Formats the card for the terminal.
    pub fn text(&self) -> String {
        let mut text = self.head();
        text += &entry_if("", self.parts());
        text += &self.memory_lines();
        text += &entries("because", &self.evidence);
        text += &entries("beware", &self.hazards);
        text += &entries("why not", &self.why_not);
        text + &self.end()
    }

    /// Formats the card without the parts of the saving and without alternatives.
    fn short_text(&self) -> String {
        let mut text = self.head() + &self.memory_lines();
        text += &entries("because", &self.evidence);
        text += &entries("beware", &self.hazards);
        text + &self.end()
    }

    /// Formats the action, its place, and the saving.
    fn head(&self) -> String {
        let title = match &self.strategy {
            Some(strategy) => format!("{} ({strategy})\n", self.title),
            None => format!("{}\n", self.title),
        };
        title
            + &entry_if("where", self.place().map(|place| in_words(&place.shown())))
            + &entry_if("what", self.strategy_words.clone())
            + &match self.saves_in_program() {
                Some(lines) => entries("saves", &lines),
                None => entry_if("saves", self.saves()),
            }
    }

    /// Formats how to make and to check the change.
    fn end(&self) -> String {
        let mut text = entry_if("skips", self.skips());
        text += &self.code_lines();
        // A plan can be used before the source is changed.
        let how = if self.plan.is_some() { "now" } else { "do" };
        for (name, command) in [(how, &self.how), ("check", &self.check)] {
            // A command is printed as one line, however long, so that it can be copied.
            text += &entry_if(name, command.as_ref().map(|command| unbroken(&as_called(command))));
        }
        text
    }

    /// Returns the place of the change: its region, or else its site. `None` for the whole program.
    pub fn place(&self) -> Option<Place> {
        let region = self.region.as_ref().map(|of| (&of.shown, &of.file, of.line));
        let site = self.site.as_ref().map(|of| (&of.shown, &of.file, of.line));
        let (function, file, line) = region.or(site)?;
        let (function, file) = (function.clone(), file.clone());
        Some(Place { function, file, line, ..Place::default() })
    }

    /// Describes the frees that wink-out skips.
    fn skips(&self) -> Option<String> {
        let frees = plural(self.destructors_skipped?, "free");
        let most = match in_words(&self.freed_by.join(", ")) {
            functions if functions.is_empty() => functions,
            functions => format!("; most blocks are freed in {functions}"),
        };
        let destructors = match self.language {
            Some(Language::C) => "",
            _ => ", and at most as many destructors,",
        };
        Some(format!("{frees}{destructors} in the recorded run{most}"))
    }

    /// Describes the results of runs of the program with the plan applied, and what a change of the
    /// source may save in addition. `None` if there were no such runs.
    fn saves_in_program(&self) -> Option<Vec<String>> {
        let of = self.saving.in_program?;
        let mut lines = vec![format!(
            "{} of the CPU time, measured in the unchanged program",
            part(&of.saving)
        )];
        let mut parts = Vec::new();
        if of.calls.high >= LEAST_PART {
            let share = percents(of.calls.low, of.calls.high);
            parts.push(format!("{share} for calls that inlined code avoids"));
        }
        if of.ends >= LEAST_PART {
            let share = percent(of.ends);
            parts.push(format!("at most {share} for frees and destructors that it skips"));
        }
        if !parts.is_empty() {
            lines.push(format!("a change of the source code saves more: {}", parts.join(", ")));
        }
        Some(lines)
    }

    /// Describes the saving as runs of the program measured it. Without such runs, describes the
    /// expected saving, because a replay shows only a part of the saving.
    fn saves(&self) -> Option<String> {
        let total = self.saving.total.filter(|_| self.action.is_change())?;
        let by = match self.saving.measured_by {
            Some(By::Try) => "in runs of the program",
            _ => "by replay",
        };
        let expected = self.saving.expected.filter(|_| self.saving.measured_by != Some(By::Try));
        let Some(likely) = expected else {
            return Some(format!("{} of the CPU time, {by}", part(&total)));
        };
        let share = predicted(likely.low, likely.high);
        let interval = match percent(total.low) == percent(total.high) {
            true => String::new(),
            false => format!(", {}", percents(total.low, total.high)),
        };
        let replay = format!("the replay alone: {}{interval}", percent(total.saving));
        Some(format!("probably {share} of the program's CPU time ({replay})"))
    }

    /// Describes the saving in three parts. Returns `None` if the saving was not measured in parts.
    fn parts(&self) -> Option<String> {
        let (allocator, pages) = (self.saving.allocator?, self.saving.pages?);
        let locality = match (self.saving.locality, self.saving.measured_by) {
            (Some(locality), _) => format!("locality {}", part(&locality)),
            (None, Some(By::Try)) => "locality is in the total".to_string(),
            (None, _) => "locality not estimated".to_string(),
        };
        Some(format!("allocator work {}, pages {}, {locality}", part(&allocator), part(&pages)))
    }

    fn memory_lines(&self) -> String {
        let Some(of) = &self.memory else { return String::new() };
        let what = match of.measured_by {
            By::Try | By::Plan => "of the program",
            By::Replay => "of the heap",
        };
        let (before, after) = (bytes(of.before_bytes), bytes(of.after_bytes));
        let Memory { saving, low, high, verdict, .. } = *of;
        let change = changed(&Part { saving, low, high, verdict });
        let peak = entry("memory", &format!("{after} {what} instead of {before}: {change}"));
        let at_end = of.at_end.filter(|at_end| at_end.saving.verdict == Verdict::Gain);
        let kept = at_end.map(|at_end| {
            let (before, after) = (bytes(at_end.before_bytes), bytes(at_end.after_bytes));
            let change = changed(&at_end.saving);
            format!("after the last call {after} of the heap instead of {before}: {change}")
        });
        peak + &entry_if("", kept)
    }

    fn code_lines(&self) -> String {
        let known = self.language.and_then(|language| self.code.for_language(language));
        let Some((language, code)) = known else { return String::new() };
        let example = "an example of the change, to adapt; other languages: --json";
        let mut text = entry("code", &format!("{language}, {example}"));
        text.extend(code.lines().map(code_line));
        text
    }
}

/// Formats a line of code, which may be wrapped at its spaces. If the line is too wide, its comment
/// moves to a line before.
fn code_line(line: &str) -> String {
    let line = format!("    {line}").trim_end().to_string();
    let (indent, code) = line.split_at(line.len() - line.trim_start().len());
    let comment = ["// ", "/* "].into_iter().find_map(|begin| code.find(&format!(" {begin}")));
    match comment.filter(|_| line.chars().count() > width()) {
        Some(at) => format!("{indent}{}\n{indent}{}\n", &code[at + 1..], code[..at].trim_end()),
        // A string or a directive must not be wrapped.
        None if code.contains('"') || code.starts_with('#') => unbroken(&line) + "\n",
        None => line + "\n",
    }
}

/// Describes a change of memory.
fn changed(of: &Part) -> String {
    match of.verdict {
        Verdict::Gain => format!("less by {}", part(of)),
        Verdict::Loss => format!("more by {}", share(-of.saving, -of.high, -of.low)),
        verdict => verdict.to_string(),
    }
}

fn part(of: &Part) -> String {
    share(of.saving, of.low, of.high)
}

/// Formats a name at the left, and each text of a list to the right of it.
fn entries(name: &str, list: &[String]) -> String {
    let line = |(at, text): (usize, &String)| entry(if at == 0 { name } else { "" }, text);
    list.iter().enumerate().map(line).collect()
}

/// Formats a name at the left, and a text to the right of it if there is one.
fn entry_if(name: &str, text: Option<String>) -> String {
    text.map_or(String::new(), |text| entry(name, &text))
}

/// Formats a name at the left, and a text to the right of it.
fn entry(name: &str, text: &str) -> String {
    format!("  {name:<NAMES$}{text}\n")
}

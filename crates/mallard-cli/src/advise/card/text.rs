//! Cards in the terminal.

use super::words::share;
use super::{Card, Memory, Part};
use crate::advise::code::{Language, Place};
use crate::advise::evidence::By;
use crate::look::frames::in_words;
use crate::output::shell::as_called;
use crate::output::units::{bytes, count, percent};
use crate::verdict::Verdict;

/// The width of a line. A longer word makes a line longer.
const WIDTH: usize = 98;
/// The width of the names at the left.
const NAMES: usize = 10;

/// The text of all cards: the first in full, the others without the parts of the saving and without other
/// changes. The sentence of the first card is not in the text, because the command prints it last of all.
pub fn text(cards: &[Card]) -> String {
    let Some((first, others)) = cards.split_first() else { return String::new() };
    let mut text = first.text();
    for (card, number) in others.iter().zip(2..) {
        text += &format!("\nAlso, {number}: {}", card.short_text());
    }
    text
}

impl Card {
    /// The card for the terminal.
    pub fn text(&self) -> String {
        let mut text = self.head();
        text += &entry_if("", self.parts());
        text += &self.memory_lines();
        text += &entries("because", &self.evidence);
        text += &entries("beware", &self.hazards);
        text += &entries("why not", &self.why_not);
        text + &self.end()
    }

    /// The card without the parts of the saving and without alternatives.
    fn short_text(&self) -> String {
        let mut text = self.head() + &self.memory_lines();
        text += &entries("because", &self.evidence);
        text += &entries("beware", &self.hazards);
        text + &self.end()
    }

    /// The action, its place, and the saving.
    fn head(&self) -> String {
        let title = match &self.strategy {
            Some(strategy) => format!("{} ({strategy})\n", self.title),
            None => format!("{}\n", self.title),
        };
        title
            + &entry_if("where", self.place().map(|place| in_words(&place.shown())))
            + &entry_if("what", self.strategy_words.clone())
            + &entry_if("saves", self.saves())
    }

    /// How to make and to check the change.
    fn end(&self) -> String {
        let mut text = entry_if("skips", self.skips());
        text += &self.code_lines();
        for (name, command) in [("do", &self.how), ("check", &self.check)] {
            // A command is one line, however long, so that it can be copied.
            let line = command.as_ref().map(|c| format!("  {name:<NAMES$}{}\n", as_called(c)));
            text += &line.unwrap_or_default();
        }
        text
    }

    /// The place of the change: its region, or else its site. `None` for the whole program.
    pub fn place(&self) -> Option<Place> {
        let region = self.region.as_ref().map(|of| (&of.shown, &of.file, of.line));
        let site = self.site.as_ref().map(|of| (&of.shown, &of.file, of.line));
        let (function, file, line) = region.or(site)?;
        let (function, file) = (function.clone(), file.clone());
        Some(Place { function, file, line, ..Place::default() })
    }

    /// The frees that wink-out skips.
    fn skips(&self) -> Option<String> {
        let frees = count(self.destructors_skipped?);
        let most = match in_words(&self.freed_by.join(", ")) {
            functions if functions.is_empty() => functions,
            functions => format!("; most blocks are freed in {functions}"),
        };
        let destructors = match self.language {
            Some(Language::C) => "",
            _ => ", and at most as many destructors,",
        };
        Some(format!("{frees} frees{destructors} in the recorded run{most}"))
    }

    /// The saving to believe: that of runs of the program, or else the probable one, which a replay is only a
    /// part of.
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
        let share = match likely.high >= 1.0 {
            true => format!("at least {}", percent(likely.low)),
            false => range(likely.low, likely.high),
        };
        let interval = match percent(total.low) == percent(total.high) {
            true => String::new(),
            false => format!(", {}", range(total.low, total.high)),
        };
        let replay = format!("the replay alone: {}{interval}", percent(total.saving));
        Some(format!("probably {share} of the program's CPU time ({replay})"))
    }

    /// The saving in three parts. `None` if it was not measured in parts.
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
            By::Try => "of the program",
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
        text.extend(code.lines().map(|line| format!("    {line}").trim_end().to_string() + "\n"));
        text
    }
}

/// A change of memory in words.
fn changed(of: &Part) -> String {
    match of.verdict {
        Verdict::Gain => format!("less by {}", part(of)),
        Verdict::Loss => format!("more by {}", share(-of.saving, -of.high, -of.low)),
        verdict => verdict.to_string(),
    }
}

/// An interval of shares: `15 to 64 %`.
fn range(low: f64, high: f64) -> String {
    format!("{} to {}", percent(low).replace(" %", ""), percent(high))
}

fn part(of: &Part) -> String {
    share(of.saving, of.low, of.high)
}

/// A name at the left, and each text of a list beside it.
fn entries(name: &str, list: &[String]) -> String {
    let line = |(at, text): (usize, &String)| entry(if at == 0 { name } else { "" }, text);
    list.iter().enumerate().map(line).collect()
}

/// A name at the left, and a text beside it if there is one.
fn entry_if(name: &str, text: Option<String>) -> String {
    text.map_or(String::new(), |text| entry(name, &text))
}

/// A name at the left, and a text beside it.
fn entry(name: &str, text: &str) -> String {
    let first = format!("  {name:<NAMES$}");
    let rest = " ".repeat(first.len());
    wrapped(text, &first, &rest)
}

/// A text in lines that begin with `first` and then with `rest`.
fn wrapped(text: &str, first: &str, rest: &str) -> String {
    let mut lines = String::new();
    let mut line = first.to_string();
    let mut is_empty = true;
    for word in text.split_whitespace() {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines += &format!("{}\n", line.trim_end());
            line = rest.to_string();
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line += word;
        is_empty = false;
    }
    lines + line.trim_end() + "\n"
}

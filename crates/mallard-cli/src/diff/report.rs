//! Formats the difference of two traces as text and as JSON.

use super::gate::Gate;
use super::metrics::{of_program, Metric, OF_PROGRAMS};
use super::sites::{Function, Site, State};
use crate::look::frames;
use mallard_measure::output::shell::{as_called, quoted_path};
use mallard_measure::output::terminal::plain_table;
use mallard_measure::output::units::{count, percent, plural};
use mallard_trace::trace::FrameInfo;
use mallard_trace::Trace;
use serde_json::{json, Map, Value};

/// Two traces and the differences between them.
pub struct Difference {
    /// The trace before the change of the program.
    pub before: Trace,
    /// The trace after the change of the program.
    pub after: Trace,
    /// The call stacks of both traces, the largest change first.
    pub sites: Vec<Site>,
    /// Remarks if the traces are hard to compare.
    pub notes: Vec<String>,
    /// The gates that the user gave.
    pub gates: Vec<Gate>,
}

/// The options for the output of a difference.
pub struct Shown {
    /// The number by which call stacks are ordered.
    pub sort: Metric,
    /// The maximum number of listed call stacks; 0 for all.
    pub top: usize,
    /// The maximum number of listed functions in each call stack; 0 for all.
    pub depth: usize,
    /// Whether all functions are listed, with names in full.
    pub is_full: bool,
}

/// The gates that failed, as a message.
pub struct Failed {
    /// A sentence with the gates that failed, and with the changes of their numbers.
    pub what: String,
    /// The metric by which to sort the call stacks so that the list explains the first failed gate
    /// best.
    pub sort: &'static str,
}

/// Orders call stacks by the size of their change.
pub fn ordered(mut sites: Vec<Site>, sort: Metric) -> Vec<Site> {
    sites.sort_by_cached_key(|site| {
        let change = site.change().get(sort).unsigned_abs();
        (std::cmp::Reverse(change), site.functions.clone())
    });
    sites
}

/// The numbers of new, gone, grown and shrunk call stacks.
struct Counted {
    new: u64,
    gone: u64,
    grown: u64,
    shrunk: u64,
}

impl Difference {
    /// Returns the gates that failed. `None` if all passed.
    pub fn failed(&self) -> Option<Failed> {
        let failed = |gate: &&Gate| {
            let (before, after) = self.numbers(gate.metric);
            !gate.passes(before, after)
        };
        let failed: Vec<&Gate> = self.gates.iter().filter(failed).collect();
        let first = failed.first()?;
        let outcomes: Vec<String> =
            failed.iter().map(|gate| format!("{gate} failed: {}", self.outcome(gate))).collect();
        let sort = match first.metric {
            Metric::Rss => Metric::Peak,
            Metric::Time => Metric::Calls,
            metric => metric,
        };
        Some(Failed { what: outcomes.join("; "), sort: sort.name() })
    }

    fn outcome(&self, gate: &Gate) -> String {
        let (before, after) = self.numbers(gate.metric);
        gate.outcome(before, after)
    }

    /// Returns the numbers of a metric in the first and in the second trace. A number that a trace
    /// does not have counts as 0.
    fn numbers(&self, metric: Metric) -> (i64, i64) {
        let number = |trace: &Trace| of_program(trace.manifest(), metric).unwrap_or(0);
        (number(&self.before), number(&self.after))
    }

    fn counted(&self, sort: Metric) -> Counted {
        let number =
            |is: &dyn Fn(&Site) -> bool| self.sites.iter().filter(|site| is(site)).count() as u64;
        let has = |site: &Site, sign: i64| {
            site.state == State::Both && site.change().get(sort).signum() == sign
        };
        Counted {
            new: number(&|site| site.state == State::New),
            gone: number(&|site| site.state == State::Gone),
            grown: number(&|site| has(site, 1)),
            shrunk: number(&|site| has(site, -1)),
        }
    }

    /// Returns the call stacks to list, which are new, gone, or have a changed number. Also returns
    /// how many such stacks there are, including those beyond `shown.top`.
    fn listed(&self, shown: &Shown) -> (Vec<&Site>, usize) {
        let is_changed =
            |site: &&Site| site.state != State::Both || site.change().get(shown.sort) != 0;
        let changed: Vec<&Site> = self.sites.iter().filter(is_changed).collect();
        let number = changed.len();
        let top = if shown.top == 0 { number } else { shown.top };
        (changed.into_iter().take(top).collect(), number)
    }

    /// Formats the difference as text for a terminal.
    pub fn text(&self, shown: &Shown) -> String {
        let name = |trace: &Trace| trace.folder().display().to_string();
        let mut text = format!("{} -> {}\n", name(&self.before), name(&self.after));
        text += &self.totals();
        for note in &self.notes {
            text += &format!("note: {note}\n");
        }
        text += &self.list(shown);
        for gate in &self.gates {
            let (before, after) = self.numbers(gate.metric);
            let verdict = if gate.passes(before, after) { "passed" } else { "failed" };
            text += &format!("gate {gate} {verdict}: {}\n", self.outcome(gate));
        }
        let next = format!("mallard sites {}", quoted_path(self.after.folder()));
        text + &format!("next: {}\n", as_called(&next))
    }

    fn totals(&self) -> String {
        let line = |metric: Metric| {
            let number = |trace: &Trace| of_program(trace.manifest(), metric);
            let (before, after) = (number(&self.before), number(&self.after));
            let shown =
                |number: Option<i64>| number.map_or("-".to_string(), |number| metric.shown(number));
            let change = before.zip(after).map(|(before, after)| after.saturating_sub(before));
            vec![
                metric.name().to_string(),
                shown(before),
                shown(after),
                change.map_or("-".to_string(), |change| metric.shown_change(change)),
                before
                    .zip(change)
                    .map_or("-".to_string(), |(before, change)| share(change, before)),
            ]
        };
        let table = plain_table(&["", "before", "after", "change", ""], OF_PROGRAMS.map(line));
        format!("{table}\n")
    }

    fn list(&self, shown: &Shown) -> String {
        let (listed, changed) = self.listed(shown);
        let counted = self.counted(shown.sort);
        let all = count(self.sites.len() as u64);
        let what = shown.sort.name();
        if changed == 0 {
            return format!("no call stack of {all} differs in {what}\n");
        }
        let mut text = format!(
            "{} of {all} differ in {what}: {} new, {} gone, {} grown, {} shrunk\n",
            plural(changed as u64, "call stack"),
            count(counted.new),
            count(counted.gone),
            count(counted.grown),
            count(counted.shrunk)
        );
        let lines = listed.iter().zip(1..).map(|(site, rank)| line(site, rank, shown));
        let titles = ["", "", "change", "before", "after", "blocks", "at peak", "leaked", "calls"];
        // The functions of each call stack are printed below its numbers.
        let (titles, numbers) = plain_table(&titles, lines).rows();
        text += &format!("{}\n", titles.join("\n"));
        for (lines, site) in numbers.iter().zip(&listed) {
            text += &format!("{}\n", lines.join("\n"));
            for function in functions(&site.functions, shown) {
                text += &format!("        {function}\n");
            }
        }
        if listed.len() < changed {
            text += &format!("  --top 0 lists {} more\n", count((changed - listed.len()) as u64));
        }
        text
    }

    /// Formats the difference as JSON.
    pub fn json(&self, shown: &Shown) -> Value {
        let (listed, changed) = self.listed(shown);
        let counted = self.counted(shown.sort);
        let program = |trace: &Trace| -> Map<String, Value> {
            let number = |metric: Metric| {
                (metric.name().to_string(), of_program(trace.manifest(), metric).into())
            };
            OF_PROGRAMS.into_iter().map(number).collect()
        };
        let gate = |gate: &Gate| {
            let (before, after) = self.numbers(gate.metric);
            json!({"gate": gate.to_string(), "passed": gate.passes(before, after),
                   "before": before, "after": after})
        };
        json!({
            "before": program(&self.before),
            "after": program(&self.after),
            "notes": self.notes,
            "sites": {"all": self.sites.len(), "changed": changed, "new": counted.new,
                      "gone": counted.gone, "grown": counted.grown, "shrunk": counted.shrunk},
            "changed": listed.iter().map(|site| site_json(site, shown.sort)).collect::<Vec<_>>(),
            "gates": self.gates.iter().map(gate).collect::<Vec<_>>(),
        })
    }
}

/// Returns the word for the change of a call stack.
fn state(site: &Site, sort: Metric) -> &'static str {
    match (site.state, site.change().get(sort)) {
        (State::New, _) => "new",
        (State::Gone, _) => "gone",
        (_, 1..) => "grown",
        (_, 0) => "same",
        _ => "shrunk",
    }
}

fn line(site: &Site, rank: usize, shown: &Shown) -> Vec<String> {
    let change = site.change();
    let number = |metric: Metric| metric.shown_change(change.get(metric));
    vec![
        rank.to_string(),
        state(site, shown.sort).to_string(),
        number(shown.sort),
        shown.sort.shown(site.before.get(shown.sort)),
        shown.sort.shown(site.after.get(shown.sort)),
        number(Metric::Blocks),
        number(Metric::Peak),
        number(Metric::Leaked),
        number(Metric::Calls),
    ]
}

fn functions(all: &[Function], shown: &Shown) -> Vec<String> {
    let info: Vec<FrameInfo> = all
        .iter()
        .map(|function| FrameInfo {
            function: &function.name,
            file: &function.place.file,
            line: function.place.line,
            module: &function.module,
            is_inlined: false,
        })
        .collect();
    if info.is_empty() {
        return vec!["(no call stack)".to_string()];
    }
    let chosen = if shown.is_full { info.clone() } else { frames::without_wrappers(&info) };
    let depth = if shown.depth == 0 { chosen.len() } else { shown.depth };
    let line = |frame: &FrameInfo| match shown.is_full {
        true => format!("{}  {}", frame.function, frame.place()).trim_end().to_string(),
        false => frames::line(frame, frames::LISTED),
    };
    let mut lines: Vec<String> = chosen.iter().take(depth).map(line).collect();
    if chosen.len() > depth {
        lines.push(format!("… {} more", chosen.len() - depth));
    }
    lines
}

fn site_json(site: &Site, sort: Metric) -> Value {
    let function = |function: &Function| {
        json!({"function": function.name, "module": function.module,
               "file": function.place.file, "line": function.place.line})
    };
    json!({
        "state": state(site, sort),
        "functions": site.functions.iter().map(function).collect::<Vec<_>>(),
        "before": site.before.json(),
        "after": site.after.json(),
        "change": site.change().json(),
    })
}

/// Formats a change as a share of the number in the first trace, with its sign.
fn share(change: i64, before: i64) -> String {
    match (change, before) {
        (0, _) => "0 %".to_string(),
        (_, 0) => "-".to_string(),
        (1.., _) => format!("+{}", percent(change as f64 / before as f64)),
        _ => percent(change as f64 / before as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_printed_as_a_percentage_of_the_value_before() {
        assert_eq!(share(50, 100), "+50 %");
        assert_eq!(share(-1, 100), "-1.0 %");
        assert_eq!((share(0, 0), share(1, 0)), ("0 %".to_string(), "-".to_string()));
    }
}

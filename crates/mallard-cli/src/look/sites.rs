//! Implements `mallard sites`, which prints the call stacks that allocate, with their figures.

use super::{frames, lifetime, open};
use crate::output::debuginfod::how_to_name;
use mallard_measure::error::Failure;
use mallard_measure::output::shell::{as_called, quoted_path};
use mallard_measure::output::terminal::{plain_table, say, write};
use mallard_measure::output::units::{bytes, count, percent};
use mallard_trace::measures::{Estimate, Explanation, EXPLANATIONS};
use mallard_trace::trace::{FrameInfo, Stacks};
use mallard_trace::{SiteRow, Trace};
use regex::Regex;
use serde_json::{json, Value};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Lists the call stacks that allocate, the largest first.
///
/// D V L U C F are measures of Lakos ("Local ('arena') memory allocators", ACCU 2017): density,
/// variation, locality, utilisation, contention, fragmentability. `--explain` describes how each is
/// computed.
#[derive(clap::Args)]
pub struct Command {
    /// The trace.
    #[arg(value_name = "NAME")]
    name: Option<PathBuf>,
    /// What the list is ordered by.
    #[arg(long, value_enum, default_value = "bytes")]
    sort: Sort,
    /// Only call stacks with a function, file or module that this regular expression matches.
    #[arg(long, value_name = "REGEX")]
    filter: Option<String>,
    /// How many call stacks are listed; 0 for all.
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// How many functions of each call stack are listed; 0 for all.
    #[arg(long, value_name = "N", default_value_t = 4)]
    depth: usize,
    /// Also lists functions that only pass an allocation on, and shows names in full.
    #[arg(long)]
    full: bool,
    /// Explains what D, V, L, U, C and F mean.
    #[arg(long)]
    explain: bool,
    /// Writes one JSON object for each call stack.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Sort {
    /// Bytes allocated
    Bytes,
    /// Blocks allocated
    Blocks,
    /// Bytes in use at the peak of the program
    Peak,
    /// Bytes never freed
    Leaked,
    /// Time in malloc and related functions
    Time,
    /// Blocks freed before their thread allocated another
    Short,
    /// Blocks freed by another thread
    Cross,
    D,
    V,
    L,
    U,
    C,
    F,
}

impl Sort {
    fn key(self, site: &SiteRow) -> f64 {
        let number = |number: i64| number as f64;
        let measure = |estimate: &Estimate| estimate.value.unwrap_or(f64::NEG_INFINITY);
        match self {
            Sort::Bytes => number(site.bytes),
            Sort::Blocks => number(site.allocs),
            Sort::Peak => number(site.at_peak_bytes),
            Sort::Leaked => number(site.live_bytes),
            Sort::Time => number(site.call_ns),
            Sort::Short => number(site.short_lived),
            Sort::Cross => number(site.cross_thread_frees),
            Sort::D => measure(&site.d),
            Sort::V => measure(&site.v),
            Sort::L => measure(&site.l),
            Sort::U => measure(&site.u),
            Sort::C => measure(&site.c),
            Sort::F => measure(&site.f),
        }
    }
}

impl Command {
    /// Makes the command that lists the call stacks with the most bytes that were never freed.
    pub fn of_leaked(trace: &Path) -> Command {
        Command {
            name: Some(trace.to_path_buf()),
            sort: Sort::Leaked,
            filter: None,
            top: 10,
            depth: 4,
            full: false,
            explain: false,
            json: false,
        }
    }

    /// Prints the list.
    pub fn run(self) -> Result<ExitCode, Failure> {
        if self.explain {
            say(&explanations())?;
        }
        let Some(name) = &self.name else {
            return if self.explain { Ok(ExitCode::SUCCESS) } else { Err(no_name()) };
        };
        let pattern = self.filter.as_deref().map(parse_pattern).transpose()?;
        let trace = open(name)?;
        let stacks = trace.stacks()?;
        let mut sites = trace.sites()?;
        if let Some(pattern) = &pattern {
            sites.retain(|site| stacks.functions(site.stack).iter().any(|f| matches(pattern, f)));
        }
        sites.sort_by(|a, b| {
            self.sort.key(b).total_cmp(&self.sort.key(a)).then(a.stack.cmp(&b.stack))
        });
        let found = sites.len();
        if self.top > 0 {
            sites.truncate(self.top);
        }
        if self.json {
            let lines = sites.iter().map(|site| format!("{}\n", as_json(site, &stacks)));
            write(&lines.collect::<String>())?;
        } else {
            say(&self.table(&trace, &stacks, &sites, found))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn table(&self, trace: &Trace, stacks: &Stacks, sites: &[SiteRow], found: usize) -> String {
        let manifest = trace.manifest();
        let all = &manifest.totals.sites;
        let share = |part: i64, whole: i64| {
            if whole > 0 {
                percent(part as f64 / whole as f64)
            } else {
                "-".into()
            }
        };
        let mut text = format!(
            "{} of {} call stacks that allocate, by {:?}\n",
            count(sites.len() as u64),
            count(manifest.totals.site_count),
            self.sort
        )
        .to_lowercase();
        text += &manifest.origin().map_or(String::new(), |origin| format!("  {origin}\n"));
        let mut lines = Vec::new();
        for (site, rank) in sites.iter().zip(1..) {
            lines.push(vec![
                rank.to_string(),
                bytes(site.bytes as u64),
                share(site.bytes, all.bytes),
                count(site.allocs as u64),
                bytes(site.at_peak_bytes as u64),
                bytes(site.live_bytes as u64),
                bytes(site.size_p50 as u64),
                site.life_p50.map_or("-".to_string(), |ns| lifetime(manifest, ns)),
                measure(&site.d),
                measure(&site.v),
                measure(&site.l),
                measure(&site.u),
                measure(&site.c),
                measure(&site.f),
            ]);
        }
        let titles = [
            "", "bytes", "share", "blocks", "at peak", "leaked", "size p50", "life p50", "D", "V",
            "L", "U", "C", "F",
        ];
        // The functions of each call stack are printed below its numbers.
        let (titles, numbers) = plain_table(&titles, lines).rows();
        text += &format!("{}\n", titles.join("\n"));
        let stacks_of = sites.iter().map(|site| self.functions(stacks, site.stack)).collect();
        for (lines, functions) in numbers.iter().zip(told_apart(stacks_of, self.depth)) {
            text += &format!("{}\n", lines.join("\n"));
            for function in functions {
                text += &format!("        {function}\n");
            }
        }
        if sites.iter().any(|site| {
            [&site.d, &site.v, &site.l, &site.u, &site.c, &site.f].iter().any(|m| m.is_too_few())
        }) {
            text += "  few: fewer than 1,000 observations\n";
        }
        text += &self.unnamed(stacks, sites).map_or(String::new(), |how| format!("  {how}\n"));
        text += &self.next(trace, found, sites.len());
        text
    }

    /// Returns the lines for the functions of a call stack, innermost first.
    fn functions(&self, stacks: &Stacks, stack: i32) -> Vec<String> {
        let all = stacks.functions(stack);
        if all.is_empty() {
            return vec!["(no call stack)".to_string()];
        }
        let shown = if self.full { all.clone() } else { frames::without_wrappers(&all) };
        let line = |f: &FrameInfo| match self.full {
            true => format!("{}  {}", f.function, f.place()).trim_end().to_string(),
            false => frames::line(f, frames::LISTED),
        };
        shown.iter().map(line).collect()
    }

    /// Describes how functions without a name can get names. Returns `None` if all functions have
    /// names.
    fn unnamed(&self, stacks: &Stacks, sites: &[SiteRow]) -> Option<String> {
        sites.iter().find_map(|site| {
            let all = stacks.functions(site.stack);
            let shown = if self.full { all } else { frames::without_wrappers(&all) };
            let depth = if self.depth == 0 { shown.len() } else { self.depth };
            let unnamed = |frame: &&FrameInfo| frames::in_words(frame.function) != frame.function;
            let frame = shown.iter().take(depth).find(unnamed)?;
            frame.module.starts_with('/').then(|| how_to_name(frame.module))
        })
    }

    fn next(&self, trace: &Trace, found: usize, shown: usize) -> String {
        let name = quoted_path(trace.folder());
        let next = match found > shown {
            true => format!("mallard sites {name} --top {} --sort peak", shown * 4),
            false => format!("mallard stats {name}"),
        };
        let explain = as_called("mallard sites --explain");
        format!("what D V L U C F mean: {explain}\nnext: {}\n", as_called(&next))
    }
}

/// Cuts call stacks to `depth` functions (0 cuts no stack), and adds how many functions follow. If
/// several stacks would look the same, they get as many more functions as are needed to distinguish
/// them. Some stacks differ only in the position within a line, so more functions would not help.
fn told_apart(all: Vec<Vec<String>>, depth: usize) -> Vec<Vec<String>> {
    let longest = all.iter().map(Vec::len).max().unwrap_or(0);
    let begin = if depth == 0 { longest } else { depth };
    let mut depths = vec![begin; all.len()];
    let cut = |number: usize, depth: usize| &all[number][..depth.min(all[number].len())];
    for depth in begin..longest {
        let mut whole: HashMap<&[String], HashSet<&[String]>> = HashMap::new();
        for (number, &own) in depths.iter().enumerate() {
            whole.entry(cut(number, own)).or_default().insert(&all[number]);
        }
        let is_double = |&number: &usize| whole[cut(number, depths[number])].len() > 1;
        let doubles: Vec<usize> = (0..all.len()).filter(is_double).collect();
        doubles.into_iter().for_each(|number| depths[number] = depth + 1);
    }
    let mut seen: HashMap<&[String], usize> = HashMap::new();
    let shown = |(number, &depth): (usize, &usize)| {
        let mut lines = cut(number, depth).to_vec();
        let before = seen.entry(cut(number, depth)).or_default();
        *before += 1;
        match all[number].len().saturating_sub(depth) {
            0 => {}
            more => lines.push(format!("… {more} more")),
        }
        if *before > 1 {
            lines.push("(another call in the same lines)".to_string());
        }
        lines
    };
    depths.iter().enumerate().map(shown).collect()
}

fn no_name() -> Failure {
    Failure::new(
        "no trace was named",
        "nothing was read",
        "mallard sites NAME, for a trace of mallard record",
    )
}

fn parse_pattern(text: &str) -> Result<Regex, Failure> {
    Regex::new(text).map_err(|error| {
        let why = error.to_string();
        let why = why.lines().last().unwrap_or_default().trim().to_string();
        Failure::new(
            format!("'{text}' is not a valid regular expression: {why}"),
            "nothing was read",
            "mallard sites --help",
        )
    })
}

fn matches(pattern: &Regex, frame: &FrameInfo) -> bool {
    [frame.function, frame.file, frame.module].iter().any(|text| pattern.is_match(text))
}

/// Formats a measure for a cell of the table.
fn measure(estimate: &Estimate) -> String {
    match estimate.value {
        Some(value) if value.abs() >= 100.0 => format!("{value:.0}"),
        Some(value) => format!("{value:.2}"),
        None if estimate.is_too_few() => "few".to_string(),
        None => "-".to_string(),
    }
}

fn as_json(site: &SiteRow, stacks: &Stacks) -> Value {
    let mut value = serde_json::to_value(site).unwrap_or_default();
    let functions: Vec<Value> = stacks
        .functions(site.stack)
        .iter()
        .map(|f| {
            json!({"function": f.function, "file": f.file, "line": f.line, "module": f.module, "inlined": f.is_inlined})
        })
        .collect();
    value["functions"] = Value::from(functions);
    value
}

/// Returns the explanations of the six measures.
pub fn explanations() -> String {
    EXPLANATIONS.iter().map(explanation).collect()
}

fn explanation(of: &Explanation) -> String {
    let low = match of.low {
        "" => String::new(),
        low => format!("Near 0, {low}. "),
    };
    let (text, high) = (of.text.split_whitespace().collect::<Vec<_>>().join(" "), of.high);
    let head = format!("{}  {} ({})", of.letter, of.word, of.unit);
    format!("{head}\n   {}\n   {text}\n   {low}When high, {high}.\n\n", of.question)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_stacks_with_the_same_text_are_made_distinguishable() {
        let of = |all: &[&str], depth| {
            let stacks = all.iter().map(|stack| stack.split(' ').map(String::from).collect());
            let shown = told_apart(stacks.collect(), depth);
            shown.into_iter().map(|lines| lines.join(" ")).collect::<Vec<_>>()
        };
        assert_eq!(of(&["a b c d", "e b c d"], 2), ["a b … 2 more", "e b … 2 more"]);
        let told = of(&["a b c d", "a b x d", "e b c d"], 2);
        assert_eq!(told, ["a b c … 1 more", "a b x … 1 more", "e b … 2 more"]);
        let same = of(&["a b c", "a b c", "a b"], 1);
        assert_eq!(same, ["a b c", "a b c (another call in the same lines)", "a b"]);
        assert_eq!(of(&["a b", "a b"], 0)[1], "a b (another call in the same lines)");
        let same = of(&["a b c d", "a b c d", "e b c d"], 2);
        let again = "a b … 2 more (another call in the same lines)";
        assert_eq!(same, ["a b … 2 more", again, "e b … 2 more"]);
    }
}

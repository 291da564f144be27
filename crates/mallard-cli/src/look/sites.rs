//! `mallard sites`: which call stacks allocate, how much, and how.

use super::{frames, lifetime, open};
use crate::error::Failure;
use crate::output::shell::{as_called, quoted_path};
use crate::output::terminal::{plain_table, say};
use crate::output::units::{bytes, count, percent};
use mallard_trace::duck::{Estimate, Explanation, EXPLANATIONS};
use mallard_trace::trace::{FrameInfo, Stacks};
use mallard_trace::{SiteRow, Trace};
use regex::Regex;
use serde_json::{json, Value};
use std::path::PathBuf;
use std::process::ExitCode;

/// Lists the call stacks that allocate, the largest first.
///
/// D V L U C F are measures from J. Lakos's talk on local allocators: density, variation, locality,
/// utilisation, contention, fragmentability. `--explain` says how each is computed.
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
    /// How many are listed; 0 for all.
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// How many functions of each call stack are listed; 0 for all.
    #[arg(long, value_name = "N", default_value_t = 4)]
    depth: usize,
    /// Lists functions that only pass an allocation on as well, and names in full.
    #[arg(long)]
    full: bool,
    /// Says what D, V, L, U, C and F mean.
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
    /// Bytes in use when the program had the most
    Peak,
    /// Bytes never freed
    Leaked,
    /// Time in malloc and its family
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
            say(&lines.collect::<String>())?;
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
        let rendered = plain_table(&titles, lines).to_string();
        // The functions of each call stack follow below its numbers.
        let mut numbers = rendered.lines();
        text += &format!("{}\n", numbers.next().unwrap_or_default().trim_end());
        for (line, site) in numbers.zip(sites) {
            text += &format!("{}\n", line.trim_end());
            for function in self.functions(stacks, site.stack) {
                text += &format!("        {function}\n");
            }
        }
        if sites.iter().any(|site| {
            [&site.d, &site.v, &site.l, &site.u, &site.c, &site.f].iter().any(|m| m.is_too_few())
        }) {
            text += "  few: fewer than 1,000 observations\n";
        }
        text += &self.next(trace, found, sites.len());
        text
    }

    fn functions(&self, stacks: &Stacks, stack: i32) -> Vec<String> {
        let all = stacks.functions(stack);
        if all.is_empty() {
            return vec!["(no call stack)".to_string()];
        }
        let shown = if self.full { all.clone() } else { frames::without_wrappers(&all) };
        let depth = if self.depth == 0 { shown.len() } else { self.depth };
        let line = |f: &FrameInfo| match self.full {
            true => format!("{}  {}", f.function, frames::place(f)).trim_end().to_string(),
            false => frames::line(f),
        };
        let mut lines: Vec<String> = shown.iter().take(depth).map(line).collect();
        if shown.len() > depth {
            lines.push(format!("… {} more", shown.len() - depth));
        }
        lines
    }

    fn next(&self, trace: &Trace, found: usize, shown: usize) -> String {
        let name = quoted_path(trace.folder());
        if found > shown {
            let more = as_called(&format!("mallard sites {name} --top {} --sort peak", shown * 4));
            format!("next: {more}; --explain says what D V L U C F mean\n")
        } else {
            let stats = as_called(&format!("mallard stats {name}"));
            let explain = as_called("mallard sites --explain");
            format!("next: {stats}; {explain} says what D V L U C F mean\n")
        }
    }
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
            format!("'{text}' is no regular expression: {why}"),
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

/// The explanations of the six measures.
pub fn explanations() -> String {
    EXPLANATIONS.iter().map(explanation).collect()
}

fn explanation(of: &Explanation) -> String {
    let low = match of.low {
        "" => String::new(),
        low => format!("Near 0, {low}. "),
    };
    let text = [of.question, of.text].map(wrapped).concat();
    let advice = wrapped(&format!("{low}When high, {}.", of.high));
    format!("{}  {} ({})\n{text}{advice}\n", of.letter, of.word, of.unit)
}

/// Wraps a text into indented lines of at most 90 characters.
fn wrapped(text: &str) -> String {
    let mut lines = String::new();
    let mut line = String::from("  ");
    for word in text.split_whitespace() {
        if line.len() + word.len() > 90 {
            lines += &format!("{}\n", line.trim_end());
            line = String::from("  ");
        }
        line += &format!(" {word}");
    }
    lines + &format!("{line}\n")
}

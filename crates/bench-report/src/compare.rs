//! `./x bench compare A B`: reports which benchmark results are a gain or a loss from A to B.

use crate::rows::row::{Row, Rows};
use crate::statistics::geometric_mean;
use crate::tables::number;
use crate::unpaired::{verdict, Bounds};
use mallard_measure::error::Failure;
use mallard_measure::output::terminal;
use mallard_measure::verdict::Verdict;
use regex::Regex;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::process::ExitCode;

/// Compares rows B with rows A, each row with itself
///
/// The verdict on a row is a gain (B is lower) or a loss (B is higher) if the p10-p90 ranges do not
/// overlap and the medians are further apart than the threshold, else no difference. The noise of a
/// row of one run is unknown: its figures must be more than 10 % apart. Rows of the suite calibration
/// that are changes against glibc are left out: a change has no ratio to another change. The exit status is 0 if no
/// row is a loss, 1 if a row is a loss, and 2 if nothing can be compared.
#[derive(clap::Args)]
pub struct Compare {
    /// File or folder with the rows before
    a: PathBuf,
    /// File or folder with the rows after
    b: PathBuf,
    /// The least difference between two medians, in per cent, that counts
    #[arg(long, value_name = "PCT", allow_negative_numbers = true, default_value_t = 3.0, value_parser = percent)]
    threshold: f64,
    /// Compare only contenders that match
    #[arg(long, value_name = "REGEX")]
    contender: Option<Regex>,
    /// Compare only metrics that match
    #[arg(long, value_name = "REGEX")]
    metric: Option<Regex>,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=1000.0).contains(&value) => Ok(value),
        _ => Err("the threshold is a percentage from 0 to 1000".to_string()),
    }
}

type Key = (String, String, String, String, String, u32);

fn key(row: &Row) -> Key {
    let r = row.clone();
    (r.suite, r.case, r.variant, r.contender, r.metric, r.threads)
}

fn name((suite, case, variant, contender, metric, threads): &Key) -> String {
    let variant = if variant.is_empty() { String::new() } else { format!(" {variant}") };
    let threads = if *threads == 1 { String::new() } else { format!(" x{threads}") };
    format!("{suite} {case}{variant}{threads} {metric} {contender}")
}

/// A result that both sides (A and B) have, and the verdict on the difference between A and B.
struct Pair<'a> {
    key: Key,
    a: &'a Row,
    b: &'a Row,
    verdict: Verdict,
}

impl Pair<'_> {
    fn ratio(&self) -> Option<f64> {
        Some(self.b.median? / self.a.median?).filter(|r| r.is_finite() && *r > 0.0)
    }
}

impl Pair<'_> {
    /// Returns a table line with the name of the result, both figures with their spread, and their
    /// ratio.
    fn line(&self) -> Vec<String> {
        let range = |r: &Row| {
            let median = number(r.median.unwrap_or(0.0));
            format!("{median} ({} - {})", number(r.low()), number(r.high()))
        };
        let ratio = self.ratio().map_or("-".to_string(), |r| format!("{r:.3}"));
        vec![name(&self.key), range(self.a), range(self.b), ratio]
    }
}

#[derive(Default)]
struct Outcome<'a> {
    pairs: Vec<Pair<'a>>,
    only_a: Vec<Key>,
    only_b: Vec<Key>,
    /// Results with a figure in A but no figure in B. Each of them counts as a loss. The field
    /// `started` has the opposite: results with a figure in B but no figure in A.
    stopped: Vec<(Key, String)>,
    started: Vec<Key>,
}

impl Compare {
    pub fn run(self) -> Result<ExitCode, Failure> {
        let (a, b) = (self.read(&self.a)?, self.read(&self.b)?);
        let outcome = self.pair(&a, &b);
        if outcome.pairs.is_empty() && outcome.stopped.is_empty() && outcome.started.is_empty() {
            return Err(Failure::new(
                format!("{} and {} have no row in common", self.a.display(), self.b.display()),
                format!("{} rows on one side, {} on the other", a.len(), b.len()),
                "./x bench compare A B, of the same suites and contenders",
            ));
        }
        if self.json {
            terminal::write(&format!("{}\n", outcome.json()))?;
        } else {
            terminal::say(&outcome.text(&machines(&a), &machines(&b), self.threshold))?;
        }
        Ok(if outcome.is_worse() { ExitCode::from(1) } else { ExitCode::SUCCESS })
    }

    fn read(&self, path: &PathBuf) -> Result<Vec<Row>, Failure> {
        let rows = Rows::read(std::slice::from_ref(path))?;
        rows.warn();
        let wanted =
            |pattern: &Option<Regex>, text: &str| pattern.as_ref().is_none_or(|p| p.is_match(text));
        Ok(rows
            .all
            .into_iter()
            .filter(|r| !r.is_change())
            .filter(|r| wanted(&self.contender, &r.contender) && wanted(&self.metric, &r.metric))
            .collect())
    }

    fn pair<'a>(&self, a: &'a [Row], b: &'a [Row]) -> Outcome<'a> {
        let bounds = Bounds { percent: self.threshold, ..Bounds::default() };
        let mut before: HashMap<Key, &Row> = a.iter().map(|r| (key(r), r)).collect();
        let after: HashMap<Key, &Row> = b.iter().map(|r| (key(r), r)).collect();
        let mut outcome = Outcome::default();
        let mut seen = BTreeSet::new();
        for row in b {
            let key = key(row);
            let to = after[&key];
            if !seen.insert(key.clone()) {
                continue;
            }
            match before.remove(&key) {
                None => outcome.only_b.push(key),
                Some(from) => match (verdict(from, to, bounds), from.median, to.median) {
                    (Verdict::NotMeasurable, Some(_), None) => {
                        outcome.stopped.push((key, to.why.clone()))
                    }
                    (Verdict::NotMeasurable, None, Some(_)) => outcome.started.push(key),
                    (Verdict::NotMeasurable, _, _) => {}
                    (verdict, _, _) => outcome.pairs.push(Pair { key, a: from, b: to, verdict }),
                },
            }
        }
        outcome.only_a = a.iter().map(key_of_row).filter(|k| before.remove(k).is_some()).collect();
        outcome
    }
}

fn key_of_row(row: &Row) -> Key {
    key(row)
}

fn machines(rows: &[Row]) -> BTreeSet<String> {
    rows.iter().map(|r| r.machine.clone()).collect()
}

impl Outcome<'_> {
    fn of(&self, verdict: Verdict) -> Vec<&Pair<'_>> {
        let mut pairs: Vec<&Pair<'_>> =
            self.pairs.iter().filter(|p| p.verdict == verdict).collect();
        let distance = |p: &Pair| p.ratio().map_or(f64::INFINITY, |r| r.ln().abs());
        pairs.sort_by(|x, y| distance(y).total_cmp(&distance(x)));
        pairs
    }

    fn is_worse(&self) -> bool {
        !self.stopped.is_empty() || self.pairs.iter().any(|p| p.verdict == Verdict::Loss)
    }

    /// Returns, for each suite and metric, the number of pairs and the geometric mean of B / A.
    fn means(&self) -> BTreeMap<(String, String), (usize, Option<f64>)> {
        let mut ratios: BTreeMap<(String, String), Vec<f64>> = BTreeMap::new();
        for pair in &self.pairs {
            let of = ratios.entry((pair.key.0.clone(), pair.key.4.clone())).or_default();
            of.extend(pair.ratio());
        }
        ratios.into_iter().map(|(k, v)| (k, (v.len(), geometric_mean(v)))).collect()
    }

    fn text(&self, a: &BTreeSet<String>, b: &BTreeSet<String>, threshold: f64) -> String {
        let mut out = String::new();
        if a != b {
            out += "The two sides were measured on different machines: that is compared, too.\n\n";
        }
        for verdict in [Verdict::Loss, Verdict::Gain] {
            let pairs = self.of(verdict);
            if !pairs.is_empty() {
                let lines = pairs.iter().map(|p| p.line());
                let table = terminal::plain_table(&["", "before", "after", "after/before"], lines);
                out += &format!("{verdict}: {}\n{table}\n\n", pairs.len());
            }
        }
        let stopped = self.stopped.iter().map(|(k, why)| format!("{}: {why}", name(k)));
        out += &names("no figure any more, counted as a loss", stopped);
        out += &names("a figure now, and none before", self.started.iter().map(name));
        out += &names("only before", self.only_a.iter().map(name));
        out += &names("only after", self.only_b.iter().map(name));
        let means = self.means().into_iter().map(|((suite, metric), (count, mean))| {
            let mean = mean.map_or("-".to_string(), |m| format!("{m:.3}"));
            vec![suite, metric, count.to_string(), mean]
        });
        let means = terminal::plain_table(&["suite", "metric", "rows", "mean"], means);
        out += &format!("geometric mean of after/before\n{means}\n\n");
        out += &format!(
            "{} gain, {} loss, {} no difference (threshold {threshold} %); \
             {} only before, {} only after\n",
            self.of(Verdict::Gain).len(),
            self.of(Verdict::Loss).len() + self.stopped.len(),
            self.of(Verdict::NoDifference).len(),
            self.only_a.len(),
            self.only_b.len()
        );
        out
    }

    fn json(&self) -> serde_json::Value {
        let key = |(suite, case, variant, contender, metric, threads): &Key| {
            json!({"suite": suite, "case": case, "variant": variant, "contender": contender,
                   "metric": metric, "threads": threads})
        };
        let figure =
            |r: &Row| json!({"median": r.median, "low": r.low, "high": r.high, "runs": r.runs});
        let pairs: Vec<_> = self
            .pairs
            .iter()
            .map(|p| {
                let mut object = key(&p.key);
                object["verdict"] = json!(p.verdict);
                object["ratio"] = json!(p.ratio());
                object["before"] = figure(p.a);
                object["after"] = figure(p.b);
                object
            })
            .collect();
        let means: Vec<_> = self
            .means()
            .into_iter()
            .map(|((suite, metric), (rows, mean))| json!({"suite": suite, "metric": metric, "rows": rows, "geometric_mean": mean}))
            .collect();
        json!({
            "gain": self.of(Verdict::Gain).len(),
            "loss": self.of(Verdict::Loss).len() + self.stopped.len(),
            "no_difference": self.of(Verdict::NoDifference).len(),
            "rows": pairs,
            "means": means,
            "stopped": self.stopped.iter().map(|(k, why)| { let mut o = key(k); o["why"] = json!(why); o }).collect::<Vec<_>>(),
            "started": self.started.iter().map(key).collect::<Vec<_>>(),
            "only_before": self.only_a.iter().map(key).collect::<Vec<_>>(),
            "only_after": self.only_b.iter().map(key).collect::<Vec<_>>(),
        })
    }
}

fn names(title: &str, names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.map(|n| format!("  {n}\n")).collect();
    if names.is_empty() {
        return String::new();
    }
    format!("{title}: {}\n{}\n", names.len(), names.concat())
}

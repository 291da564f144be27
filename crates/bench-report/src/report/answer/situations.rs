//! Answers which strategy to use in which situation, how much the strategy gains, and when not to
//! use it.

use super::{cells, is_loss, named, range_of_times, NOT_MEASURED};
use crate::rows::contender::{explained, is_local, is_tuned, short};
use crate::rows::experiment::{contenders, deciding, ratio, Experiment, Kind, Machine};
use crate::rows::matching::{choice, like};
use crate::rows::row::Row;
use crate::rows::situations::{Situation, LOCAL, OTHERS};
use crate::statistics::{geometric_mean, Range};
use crate::tables::conditions;
use crate::tables::{number, times, Cell, Table};

/// The smallest factor that counts as a gain.
const GAIN: f64 = 1.03;

const COLUMNS: [&str; 5] =
    ["take", "gain over glibc", "peak memory", "not when", "against the best peer of its kind"];

pub fn table(machine: &Machine) -> Table {
    let mut table = Table::prose("Which one, and what it gains", &["situation"], &COLUMNS)
        .note("Gain: the time with glibc's malloc (AS1 in the benchmarks with strategies) divided by the time with the \
               allocator, as the median over the cells, with the minimum and the maximum. \
               Peak memory: relative to glibc's, as a geometric mean. \
               Against the best peer of its kind: Mallard's figure divided by the peer's, as a geometric \
               mean over the cells. A malloc's peers are mallocs, a strategy's peers the same strategy in other \
               libraries, and a local allocator's peers local allocators; all have their default settings.");
    let local = LOCAL.iter().map(|s| (s.title, local(machine, s)));
    let other = OTHERS.iter().map(|s| (s.title, other(machine, s)));
    let mut unmeasured = Vec::new();
    for (title, cells) in local.chain(other) {
        match cells {
            Some(cells) => table.line(vec![title.to_string()], cells),
            None => unmeasured.push(title.to_string()),
        }
    }
    if !unmeasured.is_empty() {
        table.notes.push(format!("Not measured: {}.", unmeasured.join("; ")));
    }
    table
}

fn advice(texts: [String; 5]) -> Option<Vec<Cell>> {
    let mut cells: Vec<Cell> = texts.into_iter().map(Cell::text).collect();
    cells[0].best = true;
    Some(cells)
}

/// The result of one allocator over some experiments, compared with glibc's result.
struct Standing {
    contender: String,
    gains: Range,
    mean: f64,
    fails: usize,
    /// The number of failures that were computed in advance, so that the case did not have to run.
    computed: usize,
    present: usize,
}

impl Standing {
    /// Formats a warning such as `AS3 (0.22×, out of memory in 44 of 66)`.
    fn warning(&self) -> String {
        let fails = match self.fails {
            0 => String::new(),
            fails => {
                let computed = match self.computed {
                    0 => String::new(),
                    some => format!(", {some} computed and not run"),
                };
                format!(", out of memory in {fails} of {}{computed}", self.present)
            }
        };
        format!("{} ({}{fails})", short(&self.contender), times(self.gains.median))
    }
}

fn standings(all: &[&Experiment], wanted: impl Fn(&str) -> bool) -> Vec<Standing> {
    let names = contenders(all).into_iter().filter(|c| wanted(c));
    let mut standings: Vec<Standing> = names
        .filter_map(|contender| {
            let rows: Vec<_> = all.iter().filter_map(|e| Some((e, e.of(&contender)?))).collect();
            let gains: Vec<f64> = rows.iter().filter_map(|(e, r)| e.gain(r)).collect();
            let fails = rows.iter().filter(|(_, r)| r.failed()).count();
            let computed = rows.iter().filter(|(_, r)| r.failed_on_paper()).count();
            let mean = geometric_mean(gains.iter().copied())?;
            let (gains, present) = (Range::of(gains)?, rows.len());
            Some(Standing { contender, gains, mean, fails, computed, present })
        })
        .collect();
    standings.sort_by(|a, b| b.mean.total_cmp(&a.mean));
    standings
}

fn local(machine: &Machine, s: &Situation) -> Option<Vec<Cell>> {
    let all = deciding(&machine.select(|e| s.has(e)));
    let standings = standings(&all, is_local);
    // A strategy that runs out of memory is not recommended.
    let best = standings.iter().find(|s| s.fails == 0).or(standings.first())?;
    if best.mean < GAIN {
        let text =
            format!("the global allocator; the best local one is {}", short(&best.contender));
        return advice([
            text,
            conditions::after(range_of_times(Some(best.gains)), rows_of(&all, &best.contender)),
            memory(machine, s, &best.contender),
            format!("nothing is gained in {}", cells(all.len())),
            against_peers(&all, &best.contender),
        ]);
    }
    let gain = format!("{}, {}", range_of_times(Some(best.gains)), cells(best.gains.count));
    advice([
        explained(&best.contender),
        conditions::after(gain, rows_of(&all, &best.contender)),
        memory(machine, s, &best.contender),
        not_when(&all, best, &standings),
        against_peers(&all, &best.contender),
    ])
}

/// Names the cells in which even the best strategy is a loss compared with glibc, and the
/// strategies that lose or fail.
fn not_when(all: &[&Experiment], best: &Standing, standings: &[Standing]) -> String {
    let mut parts = Vec::new();
    let lost: Vec<String> = all
        .iter()
        .filter(|e| {
            let rows = e.baseline().zip(e.of(&best.contender));
            rows.is_some_and(|(base, row)| is_loss(base, row))
        })
        .map(|e| e.case.clone())
        .collect();
    if !lost.is_empty() {
        let count = format!("a loss to glibc in {} of {}", lost.len(), cells(all.len()));
        parts.push(format!("{count}: {}", named(&lost, 3)));
    }
    let mut bad: Vec<&Standing> =
        standings.iter().filter(|s| s.mean < 1.0 / GAIN || s.fails > 0).collect();
    bad.sort_by(|a, b| b.fails.cmp(&a.fails).then(a.mean.total_cmp(&b.mean)));
    let bad: Vec<String> = bad.into_iter().map(Standing::warning).collect();
    if !bad.is_empty() {
        parts.push(format!("not {}", named(&bad, 4)));
    }
    if parts.is_empty() {
        parts.push("no cell is lost".to_string());
    }
    parts.join("; ")
}

/// Formats the peak memory of an allocator compared with glibc's.
fn memory(machine: &Machine, s: &Situation, contender: &str) -> String {
    let all = machine.select(|e| s.has(e) && e.metric == "peak_rss_kib");
    let shares = all.iter().filter_map(|e| e.gain(e.of(contender)?)).map(|g| 1.0 / g);
    geometric_mean(shares).map_or(NOT_MEASURED.to_string(), times)
}

/// Returns the results that one allocator has in some experiments.
fn rows_of<'a>(all: &'a [&'a Experiment], contender: &'a str) -> impl Iterator<Item = &'a Row> {
    all.iter().filter_map(move |e| e.of(contender))
}

/// Formats Mallard's figure as a share of that of the best competitor of its kind, in the cells
/// that both have.
pub fn against_peers(all: &[&Experiment], contender: &str) -> String {
    let kind = like(contender);
    let names = contenders(all);
    let peers: Vec<&String> =
        names.iter().filter(|c| !c.starts_with("mallard/") && like(c) == kind).collect();
    let shares = peers.iter().filter(|c| !c.starts_with("glibc")).filter_map(|peer| {
        let both = all.iter().filter_map(|e| ratio(e.of(contender)?.median?, e.of(peer)?.median?));
        let both: Vec<f64> = both.collect();
        (both.len() * 2 >= all.len()).then_some(())?;
        Some((geometric_mean(both)?, peer))
    });
    let worst = shares.max_by(|a, b| a.0.total_cmp(&b.0));
    worst.map_or("no peer of its kind".to_string(), |(share, peer)| {
        format!("{} of {peer}", number(share))
    })
}

/// Returns the table of the variants that are tuned for a benchmark case. Variants with default
/// settings are in other tables.
pub fn tuned(machine: &Machine) -> Table {
    let columns = ["variant", "gain over glibc", "relative to the default"];
    let mut table = Table::prose("Tuned variants", &["situation"], &columns)
        .note("These variants are tuned for the benchmark. The peers are not, so the variants are in no comparison \
               with a peer and in no mean. The last column is the geometric mean over the variant's figures divided \
               by the default's, which has the same name without the suffix.");
    for s in LOCAL.iter().chain(OTHERS) {
        let all = deciding(&machine.select(|e| s.has(e)));
        for contender in contenders(&all).into_iter().filter(|c| is_tuned(c)) {
            let gains = Range::of(all.iter().filter_map(|e| e.gain(e.of(&contender)?)));
            let default = without_tuning(&contender);
            let against = all
                .iter()
                .filter_map(|e| ratio(e.of(&contender)?.median?, e.of(&default)?.median?));
            let gain = gains.map_or("-".to_string(), |g| {
                format!("{}, {}", range_of_times(Some(g)), cells(g.count))
            });
            let cells = [
                contender.clone(),
                conditions::after(gain, rows_of(&all, &contender)),
                geometric_mean(against).map_or("-".to_string(), number),
            ];
            table.line(vec![s.title.to_string()], cells.into_iter().map(Cell::text).collect());
        }
    }
    table
}

/// Returns the name of an allocator without its tuning, such as `mallard/AS7` for
/// `mallard/AS7+fifo`.
fn without_tuning(contender: &str) -> String {
    let end = contender.rfind(['+', '/']).unwrap_or(contender.len());
    contender[..end].to_string()
}

fn other(machine: &Machine, s: &Situation) -> Option<Vec<Cell>> {
    let own = machine.select(|e| s.has(e));
    let mut all = deciding(&own);
    if all.is_empty() {
        all = own.into_iter().filter(|e| e.kind() == Kind::Memory).collect();
    }
    let best = &choice(&all, |c| like(c).is_some())?;
    let gains = Range::of(all.iter().filter_map(|e| e.gain(e.of(best)?)));
    let lost: Vec<String> = all
        .iter()
        .filter(|e| e.baseline().zip(e.of(best)).is_some_and(|(base, row)| is_loss(base, row)))
        .map(|e| e.case.clone())
        .collect();
    let not = match lost.len() {
        0 if gains.is_some() => "no cell is lost to glibc".to_string(),
        0 => String::new(),
        count => {
            format!("slower than glibc in {count} of {}: {}", cells(all.len()), named(&lost, 3))
        }
    };
    let gain = gains.map_or("no glibc among the peers".to_string(), |g| {
        let gain = format!("{}, {}", range_of_times(Some(g)), cells(g.count));
        conditions::after(gain, rows_of(&all, best))
    });
    let loses = geometric_mean(all.iter().filter_map(|e| e.gain(e.of(best)?)))
        .is_some_and(|m| m < 1.0 / GAIN);
    let take = if loses { format!("glibc; the best of Mallard is {best}") } else { best.clone() };
    advice([take, gain, memory(machine, s, best), not, against_peers(&all, best)])
}

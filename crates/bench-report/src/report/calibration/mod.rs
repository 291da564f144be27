//! Makes the page docs/calibration.md, which compares predictions with measurements of programs.
//!
//! `introduction` has the conclusion and explains the tables. `changes` is about source changes,
//! with results of the suite `advise`. `pairs` reads the results of the suite `calibration`, which
//! is about mallocs, `counts` counts correct predictions, and `scatter` makes chart points of the
//! pairs for the HTML page.

mod changes;
mod counts;
mod introduction;
mod pairs;
mod scatter;

use super::markdown::{measured, FIRST};
use crate::markdown::{self, escaped, item, wrapped};
use crate::rows::experiment::Machine;
use crate::rows::published::Reason;
use crate::tables::{number, tenths, Cell, Table};
pub use changes::is_of_change;
use changes::Change as SourceChange;
use counts::{Count, Kinds, Question};
use mallard_measure::output::units::count;
use mallard_measure::verdict::Verdict;
pub use pairs::SUITE;
use pairs::{Figures, Pair, Program, Saving};
pub use scatter::{scatters, Scatter};

/// The text of a page without results.
const NOTHING: &str =
    "Nothing was measured yet. To measure, run `./x bench calibration --json`, write its results into a \
     directory of `results`, and run `./x bench report`.";

/// Makes the page.
pub fn render(machines: &[Machine], reasons: &[Reason]) -> String {
    let mut text = format!("{FIRST}\n\n# Calibration: predictions compared with measurements\n\n");
    let changes: Vec<SourceChange> = machines.iter().flat_map(SourceChange::all).collect();
    let items = introduction::conclusions(machines, &changes).into_iter().map(|c| item(&c));
    let mut beginning: String = items.collect();
    if machines.is_empty() {
        beginning = wrapped(NOTHING);
    }
    if !beginning.is_empty() {
        text += &format!("{beginning}\n");
    }
    for paragraph in introduction::READING {
        text += &format!("{}\n", wrapped(paragraph));
    }
    text += &wrapped(
        "The guide explains how to measure [source changes](guide/benchmarks.md#advice) and \
         [mallocs](guide/benchmarks.md#calibration).",
    );
    for machine in machines {
        text += &format!("\n## {}\n", escaped(&machine.heading()));
        text += &of_machine(machine, reasons);
    }
    text
}

fn of_machine(machine: &Machine, reasons: &[Reason]) -> String {
    let changes = SourceChange::all(machine);
    let mut text = String::new();
    if !changes.is_empty() {
        text += &section("Source changes", &changes::table(&changes));
    }
    if machine.has(SUITE) {
        text += &of_mallocs(machine, reasons);
    }
    text + &measured(machine)
}

fn of_mallocs(machine: &Machine, reasons: &[Reason]) -> String {
    let figures = Figures::of(machine);
    let (programs, allocators, pairs) = (figures.programs(), figures.allocators(), figures.pairs());
    let mut text = section("How often the replay is right", &counted(&pairs));
    text += &section("CPU time", &cpu(&programs, &allocators, &pairs));
    text += &section("Peak memory", &memory(&programs, &allocators, &pairs));
    text += &section("Programs", &of_programs(&programs));
    let misses = misses(&programs, &pairs, reasons);
    text += "\n### Wrong predictions\n";
    text += &match misses.is_empty() {
        true => format!("\n{}", wrapped("None.")),
        false => markdown::table(&misses, "Wrong predictions"),
    };
    text
}

fn section(title: &str, table: &Table) -> String {
    format!("\n### {title}\n{}", markdown::table(table, &table.title))
}

/// Returns the table that counts correct and wrong predictions.
fn counted(pairs: &[Pair]) -> Table {
    let kinds = Kinds::of(pairs);
    let columns = ["pairs", "yes", "share", "required"].map(String::from);
    let mut table = Table::new("counts", &["question"]).columns(columns);
    for question in Question::ALL {
        let Count { asked, right } = Count::of(question, pairs);
        let share = match asked {
            0 => "-".to_string(),
            _ => format!("{:.0} %", (100.0 * right as f64 / asked as f64).floor()),
        };
        let wanted = format!("{} %", question.wanted());
        let cells = [asked.to_string(), right.to_string(), share, wanted].map(Cell::text);
        table.line(vec![question.asks()], cells.to_vec());
    }
    let Kinds { different, unchanged, not_measurable, missing } = kinds;
    table.note(format!(
        "Measured CPU time for {} program/malloc pairs: gain or loss: {different}; no difference: \
         {unchanged}; not measurable: {not_measurable}; no figure: {missing}.",
        pairs.len()
    ))
}

/// Formats a saving. A mark after the figure means that the saving is not measurable.
fn saved(of: Option<&Saving>, unit: f64) -> String {
    let Some(of) = of else { return "-".to_string() };
    let unsure = if of.verdict == Some(Verdict::NotMeasurable) { "?" } else { "" };
    format!("{}{unsure}", tenths(of.median / unit))
}

fn interval(of: Option<(f64, f64)>) -> String {
    of.map_or(String::new(), |(low, high)| format!(" ({} to {})", tenths(low), tenths(high)))
}

/// Makes a table with a line for each program and a column for each allocator.
fn grid(
    title: &str,
    programs: &[Program],
    allocators: &[String],
    pairs: &[Pair],
    cell: impl Fn(&Pair) -> Cell,
) -> Table {
    let mut table = Table::new(title, &["program"]).columns(allocators.iter().cloned());
    for program in programs {
        let of = |a: &String| pairs.iter().find(|p| p.program == program.name && p.allocator == *a);
        let cells = allocators.iter().map(|a| of(a).map_or(Cell::default(), &cell));
        table.line(vec![program.name.clone()], cells.collect());
    }
    table
}

fn cpu(programs: &[Program], allocators: &[String], pairs: &[Pair]) -> Table {
    let cell = |pair: &Pair| Cell {
        best: pair.real.as_ref().is_some_and(Saving::is_different),
        ..Cell::text(format!(
            "{} / {}{}",
            saved(pair.real.as_ref(), 1.0),
            saved(pair.replayed.as_ref(), 1.0),
            interval(pair.predicted)
        ))
    };
    grid("CPU time", programs, allocators, pairs, cell).note(
        "CPU time savings in percent: measured / replayed (ends of the predicted interval). Bold: the measured \
         saving is a gain or a loss, beyond noise. `?`: the figure before it is not measurable.",
    )
}

fn memory(programs: &[Program], allocators: &[String], pairs: &[Pair]) -> Table {
    const MIB: f64 = 1024.0;
    let cell = |pair: &Pair| Cell {
        best: pair.real_peak.as_ref().is_some_and(Saving::is_different),
        ..Cell::text(format!(
            "{} / {}",
            saved(pair.real_peak.as_ref(), MIB),
            saved(pair.replayed_peak.as_ref(), MIB)
        ))
    };
    grid("Peak memory", programs, allocators, pairs, cell).note(
        "Peak memory savings in MiB: measured / replayed. Bold: the measured saving is a gain or a loss, beyond \
         noise. `?`: the figure before it is not measurable.",
    )
}

fn of_programs(programs: &[Program]) -> Table {
    let columns = [
        "threads",
        "CPU time in s",
        "CPU time by the recording",
        "peak in MiB",
        "page faults",
        "page faults of the replay",
    ];
    let mut table = Table::new("Programs", &["program"]).columns(columns.map(String::from));
    for p in programs {
        let peak = p.peak.map(|kib| kib / 1024.0);
        let figures = [p.cpu_seconds, p.recorded_cpu_seconds, peak, p.faults, p.replayed_faults];
        let figures = figures.map(Cell::figure);
        let threads = Cell::text(p.threads.to_string());
        table.line(vec![p.name.clone()], [vec![threads], figures.to_vec()].concat());
    }
    table.note(
        "Programs under glibc. The CPU time by the recording is that in the recorded run, less the recorder's \
         likely overhead. Replayed and predicted savings are percentages relative to this time.",
    )
}

/// Returns the table of the wrong predictions, with facts that may explain them.
fn misses(programs: &[Program], pairs: &[Pair], reasons: &[Reason]) -> Table {
    let columns = ["wrong", "measured CPU time", "replayed", "predicted", "possible causes"];
    let mut table = Table::prose("Wrong predictions", &["program", "malloc"], &columns);
    for pair in pairs {
        let missed = Question::ALL.into_iter().filter(|q| q.is_right(pair) == Some(false));
        let missed: Vec<Question> = missed.collect();
        if missed.is_empty() && pair.missing.is_empty() {
            continue;
        }
        let mut words: Vec<&str> = missed.iter().map(|q| q.misses()).collect();
        words.dedup();
        let what = words.join(", ");
        let cells = vec![
            Cell::text(if what.is_empty() { "no figure" } else { &what }),
            Cell::text(with_interval(pair.real.as_ref())),
            Cell::text(with_interval(pair.replayed.as_ref())),
            Cell::text(interval(pair.predicted).trim().trim_matches(['(', ')'])),
            Cell::text(known(programs, pair, &missed, reasons)),
        ];
        table.line(vec![pair.program.clone(), pair.allocator.clone()], cells);
    }
    table.note(
        "CPU time savings in percent, with the 95 % confidence interval and the verdict. The column \"wrong\" names what was \
         predicted wrongly: the sign, the verdict, the interval for CPU time, or the peak memory saving.",
    )
}

fn with_interval(of: Option<&Saving>) -> String {
    let Some(of) = of else { return "-".to_string() };
    let verdict = of.verdict.map_or(String::new(), |v| format!(", {v}"));
    format!("{}{}{verdict}", tenths(of.median), interval(Some((of.low, of.high))))
}

/// Returns facts that may explain why the prediction for a pair is wrong.
fn known(programs: &[Program], pair: &Pair, missed: &[Question], reasons: &[Reason]) -> String {
    let mut all = pair.missing.clone();
    if missed.contains(&Question::Coverage) {
        all.extend(reaches(pair));
    }
    if missed.contains(&Question::Peak) {
        all.extend(peaks(pair));
    }
    if missed.iter().any(|q| *q != Question::Peak) {
        let sources = [("measured", &pair.real), ("replay", &pair.replayed)];
        let whys = sources.iter().filter_map(|(source, saving)| {
            let why = &saving.as_ref()?.why;
            (!why.is_empty()).then(|| format!("{source}: {why}"))
        });
        all.extend(whys);
        let program = programs.iter().find(|p| p.name == pair.program);
        all.extend(program.and_then(recorded_otherwise));
        all.extend(program.and_then(faults_otherwise));
    }
    let parts = [pair.program.clone(), format!("{}/{}", pair.program, pair.allocator)];
    let of_pair =
        |r: &&Reason| r.suite == SUITE && (parts.contains(&r.part) || r.part == pair.allocator);
    all.extend(reasons.iter().filter(of_pair).map(|r| r.reason.clone()));
    match all.is_empty() {
        true => "unknown".to_string(),
        false => all.join("; "),
    }
}

/// Describes how far the measured median is from the predicted interval, or that the measured and
/// predicted intervals overlap.
fn reaches(pair: &Pair) -> Option<String> {
    let (real, (low, high)) = (pair.real.as_ref()?, pair.predicted?);
    let apart = (real.median - high).max(low - real.median);
    Some(match real.low <= high && low <= real.high {
        true => {
            "the measured saving's confidence interval overlaps the predicted interval".to_string()
        }
        false => format!(
            "the measured saving is {apart:.1} percentage points outside the predicted interval"
        ),
    })
}

fn peaks(pair: &Pair) -> Option<String> {
    let mib = |of: &Option<Saving>| of.as_ref().map(|s| tenths(s.median / 1024.0));
    let (real, replayed) = (mib(&pair.real_peak)?, mib(&pair.replayed_peak)?);
    let peak = number(pair.peak? / 1024.0);
    Some(format!(
        "measured peak memory saving: {real} MiB (peak: {peak} MiB); in the replay: {replayed} MiB"
    ))
}

/// Returns a text if the CPU time of the recorded run differs by more than 10 % from the CPU time
/// of the program without a recorder.
fn recorded_otherwise(program: &Program) -> Option<String> {
    let (real, recorded) = (program.cpu_seconds?, program.recorded_cpu_seconds?);
    let share = recorded / real;
    (!(0.9..=1.1).contains(&share)).then(|| {
        format!("by the recording, the program needs {share:.2} times its measured CPU time")
    })
}

/// Returns a text if the replay under glibc has more than 1.5 times the page faults of the whole
/// program.
fn faults_otherwise(program: &Program) -> Option<String> {
    let (real, replayed) = (program.faults?, program.replayed_faults?);
    (replayed > 1.5 * real).then(|| {
        let [real, replayed] = [real, replayed].map(|faults| count(faults as u64));
        format!("the replay has {replayed} page faults under glibc, and the whole program {real}")
    })
}

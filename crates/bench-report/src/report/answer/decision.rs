//! Makes the decision tables at the end of John Lakos's talk on local allocators (ACCU 2017), with
//! the figures that were measured for each cell.

use super::range_of_times;
use crate::rows::cases::is_cell;
use crate::rows::experiment::{deciding, ratio, Experiment, Machine};
use crate::rows::published::Published;
use crate::statistics::Range;
use crate::tables::conditions;
use crate::tables::{Cell, Table};

/// The advice in one cell of a decision table on Lakos's slide.
#[derive(Clone, Copy, PartialEq)]
enum Advice {
    Global,
    Local(&'static str),
    /// Advice that the slide marks with a question mark.
    Perhaps(&'static str),
    /// The joke "Find a new job" on the slide, which is not advice.
    Joke,
}

impl Advice {
    fn text(self) -> String {
        match self {
            Advice::Global => "global".to_string(),
            Advice::Local(what) => what.to_string(),
            Advice::Perhaps(what) => format!("{what}?"),
            Advice::Joke => "a joke on the slide: no advice".to_string(),
        }
    }

    /// Returns whether the measured gain of local allocators over the global one agrees with the
    /// advice.
    fn judged(self, gain: f64) -> &'static str {
        let gains = gain > 1.03;
        match self {
            Advice::Global if gain > 1.1 => "local gains here, too",
            Advice::Global => "holds",
            Advice::Local(_) if gains => "holds",
            Advice::Local(_) => "does not hold here",
            Advice::Perhaps(_) | Advice::Joke if gains => "measured: local gains",
            Advice::Perhaps(_) | Advice::Joke => "measured: nothing gained",
        }
    }
}

struct Evidence {
    suite: &'static str,
    wanted: fn(&Experiment) -> bool,
    /// The strategies (AS1 to AS14) that the advice recommends. Only the fastest of them counts.
    candidates: &'static [u32],
    advice: Advice,
}

struct Dimension {
    title: &'static str,
    /// Explains which parameters of a benchmark case mean that condition A or condition B holds.
    reading: &'static str,
    /// The four cells of the decision table: neither A nor B holds, only A, only B, both hold.
    cells: [Evidence; 4],
}

const POOLS: &[u32] = &[7, 8, 9, 10, 11, 12, 13, 14];
const MULTIPOOL: &[u32] = &[7, 9];
const ARENA: &[u32] = &[3, 4, 5, 6];

fn exponent(e: &Experiment, name: &str) -> u32 {
    e.parameter(name).unwrap_or(0)
}

/// Returns the exponent in the first part of the name of a lakos2 case, such as 21 for `2^21`.
fn elements(e: &Experiment) -> u32 {
    e.part(0).trim_start_matches("2^").parse().unwrap_or(0)
}

fn size(e: &Experiment) -> u32 {
    e.part(1).trim_start_matches("2^").parse().unwrap_or(0)
}

const DIMENSIONS: [Dimension; 3] = [
    Dimension {
        title: "L: parts are accessed disproportionately often",
        reading: "The figures compare the degradation in Lakos's benchmark II without and with local allocators. A holds from 2^21 elements on, and B holds from 2^4 passes over a part at a time on",
        cells: [
            Evidence { suite: "lakos2", wanted: |e| is_cell(e) && elements(e) < 21 && exponent(e, "I") < 4, candidates: POOLS, advice: Advice::Global },
            Evidence { suite: "lakos2", wanted: |e| is_cell(e) && elements(e) >= 21 && exponent(e, "I") < 4, candidates: POOLS, advice: Advice::Joke },
            Evidence { suite: "lakos2", wanted: |e| is_cell(e) && elements(e) < 21 && exponent(e, "I") >= 4, candidates: POOLS, advice: Advice::Perhaps("local") },
            Evidence { suite: "lakos2", wanted: |e| is_cell(e) && elements(e) >= 21 && exponent(e, "I") >= 4, candidates: POOLS, advice: Advice::Local("local") },
        ],
    },
    Dimension {
        title: "U: parts have high utilisation",
        reading: "For low utilisation, the figures are from Lakos's benchmark III, where A holds from 2^33 bytes in total on. For high utilisation, they are from benchmark I, where A holds from 2^11 elements per structure on",
        cells: [
            Evidence { suite: "lakos3", wanted: |e| exponent(e, "T") < 33, candidates: MULTIPOOL, advice: Advice::Global },
            Evidence { suite: "lakos3", wanted: |e| exponent(e, "T") >= 33, candidates: MULTIPOOL, advice: Advice::Local("local multipool") },
            Evidence { suite: "lakos1", wanted: |e| size(e) < 11, candidates: ARENA, advice: Advice::Perhaps("local monotonic") },
            Evidence { suite: "lakos1", wanted: |e| size(e) >= 11, candidates: ARENA, advice: Advice::Local("local monotonic") },
        ],
    },
    Dimension {
        title: "C: parts run concurrently",
        reading: "In Lakos's benchmark IV, A holds from 2^18 operations per thread on, and B holds from two threads on",
        cells: [
            Evidence { suite: "lakos4", wanted: |e| e.part(0).starts_with("I=") && exponent(e, "I") < 18 && e.threads < 2, candidates: POOLS, advice: Advice::Global },
            Evidence { suite: "lakos4", wanted: |e| exponent(e, "I") >= 18 && e.threads < 2, candidates: POOLS, advice: Advice::Local("local") },
            Evidence { suite: "lakos4", wanted: |e| e.part(0).starts_with("I=") && exponent(e, "I") < 18 && e.threads >= 2, candidates: POOLS, advice: Advice::Perhaps("local") },
            Evidence { suite: "lakos4", wanted: |e| exponent(e, "I") >= 18 && e.threads >= 2, candidates: POOLS, advice: Advice::Local("local") },
        ],
    },
];

pub fn table(machine: &Machine, published: &Published) -> Table {
    let columns = ["neither", "A only", "B only", "both"];
    let mut table = Table::prose("The talk's closing tables, with what was measured", &["B"], &columns)
        .note("A: the program is large and runs long. Each cell: what the talk says; whether it holds; \
               how many times better the best local allocator of that kind is than AS1, as the median of the \
               cells (least-most); the talk's own figure for the same cells.");
    for dimension in &DIMENSIONS {
        let cells = dimension.cells.iter().map(|e| cell(machine, published, e)).collect();
        table.line(vec![dimension.title.to_string()], cells);
        table.notes.push(format!("{}. {}.", &dimension.title[..1], dimension.reading));
    }
    table
}

fn cell(machine: &Machine, published: &Published, evidence: &Evidence) -> Cell {
    let of_suite = machine.select(|e| e.suite == evidence.suite && (evidence.wanted)(e));
    // Lakos's talk has no access times in ns for lakos2. It shows how much access times degrade.
    let of_suite: Vec<&Experiment> = match evidence.suite {
        "lakos2" => of_suite.into_iter().filter(|e| e.metric == "degradation").collect(),
        _ => of_suite,
    };
    let all = deciding(&of_suite);
    let ours = Range::of(all.iter().filter_map(|e| gain(e, evidence.candidates)));
    let talk = Range::of(all.iter().filter_map(|e| talk_gain(published, e, evidence.candidates)));
    let Some(range) = ours else {
        return Cell::text(format!("{}: {}", evidence.advice.text(), super::NOT_MEASURED));
    };
    let judged = evidence.advice.judged(range.median);
    let rows = evidence.candidates.iter().flat_map(|n| all.iter().filter_map(|e| e.of_talk(*n)));
    let figures = format!("{}, {}", range_of_times(ours), super::cells(range.count));
    let figures = conditions::after(figures, rows);
    let cell = Cell::text(format!("{}: {judged}. {figures}", evidence.advice.text()));
    cell.published(talk.map_or(String::new(), |t| format!("talk {}", range_of_times(Some(t)))))
}

fn gain(e: &Experiment, candidates: &[u32]) -> Option<f64> {
    let gains = candidates.iter().filter_map(|n| e.gain(e.of_talk(*n)?));
    gains.max_by(f64::total_cmp)
}

fn talk_gain(published: &Published, e: &Experiment, candidates: &[u32]) -> Option<f64> {
    let figure = |n: u32| published.of(&e.suite, &e.case, &format!("AS{n}")).flatten();
    let base = figure(1)?;
    candidates.iter().filter_map(|n| ratio(base, figure(*n)?)).max_by(f64::total_cmp)
}

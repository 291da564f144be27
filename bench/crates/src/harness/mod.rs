//! Runs experiments in the same way as the C++ harness (bench/harness.hpp).
//!
//! An experiment measures one quantity, or a few, of several contenders. All contenders are
//! prepared in this process. Then each contender does a batch of passes in each of several rounds.
//! The contender that is first in one round is last in the next, so that noise of the machine
//! affects all contenders alike. The result is the median over the rounds.
//!
//! The first round only determines how many passes a batch needs. Its figures do not count.
//!
//! Memory is measured separately. Each contender runs once more, alone, in a separate process.

pub mod child;
pub mod clock;
pub mod crew;
pub mod memory;
pub mod print;
pub mod random;
pub mod row;
pub mod statistics;
pub mod trial;

/// The amount of work in a run. It is a full run, a short run, or a smoke run, which only checks
/// that every case works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    Full,
    Brief,
    Smoke,
}

impl Effort {
    /// Returns the number of objects or elements, which is `wanted`, or a small number in a smoke
    /// run.
    pub fn count(self, wanted: usize) -> usize {
        if self == Effort::Smoke {
            wanted.min(128)
        } else {
            wanted
        }
    }
}

/// A function that does a number of passes. It adds the ns of these passes to each figure. The
/// function owns the allocator under test. When the function is dropped, every object and the
/// allocator are dropped too.
pub type Body = Box<dyn FnMut(u64, &mut [f64])>;

/// The reason why a contender cannot run a case. Results have it in the field `why`.
pub type Why = &'static str;

/// A contender, and the function that prepares it for its experiment.
pub struct Entrant {
    pub name: String,
    pub prepare: Box<dyn Fn(Effort) -> Result<Body, Why>>,
}

/// One measured quantity of a pass. It becomes one result for each contender.
#[derive(Clone, Debug)]
pub struct Figure {
    pub case: String,
    /// The variant, which is `faithful` (as published), `corrected` (without the mistakes of the
    /// published benchmark), or empty if there is only one.
    pub variant: &'static str,
    pub metric: &'static str,
    pub threads: usize,
}

pub struct Experiment {
    /// The question of the experiment, in words.
    pub asks: String,
    pub figures: Vec<Figure>,
    /// The number of operations in a pass. The measured ns are divided by it.
    pub ops: f64,
    pub entrants: Vec<Entrant>,
    /// The minimum duration of a batch in ns. A batch must take much longer than a reading of the
    /// clock.
    pub batch_ns: f64,
    /// Whether the experiment is part of a short run.
    pub in_brief: bool,
}

impl Experiment {
    pub fn new(case: impl Into<String>, asks: impl Into<String>, entrants: Vec<Entrant>) -> Self {
        let figure = Figure { case: case.into(), variant: "", metric: "ns_per_op", threads: 1 };
        Self {
            asks: asks.into(),
            figures: vec![figure],
            ops: 1.0,
            entrants,
            batch_ns: 1e6,
            in_brief: true,
        }
    }

    /// Sets the number of operations in a pass.
    pub fn ops(self, ops: usize) -> Self {
        Self { ops: ops as f64, ..self }
    }

    pub fn variant(mut self, variant: &'static str) -> Self {
        self.figures.iter_mut().for_each(|f| f.variant = variant);
        self
    }

    pub fn metrics(mut self, metrics: &[&'static str]) -> Self {
        let first = self.figures[0].clone();
        self.figures = metrics.iter().map(|m| Figure { metric: m, ..first.clone() }).collect();
        self
    }

    /// Sets the wall time and the CPU time of a case with several threads. Also makes a batch
    /// long compared with the start of threads.
    pub fn threads(mut self, threads: usize) -> Self {
        self = self.metrics(&["ns_per_op", "cpu_ns_per_op"]);
        self.figures.iter_mut().for_each(|f| f.threads = threads);
        Self { batch_ns: 8e6, ..self }
    }

    /// Sets the minimum duration of a batch in ns, for experiments that time only a small part of a
    /// pass.
    pub fn batch_ns(self, batch_ns: f64) -> Self {
        Self { batch_ns, ..self }
    }

    pub fn not_in_brief(self) -> Self {
        Self { in_brief: false, ..self }
    }
}

/// Makes a `Body` that reads the clock before the first pass and after the last, on one thread.
pub fn timed(mut pass: impl FnMut() + 'static) -> Body {
    Box::new(move |passes, spent| {
        let from = clock::cpu_ns();
        for _ in 0..passes {
            pass();
        }
        spent[0] += clock::cpu_ns() - from;
    })
}

/// Which experiments and contenders are to be run.
#[derive(Default)]
pub struct Selection {
    pub case: Option<regex::Regex>,
    pub variant: Option<regex::Regex>,
    pub contender: Option<regex::Regex>,
    /// The number of rounds. `None` runs rounds until the time is used up.
    pub runs: Option<usize>,
}

fn matches(pattern: &Option<regex::Regex>, text: &str) -> bool {
    pattern.as_ref().is_none_or(|p| p.is_match(text))
}

impl Selection {
    pub fn has(&self, e: &Experiment, effort: Effort) -> bool {
        let is_short = effort == Effort::Brief && self.case.is_none();
        let of_figure =
            |f: &Figure| matches(&self.case, &f.case) && matches(&self.variant, f.variant);
        (e.in_brief || !is_short) && e.figures.iter().any(of_figure)
    }

    pub fn has_contender(&self, name: &str) -> bool {
        matches(&self.contender, name)
    }
}

//! Experiments, and how they are run: the C++ harness's manner (bench/harness.hpp), in Rust.
//!
//! An experiment is one question asked of several contenders. All of them are prepared in this
//! process; then come rounds, in each of which every contender does a batch of passes, the first
//! of the round being the last of the next. The first round finds how many passes make a batch,
//! and is dropped. Machine noise thus falls on all alike, and the median forgets it.
//!
//! Memory is measured apart: each contender once more, alone, in a process that does nothing
//! else.

pub mod child;
pub mod clock;
pub mod crew;
pub mod memory;
pub mod print;
pub mod random;
pub mod row;
pub mod statistics;
pub mod trial;

/// How much work is done: a full run, a short one, or just enough to see that a case works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    Full,
    Brief,
    Smoke,
}

impl Effort {
    /// So many objects, elements, ...: few of them when just looking.
    pub fn count(self, wanted: usize) -> usize {
        if self == Effort::Smoke {
            wanted.min(128)
        } else {
            wanted
        }
    }
}

/// Does so many passes, and adds to each figure the ns it took of them. Owns the contender: when
/// it goes, every object is dropped and the allocator too.
pub type Body = Box<dyn FnMut(u64, &mut [f64])>;

/// Why a contender cannot do what is asked: the `why` of its row.
pub type Why = &'static str;

/// A contender, and what makes it ready for its experiment.
pub struct Entrant {
    pub name: String,
    pub prepare: Box<dyn Fn(Effort) -> Result<Body, Why>>,
}

/// One figure that a pass gives: it becomes one row for each contender.
#[derive(Clone, Debug)]
pub struct Figure {
    pub case: String,
    /// `faithful`, `corrected`, or nothing where there is but one form.
    pub variant: &'static str,
    pub metric: &'static str,
    pub threads: usize,
}

pub struct Experiment {
    /// The question, in words.
    pub asks: String,
    pub figures: Vec<Figure>,
    /// Operations in a pass: what ns are divided by.
    pub ops: f64,
    pub entrants: Vec<Entrant>,
    /// The least ns of a batch: long against a reading of the clock.
    pub batch_ns: f64,
    /// Part of a short run.
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

    /// Operations in a pass.
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

    /// Of a crew: the figures are wall time and processor time; a batch is long against the
    /// starting of threads.
    pub fn threads(mut self, threads: usize) -> Self {
        self = self.metrics(&["ns_per_op", "cpu_ns_per_op"]);
        self.figures.iter_mut().for_each(|f| f.threads = threads);
        Self { batch_ns: 8e6, ..self }
    }

    /// Where little of a pass is timed.
    pub fn batch_ns(self, batch_ns: f64) -> Self {
        Self { batch_ns, ..self }
    }

    pub fn not_in_brief(self) -> Self {
        Self { in_brief: false, ..self }
    }
}

/// A body of passes that are timed together, on one thread.
pub fn timed(mut pass: impl FnMut() + 'static) -> Body {
    Box::new(move |passes, spent| {
        let from = clock::cpu_ns();
        for _ in 0..passes {
            pass();
        }
        spent[0] += clock::cpu_ns() - from;
    })
}

/// Which experiments and contenders are run.
#[derive(Default)]
pub struct Selection {
    pub case: Option<regex::Regex>,
    pub variant: Option<regex::Regex>,
    pub contender: Option<regex::Regex>,
    /// Rounds of each; none: what the time allows.
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

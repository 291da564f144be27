//! Sample evidence for each rule.

use crate::advise::candidate::{Account, By, Candidate, Forced, InProgram, Kind, Name};
use crate::advise::facts::*;
use crate::advise::measured::Measured;
use mallard_measure::verdict::{Judgement, Verdict};
use mallard_trace::measures::Estimate;
use mallard_trace::regions::{EscapeSite, Quantiles, Region};
use mallard_trace::replay::{End, Plan, Scope, Strategy};
use mallard_trace::residency::{MemorySummary, Moment, Parts};
use mallard_trace::SiteRow;

/// Makes a judgement whose interval extends by one percentage point in both directions.
pub fn judged(saving: f64, verdict: Verdict) -> Judgement {
    Judgement { saving, low: saving - 0.01, high: saving + 0.01, p: 0.001, verdict, why: None }
}

/// Returns a program that spends 40 % of its CPU time on memory, without regions and sites.
pub fn program() -> Measured {
    let facts = Facts {
        program: Program {
            trace: "app.mallard".to_string(),
            name: "app".to_string(),
            path: "/usr/bin/app".to_string(),
            command: Some("./app data".to_string()),
            malloc: "glibc".to_string(),
            cpu_ns: Some(1e9),
            cpu_measured: None,
            run_takes: None,
            wall_ns: 1e9,
            threads: 1,
            threads_at_once: 1,
            cores: 2,
            calls: 2_000_000,
            ..Program::default()
        },
        bound: Bound {
            share: Some(0.4),
            calls: Some(0.3),
            replayed: None,
            faults: Some(0.1),
            teardown: Some(0.02),
            unknown: None,
        },
        memory: Memory { peak_rss: 100 << 20, live_peak: 80 << 20, ..Memory::default() },
        min_gain: 0.02,
        ..Facts::default()
    };
    Measured { recordings: 2, ..Measured::begin(facts) }
}

/// Changes the facts in some measurement results.
pub fn with(mut evidence: Measured, change: impl FnOnce(&mut Facts)) -> Measured {
    change(evidence.facts_mut());
    evidence
}

/// Returns a region that just meets the conditions of each rule for regions.
pub fn region() -> Region {
    Region {
        function: "render_document(std::string const&)".to_string(),
        shown: "render_document".to_string(),
        file: Some("render.cpp".to_string()),
        line: Some(40),
        module: "app".to_string(),
        ends: End::Sure,
        instances: 30,
        inputs: 2,
        threads: 1,
        blocks: 60_000,
        bytes: 6 << 20,
        calls: 120_000,
        call_ns: 2e8,
        peak: Quantiles { p50: 1e5, p90: 2e5, max: 3e5 },
        total: Quantiles { p50: 2e5, p90: 4e5, max: 6e5 },
        utilisation: 0.5,
        variation_bits: 3.2,
        sizes: 12,
        one_size_share: 0.2,
        teardown_ns: 2e7,
        freed_by: vec!["Node::~Node".to_string()],
        ..Region::default()
    }
}

fn owner(function: &str) -> Owner {
    Owner {
        function: format!("{function}(int)"),
        shown: function.to_string(),
        file: Some("cache.cpp".to_string()),
        line: Some(12),
    }
}

/// Returns a site to which a rule for pools applies, because many blocks are allocated and freed.
pub fn site(sizes: (i64, i64)) -> Site {
    let v = Estimate { value: Some(2.0), low: Some(1.9), high: Some(2.1), n: 1000 };
    let u = Estimate { value: Some(0.1), low: Some(0.1), high: Some(0.1), n: 1000 };
    Site {
        node: 7,
        function: "cache::put(int)".to_string(),
        shown: "cache::put".to_string(),
        file: Some("cache.cpp".to_string()),
        line: Some(12),
        module: "app".to_string(),
        owner: owner("cache::put"),
        stack: vec!["cache::put".to_string(), "main".to_string()],
        figures: SiteRow {
            stack: 7,
            allocs: 1000,
            bytes: 100_000,
            frees: 500,
            peak_bytes: 10_000,
            size_min: sizes.0,
            size_max: sizes.1,
            v,
            u,
            call_ns: 100_000_000,
            ..SiteRow::default()
        },
        is_growing: false,
        passes_on: false,
        made: None,
    }
}

/// Returns a candidate that uses a strategy for a region or a site.
pub fn strategy(number: usize, rule: &'static str, scope: Scope, saving: f64) -> Candidate {
    let strategy = Strategy::new(number).unwrap();
    let is_region = matches!(scope, Scope::Region(_));
    let ends = is_region.then_some(End::Sure);
    let rules = vec![mallard_trace::replay::Rule { scope, strategy, ends, first_chunk: 0 }];
    let blocks = 60_000;
    Candidate {
        name: Name::Plan(strategy, String::new()),
        kind: Kind::Strategy,
        rule: Some(rule),
        plan: Some(Plan { name: strategy.to_string(), rules, ..Plan::default() }),
        region: is_region.then_some(0),
        site: (!is_region).then_some(0),
        by: By::Replay,
        cpu: judged(saving, Verdict::Gain),
        expected: Some((saving * 0.9, saving * 1.5)),
        predicted: None,
        margin: 0.0,
        replayed: None,
        allocator: Some(judged(saving * 0.9, Verdict::Gain)),
        pages: Some(judged(saving * 0.1, Verdict::NoDifference)),
        memory: judged(0.0, Verdict::NoDifference),
        memory_by: By::Replay,
        peak_bytes: (8 << 20, 8 << 20),
        memory_at_end: None,
        end_bytes: (0, 0),
        account: Some(Account {
            instances: 30,
            blocks,
            winked_out: if strategy.winks_out() { blocks } else { 0 },
            ..Account::default()
        }),
        in_program: None,
    }
}

/// Returns a candidate that needs no change of code, which is a malloc or a setting.
pub fn whole(name: &str, kind: Kind, cpu: (f64, Verdict), memory: (f64, Verdict)) -> Candidate {
    let before = 100u64 << 20;
    Candidate {
        name: name.into(),
        kind,
        rule: None,
        plan: None,
        region: None,
        site: None,
        by: By::Try,
        cpu: judged(cpu.0, cpu.1),
        expected: Some((cpu.0 - 0.01, cpu.0 + 0.01)),
        predicted: None,
        margin: 0.0,
        replayed: None,
        allocator: None,
        pages: None,
        memory: judged(memory.0, memory.1),
        memory_by: By::Try,
        peak_bytes: (before, (before as f64 * (1.0 - memory.0)) as u64),
        memory_at_end: None,
        end_bytes: (0, 0),
        account: None,
        in_program: None,
    }
}

fn of_region() -> Scope {
    Scope::Region(region().function)
}

/// Returns a program with a function that renders documents, for which wink-out is safe.
pub fn document() -> Measured {
    let wink_out = strategy(4, "wink-out-arena", of_region(), 0.31);
    let others = [
        strategy(3, "arena", of_region(), 0.25),
        strategy(12, "wink-out-multipool-over-arena", of_region(), 0.2),
        strategy(11, "multipool-over-arena", of_region(), 0.18),
    ];
    let candidates = std::iter::once(wink_out).chain(others).collect();
    Measured { candidates, ..with(program(), |facts| facts.regions = vec![region()]) }
}

/// Adds runs with plans applied to the same program. Each plan saved `saving` compared with its
/// control. `calls` is the interval of the CPU time share that inline allocator code would avoid,
/// and `ends` is the share that wink-out skips.
pub fn in_program(evidence: Measured, saving: f64, calls: (f64, f64), ends: f64) -> Measured {
    let applied = |of: Candidate| {
        let ends = if of.account.as_ref().is_some_and(|of| of.winked_out > 0) { ends } else { 0.0 };
        let cpu = judged(saving, Verdict::Gain);
        let file = "/tmp/app.mallard/advice.plan".into();
        let shown = InProgram { as_it_is: cpu.clone(), cpu, calls, ends, file };
        let (low, high) = shown.expected();
        let cpu = Judgement {
            low,
            high,
            ..judged(saving + (calls.0 + calls.1 + ends) / 2.0, Verdict::Gain)
        };
        let (by, expected, in_program) = (By::Plan, Some((low, high)), Some(shown));
        Candidate {
            by,
            cpu,
            expected,
            in_program,
            memory_by: By::Try,
            allocator: None,
            pages: None,
            ..of
        }
    };
    let candidates = evidence.candidates.iter().cloned().map(applied).collect();
    Measured { candidates, ..evidence }
}

/// Returns the program of [`document`], in which one block of each document outlives the document.
pub fn one_escapes() -> Measured {
    let mut evidence = document();
    let region = &mut evidence.facts_mut().regions[0];
    region.escapes = 30;
    let site = EscapeSite { node: 9, function: "title()".to_string(), blocks: 30, bytes: 900 };
    region.escape_sites = vec![site];
    evidence
}

/// Returns the result of AS4 for the function of [`document`], as if the user had asked for it.
pub fn wish(dangling: u64) -> Forced {
    Forced {
        name: "AS4 in render_document".to_string(),
        dangling,
        region: Some(region()),
        sites: Vec::new(),
        from: None,
        played: None,
    }
}

/// Returns a program with a structure whose blocks are often allocated and freed. `sizes` are the
/// smallest and the largest block.
pub fn structure(sizes: (i64, i64)) -> Measured {
    let rule = if sizes.0 == sizes.1 { "object-pool" } else { "multipool" };
    let site = site(sizes);
    let candidates = vec![strategy(7, rule, Scope::Site(site.function.clone()), 0.12)];
    Measured { candidates, ..with(program(), |facts| facts.sites = vec![site]) }
}

/// Returns a program for which another malloc, or a setting, saves CPU time.
pub fn malloc(name: &str, kind: Kind) -> Measured {
    let of = whole(name, kind, (0.08, Verdict::Gain), (0.0, Verdict::NoDifference));
    Measured { candidates: vec![of], ..program() }
}

/// Returns a program whose malloc holds much free memory.
pub fn fragmented() -> Measured {
    let none = Verdict::NoDifference;
    let of = whole("jemalloc", Kind::Malloc, (0.0, none), (0.3, Verdict::Gain));
    let parts = Parts {
        resident: 100 << 20,
        live: 75 << 20,
        fragmented: 20 << 20,
        kept: 5 << 20,
        ..Parts::default()
    };
    let mean = Moment { t_ns: 0, parts };
    let summary = MemorySummary { moments: 10, mean, ..MemorySummary::default() };
    let memory = Memory { summary, ..program().facts.memory };
    Measured { candidates: vec![of], ..with(program(), |facts| facts.memory = memory) }
}

/// Returns a program whose live memory grows until the program ends.
pub fn leak() -> Measured {
    let mut site = site((16, 64));
    site.function = "std::vector<int>::push_back(int)".to_string();
    site.shown = "std::vector<…>::push_back".to_string();
    site.owner = owner("remember");
    site.is_growing = true;
    site.figures.frees = 100;
    site.figures.live_allocs = 900;
    site.figures.live_bytes = 40 << 20;
    site.figures.peak_bytes = 40 << 20;
    with(program(), |facts| facts.sites = vec![site])
}

/// Returns a program that no allocator can improve.
pub fn nothing() -> Measured {
    let none = Verdict::NoDifference;
    let of = whole("mimalloc", Kind::Malloc, (0.004, none), (0.0, none));
    let bound =
        Bound { share: Some(0.012), calls: Some(0.01), faults: Some(0.002), ..Bound::default() };
    Measured { candidates: vec![of], ..with(program(), |facts| facts.bound = bound) }
}

/// Returns a program on a machine with too much noise.
pub fn noisy() -> Measured {
    let open = Verdict::NotMeasurable;
    let of = whole("mimalloc", Kind::Malloc, (0.05, open), (0.0, open));
    Measured { candidates: vec![of], noise: Some(0.05), ..program() }
}

/// Returns all samples, at least one for each rule.
pub fn all() -> Vec<Measured> {
    vec![
        document(),
        in_program(document(), 0.2, (0.01, 0.03), 0.05),
        one_escapes(),
        structure((16, 64)),
        structure((48, 48)),
        malloc("mimalloc", Kind::Malloc),
        malloc("glibc:trim=1GiB", Kind::Variable),
        fragmented(),
        leak(),
        nothing(),
        noisy(),
        program(),
    ]
}

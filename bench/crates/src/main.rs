//! mallard-bench-crates measures the crate mallard-alloc beside its peers, all in one run.

use clap::Parser;
use mallard_bench_crates::harness::row::Provenance;
use mallard_bench_crates::harness::{child, print, trial, Effort, Experiment, Selection};
use regex::Regex;
use std::process::ExitCode;

/// Measures the crate mallard-alloc beside its peers, all in one run; lower is better.
///
/// Times are ns of CPU time. For several threads, ns_per_op is wall time / operations of all
/// threads, and cpu_ns_per_op is CPU time / operations. peak_rss_kib and after_rss_kib come from a
/// separate process for each contender: the peak, and what is left after every object and the
/// allocator were dropped. Handles and keys count. The harness's own arrays, and memory that was in
/// use before the contender started, do not count.
#[derive(Parser)]
#[command(name = "./x bench crates", version, max_term_width = 100)]
struct Arguments {
    /// Take at most 50 seconds: fewer rounds, fewer cases
    #[arg(long)]
    short: bool,
    /// Print one JSON object a line instead of tables
    #[arg(long)]
    json: bool,
    /// Run only cases that match this
    #[arg(long, value_name = "REGEX")]
    case: Option<Regex>,
    /// Run only variants that match this: faithful, corrected
    #[arg(long, value_name = "REGEX")]
    variant: Option<Regex>,
    /// Run only contenders that match this
    #[arg(long, value_name = "REGEX")]
    contender: Option<Regex>,
    /// Number of rounds of each case
    #[arg(long, value_name = "N")]
    runs: Option<usize>,
    /// List the cases, and the question that each one answers
    #[arg(long)]
    list: bool,
    /// Do every case once, quickly, to see whether each case works
    #[arg(long)]
    smoke: bool,
    #[arg(long, hide = true, value_name = "EXPERIMENT:ENTRANT")]
    child: Option<String>,
}

fn main() -> ExitCode {
    let asked = Arguments::parse();
    let effort = match (asked.smoke, asked.short) {
        (true, _) => Effort::Smoke,
        (_, true) => Effort::Brief,
        _ => Effort::Full,
    };
    let all = mallard_bench_crates::suite();
    if let Some(task) = &asked.child {
        return if child::run(&all, task, effort).is_some() { ExitCode::SUCCESS } else { 2.into() };
    }
    let chosen = Selection {
        case: asked.case,
        variant: asked.variant,
        contender: asked.contender,
        runs: asked.runs,
    };
    if asked.list {
        list(&all, &chosen);
        return ExitCode::SUCCESS;
    }
    run(&all, effort, &chosen, asked.json)
}

fn run(all: &[Experiment], effort: Effort, chosen: &Selection, as_json: bool) -> ExitCode {
    let origin = Provenance::of_this_run();
    if !as_json {
        println!("{}\ncommit {}", origin.machine, origin.commit);
    }
    let mut losses = print::Losses::default();
    let mut count = 0;
    trial::run(all, effort, chosen, &origin, |e, rows| {
        count += rows.len();
        if as_json {
            for row in &rows {
                println!("{}", serde_json::to_string(row).expect("a row is text and numbers"));
            }
        } else {
            print::tables(&e.asks, &rows);
            losses.add(&rows);
        }
    });
    losses.print();
    if count == 0 {
        eprintln!(
            "mallard-bench-crates: no case and competitor match\n  nothing was run\n  \
             help: `./x bench crates --list` shows the cases"
        );
        return 2.into();
    }
    ExitCode::SUCCESS
}

fn list(all: &[Experiment], chosen: &Selection) {
    println!("crates: {}", mallard_bench_crates::ASKS);
    for e in all.iter().filter(|e| chosen.has(e, Effort::Full)) {
        for f in &e.figures {
            let variant =
                if f.variant.is_empty() { String::new() } else { format!("  ({})", f.variant) };
            let end = if e.in_brief { "" } else { "  not with --short" };
            println!("  {}  {}{variant}{end}", f.case, f.metric);
        }
        println!("      {}", e.asks);
    }
}

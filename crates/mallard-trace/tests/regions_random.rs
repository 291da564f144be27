//! Tests that the regions of random programs agree with a model, and with what a replay counts for
//! a plan with the region. The programs have several threads, recursion, jumps and blocks that
//! escape.

use crate::support::regions::{Model, Program};
use crate::support::run::{length, seeds};
use mallard_trace::regions::{find, Limits, Region};
use mallard_trace::replay::{compile, End, Options, Plan, RuleResult};
use mallard_trace::Trace;
use std::path::Path;

fn limits() -> Limits {
    Limits { least_share: 0.0, ..Limits::default() }
}

fn median(values: impl Iterator<Item = u64>) -> f64 {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    values[values.len().div_ceil(2) - 1] as f64
}

/// Compares all figures of a region with the figures of the model.
fn check(region: &Region, model: &Model, seed: u64) {
    let what = format!("{} {:?} of seed {seed}", region.function, region.ends);
    let instances = || model.instances.iter();
    assert_eq!(region.instances, model.instances.len() as u64, "instances of {what}");
    assert_eq!(region.unfinished, model.unfinished, "unfinished of {what}");
    assert_eq!(region.blocks, model.blocks(), "blocks of {what}");
    assert_eq!(region.escapes, model.escapes(), "escapes of {what}");
    assert_eq!(region.escape_bytes, model.escape_bytes, "bytes that escape of {what}");
    assert_eq!(region.foreign_escapes, model.foreign_escapes, "foreign escapes of {what}");
    assert_eq!(region.foreign_frees, model.foreign_frees, "foreign frees of {what}");
    assert_eq!(region.inputs, model.inputs(), "inputs of {what}");
    assert_eq!(region.bytes, instances().map(|of| of.bytes).sum::<u64>(), "bytes of {what}");
    assert_eq!(region.peak.p50, median(instances().map(|of| of.peak)), "peaks of {what}");
    assert_eq!(region.total.p50, median(instances().map(|of| of.total)), "totals of {what}");
    let in_lanes =
        |of: fn(&mallard_trace::regions::Lane) -> u64| -> u64 { region.lanes.iter().map(of).sum() };
    if region.lanes.len() as u64 == region.instances {
        assert_eq!(in_lanes(|lane| lane.blocks), region.blocks, "lanes of {what}");
        assert_eq!(in_lanes(|lane| lane.escapes), region.escapes, "lanes of {what}");
    }
    let named: u64 = region.escape_sites.iter().map(|site| site.blocks).sum();
    let is_complete = region.escape_sites.len() < 5;
    assert!(named <= region.escapes && (!is_complete || named == region.escapes), "{what}");
}

#[test]
fn regions_of_a_thousand_random_programs_equal_those_of_a_model() {
    let (mut regions_seen, mut with_escapes, mut without, mut marked) = (0, 0, 0, 0);
    for seed in seeds(1000) {
        let folder = tempfile::tempdir().unwrap();
        let mut program = Program::new(seed, 20 + seed as usize % 300);
        let trace = program.trace(folder.path());
        for region in find(&trace, limits()).unwrap().all {
            let model = program.model(&region.function, region.ends);
            check(&region, &model, seed);
            regions_seen += 1;
            with_escapes += usize::from(model.escapes() > 0);
            without += usize::from(model.escapes() == 0);
            marked += usize::from(region.ends == End::Exact);
        }
    }
    let seen = format!(
        "{regions_seen} regions, {with_escapes} with escapes, {without} without, {marked} marked"
    );
    let least = [4000, 1000, 150, 1000].map(|full| length(full) as usize);
    let counts = [regions_seen, with_escapes, without, marked];
    assert!(counts.iter().zip(least).all(|(&count, least)| count > least), "{seen}");
}

/// Returns what the compiler of replays counts for a plan with the region.
fn replayed(trace: &Trace, region: &Region, folder: &Path) -> RuleResult {
    let (function, ends) = (&region.function, region.ends.word());
    let text = format!("[[rule]]\nregion = '{function}'\nstrategy = 'AS3'\nends = '{ends}'\n");
    let plan = Plan::parse(&text, "a plan").unwrap();
    let compiled = compile(trace, &plan, &Options::default(), &folder.join("ops")).unwrap();
    compiled.rules[0].clone()
}

#[test]
fn a_replay_counts_the_same_instances_of_each_region() {
    let mut escapes = 0;
    for seed in seeds(60) {
        let folder = tempfile::tempdir().unwrap();
        let trace = Program::new(seed, 100 + 20 * seed as usize).trace(folder.path());
        for region in &find(&trace, limits()).unwrap().all {
            let result = replayed(&trace, region, folder.path());
            let what = format!("{} {:?} of seed {seed}", region.function, region.ends);
            assert_eq!(region.instances, result.instances, "instances of {what}");
            assert_eq!(region.unfinished, result.unfinished, "unfinished of {what}");
            assert_eq!((region.blocks, region.bytes), (result.blocks, result.bytes), "{what}");
            assert_eq!(region.escapes, result.escapes, "escapes of {what}");
            assert_eq!(region.foreign_escapes, result.foreign_escapes, "foreign of {what}");
            let peak = [result.peaks.median() as f64, result.peaks.max() as f64];
            assert_eq!([region.peak.p50, region.peak.max], peak, "peaks of {what}");
            let total = [result.totals.quantile(0.9) as f64, result.totals.max() as f64];
            assert_eq!([region.total.p90, region.total.max], total, "totals of {what}");
            escapes += region.escapes;
        }
    }
    assert!(escapes > length(5000), "{escapes} blocks escape");
}

/// A plan must be rejected if it winks out a region from which, in the model, blocks escape.
#[test]
fn wink_out_is_rejected_wherever_a_block_escapes() {
    let (mut refused, mut allowed) = (0, 0);
    for seed in 0..60 {
        let folder = tempfile::tempdir().unwrap();
        let mut program = Program::new(seed, 12 + seed as usize);
        let trace = program.trace(folder.path());
        for region in &find(&trace, limits()).unwrap().all {
            let escapes = program.model(&region.function, region.ends).escapes();
            let (function, ends) = (&region.function, region.ends.word());
            let keys = format!("region = '{function}'\nstrategy = 'AS4'\nends = '{ends}'");
            let plan = Plan::parse(&format!("[[rule]]\n{keys}\n"), "a plan").unwrap();
            let to = folder.path().join("ops");
            let compiled = compile(&trace, &plan, &Options::default(), &to);
            assert_eq!(compiled.is_err(), escapes > 0, "{function} {ends} of seed {seed}");
            assert_eq!(region.escapes > 0, escapes > 0, "{function} {ends} of seed {seed}");
            refused += u64::from(escapes > 0);
            allowed += u64::from(escapes == 0);
        }
    }
    assert!(refused > 50 && allowed > 20, "{refused} refused, {allowed} allowed");
}

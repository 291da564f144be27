//! Tests that each rule applies to evidence that is made for it, and does not apply if one
//! condition just fails.

use super::condition::{Condition, Subject};
use super::{rule, sample, About, Rule, RULES};
use crate::advise::candidate::Kind;
use crate::advise::code::Made;
use crate::advise::measured::Measured;
use crate::advise::proposals::plans;
use crate::advise::reason::Gap;
use mallard_measure::verdict::Verdict;
use mallard_trace::regions::Region;
use mallard_trace::replay::{End, Plan, Scope};

/// Returns results in which the first region, site or candidate meets all conditions of a rule.
fn made_for(rule: &Rule) -> Measured {
    match rule.id {
        "multipool" => sample::structure((16, 64)),
        "object-pool" => sample::structure((48, 48)),
        "malloc-switch" => sample::malloc("mimalloc", Kind::Malloc),
        "glibc-variables" => sample::malloc("glibc:trim=1GiB", Kind::Variable),
        "fragmented-after-peak" => sample::fragmented(),
        "leak" => sample::leak(),
        _ => sample::document(),
    }
}

fn subject<'a>(rule: &Rule, evidence: &'a Measured) -> Subject<'a> {
    match rule.about {
        About::Region => Subject::Region(&evidence.facts.regions[0]),
        About::Site => Subject::Site(&evidence.facts.sites[0]),
        About::Malloc | About::Variable => Subject::Candidate(&evidence.candidates[0]),
        About::Program => Subject::Program,
    }
}

fn applies(rule: &Rule, evidence: &Measured) -> bool {
    rule.applies(&evidence.facts, &subject(rule, evidence))
}

/// Changes the evidence so that a condition just fails.
fn fail(condition: Condition, rule: &Rule, evidence: &mut Measured) {
    use Condition::*;
    let min_gain = evidence.facts.min_gain;
    if matches!(condition, WholeRun | ToTheEnd) {
        evidence.facts_mut().validity.push(Gap::Samples(4096));
        return;
    }
    match rule.about {
        About::Region => fail_region(condition, &mut evidence.facts_mut().regions[0]),
        About::Site => {
            let live_peak = evidence.facts.memory.live_peak as f64;
            let site = &mut evidence.facts_mut().sites[0];
            let figures = &mut site.figures;
            let allocs = figures.allocs as f64;
            match condition {
                NoForeignFrees => figures.cross_thread_frees = 1,
                UtilisationBelow(limit) => figures.u.value = Some(limit),
                VariationUpTo(bits) => figures.v.value = Some(bits + 0.001),
                OneSize => figures.size_min -= 1,
                SeveralSizesOrContainer => figures.size_min = figures.size_max,
                NoContainer => site.made = Some(Made::HashMap),
                Blocks(least) => figures.allocs = least - 1,
                FreedFrom(share) => figures.frees = (share * allocs) as i64 - 1,
                NeverFreedFrom(share) => figures.live_allocs = (share * allocs) as i64 - 1,
                Grows => site.is_growing = false,
                LiveFrom(share) => figures.live_bytes = (share * live_peak) as i64 - 1,
                _ => panic!("{condition:?} is not about a site"),
            }
        }
        _ => {
            let of = &mut evidence.candidates[0];
            match condition {
                GainsTime => of.cpu.saving = min_gain - 1e-6,
                MemoryStays => of.peak_bytes.1 = of.peak_bytes.0 * 3 / 2 + (16 << 20) + 1,
                GainsMemory => of.memory.saving = 0.099,
                TimeStays => of.cpu = sample::judged(-0.021, Verdict::Loss),
                HeldFrom(_) => evidence.facts_mut().memory.summary.mean.parts.kept -= 1,
                _ => panic!("{condition:?} is not about a candidate"),
            }
        }
    }
}

fn fail_region(condition: Condition, of: &mut Region) {
    use Condition::*;
    match condition {
        NoForeignFrees => of.foreign_frees = 1,
        NoEscapes => of.escapes = 1,
        EscapesUpTo(share) => of.escapes = (share * of.blocks as f64) as u64 + 1,
        Instances(least) => of.instances = least - 1,
        Inputs(least) => of.inputs = least - 1,
        UtilisationFrom(least) => of.utilisation = least - 0.001,
        UtilisationBelow(limit) => of.utilisation = limit,
        _ => panic!("{condition:?} is not about a region"),
    }
}

#[test]
fn each_rule_applies_to_evidence_made_for_it() {
    for rule in &RULES {
        assert!(applies(rule, &made_for(rule)), "{}", rule.id);
    }
}

#[test]
fn no_rule_applies_if_one_condition_is_narrowly_missed() {
    for rule in &RULES {
        for &condition in rule.when {
            let mut evidence = made_for(rule);
            fail(condition, rule, &mut evidence);
            assert!(!applies(rule, &evidence), "{}: {condition:?}", rule.id);
        }
    }
}

#[test]
fn a_block_that_outlives_a_variant_of_the_region_rules_out_a_wink_out() {
    let mut evidence = sample::document();
    let twin = Region { escapes: 1, ends: End::Drained, ..sample::region() };
    evidence.facts_mut().regions.push(twin);
    for rule in RULES.iter().filter(|rule| rule.winks_out()) {
        assert!(!applies(rule, &evidence), "{}", rule.id);
    }
}

#[test]
fn a_block_that_escapes_a_marked_region_rules_out_a_wink_out_in_that_function() {
    let mut evidence = sample::document();
    let winks_out = || RULES.iter().filter(|rule| rule.winks_out());
    let mark = || "render_document".to_string(); // as __func__ gives it
    let marked = Region { function: mark(), shown: mark(), ends: End::Exact, ..sample::region() };
    evidence.facts_mut().regions.push(marked);
    let forms = [
        "render_document",
        "bool html::render_document",
        "std::vector<a::b> html::render_document<…>",
        "html::render_document[abi:cxx11]",
        "app::render_document::<…>",
        "render_document.constprop.0",
    ];
    for shown in forms {
        evidence.facts_mut().regions[0].shown = shown.to_string();
        evidence.facts_mut().regions[1].escapes = 0;
        assert!(winks_out().any(|rule| applies(rule, &evidence)), "{shown}");
        evidence.facts_mut().regions[1].escapes = 1;
        assert!(!winks_out().any(|rule| applies(rule, &evidence)), "{shown}");
    }
    for shown in ["render_documents", "html_render_document", "render_document::clear"] {
        evidence.facts_mut().regions[0].shown = shown.to_string();
        assert!(winks_out().any(|rule| applies(rule, &evidence)), "{shown}");
    }
    // Marks with other scopes or with several words do not mean the function.
    evidence.facts_mut().regions[0].shown = "xml::render_document".to_string();
    for mark in ["html::render_document", "render_document 1", "the render_document"] {
        evidence.facts_mut().regions[1].function = mark.to_string();
        assert!(winks_out().any(|rule| applies(rule, &evidence)), "{mark}");
    }
}

#[test]
fn an_unfinished_region_instance_rules_out_a_wink_out() {
    let mut evidence = sample::document();
    evidence.facts_mut().regions[0].unfinished = 1;
    assert!(!applies(rule("wink-out-arena").unwrap(), &evidence));
}

#[test]
fn a_wink_out_requires_30_region_instances_2_inputs_and_no_escape() {
    let wink_outs: Vec<&Rule> = RULES.iter().filter(|rule| rule.winks_out()).collect();
    assert!(!wink_outs.is_empty());
    for rule in wink_outs {
        let needs = [
            Condition::NoEscapes,
            Condition::NoForeignFrees,
            Condition::Instances(30),
            Condition::Inputs(2),
        ];
        for need in needs {
            assert!(rule.when.contains(&need), "{} does not need {need:?}", rule.id);
        }
    }
}

#[test]
fn rules_have_distinct_names_and_complete_sentences() {
    for (at, of) in RULES.iter().enumerate() {
        assert!(RULES[..at].iter().all(|other| other.id != of.id));
        assert!(of.why.ends_with('.') && !of.title.ends_with('.'), "{}", of.id);
        assert_eq!(rule(of.id).unwrap().title, of.title);
        assert_eq!(of.strategy > 0, of.strategy().is_some());
    }
    assert!(rule("none").is_none());
}

#[test]
fn each_rule_that_applies_to_a_region_proposes_a_plan_that_selects_it() {
    let evidence = sample::document();
    let all = plans(&evidence.facts);
    let names: Vec<&str> = all.iter().map(|proposal| proposal.rule).collect();
    let expected =
        ["wink-out-arena", "arena", "wink-out-multipool-over-arena", "multipool-over-arena"];
    assert_eq!(names, expected);
    for proposal in &all {
        assert_eq!(proposal.region, Some(0));
        let scope = Scope::Region(evidence.facts.regions[0].function.clone());
        assert_eq!(proposal.plan.rules[0].scope, scope);
        let text = crate::advise::card::toml(&proposal.plan);
        let read = Plan::parse(&text, &proposal.plan.name).unwrap();
        assert_eq!(read, proposal.plan);
    }
}

#[test]
fn a_function_has_one_plan_per_rule_however_its_instances_end() {
    let mut evidence = sample::document();
    let twin = Region { instances: 40, ends: End::Drained, ..sample::region() };
    evidence.facts_mut().regions.push(twin);
    let all = plans(&evidence.facts);
    assert_eq!(all.len(), 4);
    assert!(all.iter().all(|proposal| proposal.region == Some(1)));
}

#[test]
fn sites_of_one_data_structure_are_replayed_separately_and_together() {
    let mut evidence = sample::structure((16, 64));
    assert_eq!(plans(&evidence.facts).len(), 1);
    let mut node = sample::site((48, 48));
    node.function = "node::make()".to_string();
    evidence.facts_mut().sites.push(node);
    let all = plans(&evidence.facts);
    let rules: Vec<&str> = all.iter().map(|proposal| proposal.rule).collect();
    assert_eq!(rules, ["multipool", "object-pool", "multipool"]);
    assert_eq!(all[2].plan.rules.len(), 2);
}

#[test]
fn no_pool_is_proposed_for_an_unnamed_function_in_a_library() {
    let mut evidence = sample::structure((16, 64));
    evidence.facts_mut().sites[0].function = "libx.so.1+0x12".to_string();
    assert_eq!(plans(&evidence.facts).len(), 1);
    evidence.facts_mut().sites[0].module = "/usr/lib/libx.so.1".to_string();
    assert!(plans(&evidence.facts).is_empty());
}

#[test]
fn no_fixed_size_pool_is_proposed_for_a_function_that_allocates_other_sizes_elsewhere() {
    let mut evidence = sample::structure((48, 48));
    evidence.facts_mut().sites.push(sample::site((64, 64)));
    let rules: Vec<&str> = plans(&evidence.facts).iter().map(|proposal| proposal.rule).collect();
    assert_eq!(rules, ["multipool"]);
}

#[test]
fn no_pool_is_proposed_for_an_allocation_wrapper() {
    let mut evidence = sample::structure((48, 48));
    evidence.facts_mut().sites[0].passes_on = true;
    assert!(plans(&evidence.facts).is_empty());
}

#[test]
fn nothing_is_proposed_for_a_program_without_regions_and_sites() {
    assert!(plans(&sample::program().facts).is_empty());
}

#[test]
fn the_nodes_of_a_container_get_a_multipool_and_no_object_pool() {
    let mut evidence = sample::structure((16, 16));
    let rules = |evidence: &Measured| plans(&evidence.facts)[0].rule;
    for (made, expected) in [(None, "object-pool"), (Some(Made::Object), "object-pool")] {
        evidence.facts_mut().sites[0].made = made;
        assert_eq!(rules(&evidence), expected, "{made:?}");
    }
    for made in [Made::HashMap, Made::Map, Made::Vector, Made::Text] {
        evidence.facts_mut().sites[0].made = Some(made);
        assert_eq!(rules(&evidence), "multipool", "{made:?}");
    }
    evidence.facts_mut().sites[0].made = None;
    evidence.facts_mut().sites[0].function = "std::some_container<int>::add(int)".to_string();
    assert_eq!(rules(&evidence), "multipool");
}

//! Tests of the words, the keys and the code of cards.

use super::first;
use crate::advise::candidate::dropped;
use crate::advise::candidate::{By, Candidate, Kind};
use crate::advise::card::advice::others_of_program;
use crate::advise::card::{cards, text, verdict};
use crate::advise::code::Made;
use crate::advise::facts::Owner;
use crate::advise::measured::Measured;
use crate::advise::reason::Reason;
use crate::advise::rules::{sample, Action};
use mallard_measure::output::width::fitted;
use mallard_measure::verdict::Verdict;
use mallard_trace::regions::{EscapeSite, Region};
use mallard_trace::replay::End;
use serde_json::Value;

#[test]
fn the_probable_saving_is_printed_before_the_partial_saving_in_a_replay() {
    let saves = |of: (f64, f64), replay: f64| {
        let mut evidence = sample::document();
        evidence.candidates.truncate(1);
        evidence.candidates[0].expected = Some(of);
        evidence.candidates[0].cpu = sample::judged(replay, Verdict::Gain);
        let text = first(&evidence).text();
        text.lines().find(|line| line.starts_with("  saves")).unwrap()[12..].to_string()
    };
    let line = saves((0.15, 0.64), 0.21);
    let expected =
        "probably 15 to 64 % of the program's CPU time (the replay alone: 21 %, 20 to 22 %)";
    assert_eq!(line, expected);
    let line = saves((0.08, 1.0), 0.27);
    assert!(line.starts_with("probably at least 8.0 % of the program's CPU time (the"), "{line}");
}

#[test]
fn a_saving_above_the_bound_is_explained() {
    let beware = |by: By, bound: f64| {
        let mut evidence = sample::malloc("glibc:tcache=1000", Kind::Variable);
        evidence.candidates[0].by = by;
        evidence.candidates[0].cpu = sample::judged(0.38, Verdict::Gain);
        evidence.facts_mut().bound.share = Some(bound);
        first(&evidence).text().contains("saves more than its recorded calls")
    };
    assert!(beware(By::Try, 0.08));
    assert!(!beware(By::Try, 0.5) && !beware(By::Replay, 0.08));
}

#[test]
fn a_later_recommendation_contains_everything_needed_to_act_on_it() {
    let mut evidence = sample::malloc("mimalloc", Kind::Malloc);
    evidence.candidates[0].cpu = sample::judged(0.5, Verdict::Gain);
    let document = sample::document();
    evidence.facts_mut().regions = document.facts.regions.clone();
    evidence.candidates.extend(document.candidates);
    let all = cards(&evidence);
    assert_eq!((all[0].rule, all[1].rule), ("malloc-switch", "wink-out-arena"));
    let shown = fitted(&text(&all), 100);
    let later = shown.split("Also, 2: ").nth(1).unwrap();
    let needed =
        ["  where     render_document (render.cpp:40)", "  code      C++ with Mallard, an example"];
    let others = ["  check     mallard verify", "  because   An arena", "  beware ", "  saves "];
    for line in needed.iter().chain(&others) {
        assert!(later.contains(line), "{line}: {later}");
    }
}

#[test]
fn a_recommendation_fits_on_a_screen_and_ends_with_a_summary_sentence() {
    for evidence in sample::all() {
        let cards = cards(&evidence);
        for card in &cards {
            let wide = fitted(&card.text(), 98);
            assert!(wide.lines().count() <= 60, "{wide}");
            let shown = fitted(&card.text(), 80);
            let commands = [&card.how, &card.check];
            for line in shown.lines() {
                let is_command =
                    commands.iter().any(|c| c.as_ref().is_some_and(|c| line.ends_with(c)));
                let is_setting = line.trim_start().starts_with("GLIBC_TUNABLES=");
                assert!(is_command || is_setting || line.chars().count() <= 80, "{line}");
            }
            assert!(card.sentence.ends_with('.') && card.sentence.contains("app"), "{shown}");
        }
        assert!(text(&cards).starts_with(&cards[0].title));
    }
}

#[test]
fn a_recommendation_has_the_documented_json_keys() {
    let value = serde_json::to_value(first(&sample::document())).unwrap();
    let keys = [
        "rule",
        "action",
        "strategy",
        "strategy_words",
        "allocator",
        "region",
        "site",
        "saving",
        "memory",
        "title",
        "sentence",
        "evidence",
        "hazards",
        "why_not",
        "destructors_skipped",
        "freed_by",
        "how",
        "code",
        "check",
        "plan",
    ];
    for key in keys {
        assert!(value.get(key).is_some(), "{key}");
    }
    assert_eq!(value["action"], "convert");
    assert_eq!(value["strategy"], "AS4");
    let words = "arena, allocator as a type parameter, memory dropped as a whole";
    assert_eq!(value["strategy_words"], words);
    assert_eq!(value["saving"]["measured_by"], "replay");
    assert_eq!(value["saving"]["locality"], Value::Null);
    assert_eq!(value["saving"]["total"]["verdict"], "gain");
    assert_eq!(value["destructors_skipped"], 60_000);
    assert_eq!(value["freed_by"][0], "Node::~Node");
    for language in ["cpp_pmr", "cpp_mallard", "c", "rust"] {
        assert!(value["code"][language].is_string(), "{language}");
    }
    let check = value["check"].as_str().unwrap();
    assert_eq!(check, "mallard verify --before './app.before data' --after './app data'");
}

#[test]
fn a_recommendation_to_change_nothing_has_a_bound_and_no_saving() {
    for (mut evidence, share) in [(sample::nothing(), 0.012), (sample::noisy(), 0.4)] {
        let card = serde_json::to_value(first(&evidence)).unwrap();
        assert_eq!(
            (&card["saving"]["total"], &card["saving"]["bound"]),
            (&Value::Null, &share.into())
        );
        evidence.facts_mut().bound.share = None;
        let card = serde_json::to_value(first(&evidence)).unwrap();
        assert_eq!(card["saving"]["bound"], Value::Null);
    }
    let card = serde_json::to_value(first(&sample::document())).unwrap();
    assert_eq!(card["saving"]["bound"], Value::Null);
}

#[test]
fn every_text_about_the_bound_says_that_it_excludes_locality() {
    let mut evidence = sample::nothing();
    assert!(first(&evidence)
        .sentence
        .contains("takes at most 1.2 % of the CPU time, not counting locality"));
    evidence.facts_mut().bound.share = Some(0.3);
    assert!(first(&evidence).sentence.ends_with("takes at most 30 %, not counting locality."));
}

#[test]
fn recorded_cpu_shares_of_calls_are_upper_limits_and_a_replay_adds_its_own() {
    let mut evidence = sample::nothing();
    evidence.replayed = Some(0.004);
    let said = first(&evidence).evidence.join("\n");
    let limit = "malloc and free take at most about 1.0 % of the CPU time, and page faults 0.2 %\n";
    let replayed = "a replay of all calls, page faults included, takes 0.4 % of the CPU time\n";
    assert!(said.contains(&format!("{limit}{replayed}")), "{said}");
    assert!(said.contains("so no allocator can save more than 1.2 %"), "{said}");
    evidence.replayed = Some(0.014);
    let said = first(&evidence).evidence.join("\n");
    assert!(said.contains("so no allocator can save more than 1.4 %"), "{said}");
    evidence.replayed = None;
    assert!(!first(&evidence).evidence.join("\n").contains("a replay"));
}

#[test]
fn a_recommended_malloc_or_setting_comes_with_the_command_that_uses_it() {
    let card = first(&sample::malloc("mimalloc", Kind::Malloc));
    assert_eq!(card.how.unwrap(), "mallard run --allocator mimalloc -- ./app data");
    let card = first(&sample::malloc("glibc:arenas=1", Kind::Variable));
    assert_eq!(card.how.unwrap(), "GLIBC_TUNABLES=glibc.malloc.arena_max=1 ./app data");
    assert_eq!(card.title, "Set GLIBC_TUNABLES=glibc.malloc.arena_max=1");
}

#[test]
fn the_overall_verdict_is_that_of_the_first_recommendation() {
    assert_eq!(verdict(&cards(&sample::document())), "change");
    assert_eq!(verdict(&cards(&sample::nothing())), "leave");
    assert_eq!(verdict(&cards(&sample::noisy())), "undecided");
    assert_eq!(verdict(&[]), "undecided");
}

#[test]
fn a_recommendation_to_keep_malloc_explains_why_no_function_gets_a_local_allocator() {
    let mut evidence = sample::malloc("mimalloc", Kind::Malloc);
    evidence.facts_mut().regions = vec![Region { foreign_frees: 500, ..sample::region() }];
    let expected = "no separate allocator for render_document: another thread frees 500 blocks";
    assert!(first(&evidence).why_not.contains(&expected.to_string()));
    evidence.candidates.clear();
    let card = first(&evidence);
    assert_eq!(card.action, Action::Leave);
    assert!(card.why_not.contains(&expected.to_string()));
    // A second region of the function, whose instances end in another way, makes a rule apply.
    evidence.facts_mut().regions.push(Region { ends: End::Drained, ..sample::region() });
    assert!(!first(&evidence).why_not.contains(&expected.to_string()));
    evidence.facts_mut().regions[0] = Region { instances: 1, inputs: 1, ..sample::region() };
    evidence.facts_mut().regions[1].utilisation = 1.0; // for an arena, and not for a multipool in an arena
    let others = first(&evidence).why_not;
    assert!(!others.iter().any(|why| why.contains("no separate allocator")), "{others:?}");
}

#[test]
fn a_recommendation_explains_why_another_helpful_malloc_does_not_come_first() {
    let mut evidence = sample::malloc("rpmalloc", Kind::Malloc);
    let mut other = evidence.candidates[0].clone();
    other.name = "jemalloc".into();
    let mut why = |saving, peak: u64, by| {
        let cpu = sample::judged(saving, Verdict::Gain);
        let (before, memory_by) = (other.peak_bytes.0, By::Try);
        let of =
            Candidate { cpu, peak_bytes: (before, peak << 20), by, memory_by, ..other.clone() };
        evidence.candidates.truncate(1);
        evidence.candidates.push(of);
        let card = first(&evidence);
        assert_eq!(card.allocator.as_deref(), Some("rpmalloc"));
        card.why_not.into_iter().find(|line| line.starts_with("jemalloc saves")).unwrap()
    };
    let line = why(0.08, 100, By::Try);
    assert!(line.ends_with("of CPU time, no more than this change"), "{line}");
    let line = why(0.05, 100, By::Try);
    assert!(line.ends_with("of CPU time, less than this change"), "{line}");
    for saving in [0.08, 0.09] {
        let line = why(saving, 130, By::Try);
        assert!(line.ends_with("of CPU time, but needs 30 MiB more memory"), "{line}");
    }
}

#[test]
fn a_recommendation_reports_that_another_malloc_needs_more_time() {
    let mut evidence = sample::malloc("rpmalloc", Kind::Malloc);
    let mut other = evidence.candidates[0].clone();
    other.name = "jemalloc".into();
    other.cpu = sample::judged(-0.18, Verdict::Loss);
    other.peak_bytes = (1 << 20, 100 << 20);
    let begin = "jemalloc takes 18 % (17 to 19 %) more CPU time";
    evidence.candidates.push(other);
    let lines = first(&evidence).why_not;
    let expected = format!("{begin}, and needs 100 MiB instead of 1.0 MiB");
    assert!(lines.contains(&expected), "{lines:?}");
    evidence.candidates.remove(0);
    let lines: Vec<String> = others_of_program(&evidence)
        .iter()
        .map(|of| crate::advise::card::answer::other(&evidence, of))
        .collect();
    assert!(lines[0].starts_with(&format!("{begin}: loss")), "{lines:?}");
}

#[test]
fn all_measured_changes_are_counted() {
    let mut evidence = sample::nothing();
    evidence.facts_mut().bound.share = Some(0.3);
    let card = first(&evidence);
    assert!(card.sentence.contains("the only change that was measured saves 0.4 %"), "{card:?}");
    let mut slower = evidence.clone();
    slower.candidates[0].cpu = sample::judged(-0.01, Verdict::NoDifference);
    let sentence = first(&slower).sentence;
    assert!(sentence.contains("the only change that was measured saves no CPU time"), "{sentence}");
    slower.candidates.push(slower.candidates[0].clone());
    let sentence = first(&slower).sentence;
    assert!(sentence.contains("none of the 2 changes that were measured saves"), "{sentence}");
    let of = evidence.candidates[0].clone();
    evidence.candidates.extend(std::iter::repeat_n(of, 7));
    let card = first(&evidence);
    assert!(card.sentence.contains("the best of 8 changes that were measured saves"), "{card:?}");
    assert_eq!(card.why_not.iter().filter(|line| line.starts_with("mimalloc")).count(), 3);
    let others = "5 other changes were measured, and save no more".to_string();
    assert!(card.why_not.contains(&others), "{card:?}");
}

#[test]
fn single_replays_before_an_interruption_are_shown_but_decide_nothing() {
    let mut evidence = Measured { interrupted: true, ..sample::program() };
    let plays = [("AS3 in parse", 0.57), ("mimalloc", 0.4), ("jemalloc", 0.3), ("x", 0.1)];
    let played = |saved| Reason::Interrupted(Some(saved));
    let dropped =
        |(name, saved): (&str, f64)| dropped(name.into(), Kind::Malloc, None, played(saved));
    evidence.dropped = plays.map(dropped).to_vec();
    let card = first(&evidence);
    assert_eq!(card.action, Action::Undecided);
    let expected =
        "an arena (AS3) in parse saved 57 % of CPU time in a single replay, and then the \
                    command was interrupted";
    assert_eq!(card.why_not[0], expected);
    assert!(
        card.why_not[3].starts_with("1 other change could not win, or the command"),
        "{card:?}"
    );
}

#[test]
fn functions_with_the_same_short_name_are_listed_once() {
    let mut evidence = sample::one_escapes();
    evidence.candidates.clear();
    let mut other = evidence.facts.regions[0].clone();
    other.function = "render_document(int)".to_string();
    evidence.facts_mut().regions.push(other);
    for (n, region) in evidence.facts_mut().regions.iter_mut().enumerate() {
        region.escapes = 50_000 + n as u64;
        let site = |of: &str| EscapeSite { node: 1, function: of.to_string(), blocks: 9, bytes: 9 };
        region.escape_sites = vec![site("make<A>(int)"), site("make<B>(int)"), site("title(int)")];
    }
    let lines = first(&evidence).why_not;
    let places: Vec<_> =
        lines.iter().filter(|line| line.starts_with("no separate allocator")).collect();
    assert_eq!(places.len(), 1, "{lines:?}");
    assert!(places[0].ends_with("allocated by make<…> and title"), "{lines:?}");
}

#[test]
fn a_recommendation_for_several_allocation_sites_lists_them() {
    let mut evidence = sample::structure((16, 64));
    let mut node = sample::site((48, 48));
    node.function = "node::make()".to_string();
    evidence.facts_mut().sites.push(node.clone());
    // Another instance of a template has the same short name.
    node.function = "node::make(int)".to_string();
    evidence.facts_mut().sites.push(node);
    let plan = crate::advise::proposals::plans(&evidence.facts).pop().unwrap().plan;
    evidence.candidates[0].plan = Some(plan);
    let card = first(&evidence);
    assert!(
        card.evidence.iter().any(|line| line.contains("cache::put, node::make: one")),
        "{card:?}"
    );
}

#[test]
fn code_for_blocks_of_a_library_in_c_passes_an_allocator_to_that_library() {
    let mut evidence = sample::document();
    let mut site = sample::site((16, 64));
    site.function = "node_new".to_string();
    site.module = "/usr/lib/libmarkup.so.3".to_string();
    let stack = ["node_new", "parser_finish", "render_document", "main"];
    site.stack = stack.map(str::to_string).to_vec();
    evidence.facts_mut().sites.push(site);
    let shown = |evidence: &Measured| first(evidence).text();
    let (library, cpp) = ("C library that takes an allocator", "C++ with Mallard");
    assert!(shown(&evidence).contains(library) && !shown(&evidence).contains(cpp));
    let mut of = |function: &str, module: &str| {
        let site = &mut evidence.facts_mut().sites[0];
        (site.function, site.module) = (function.to_string(), module.to_string());
        site.stack[0] = function.to_string();
        shown(&evidence)
    };
    // A function of the program, one of the system's C library, and one of a library in C++.
    for (function, module) in [
        ("node_new", "/usr/bin/app"),
        ("strdup", "/usr/lib/libc.so.6"),
        ("markup::node_new", "/usr/lib/libmarkup.so.3"),
    ] {
        assert!(of(function, module).contains(cpp), "{function} {module}");
    }
    assert!(of("node_new", "/usr/lib/libmarkup.so.3").contains(library));
}

#[test]
fn a_recommendation_for_a_c_function_contains_no_cpp_code_or_terms() {
    for evidence in [sample::document(), sample::structure((16, 64)), sample::structure((48, 48))] {
        for of in evidence.candidates.clone() {
            let card = first(&in_c(Measured { candidates: vec![of], ..evidence.clone() }));
            assert_eq!(serde_json::to_value(&card).unwrap()["language"], "c");
            let shown = card.text();
            assert!(
                shown.contains("  code      C with Mallard, an example of the change, to adapt")
            );
            for word in ["estruct", "container", "vector", "::", "type parameter", "C++"] {
                assert!(!shown.contains(word), "{word}: {shown}");
            }
        }
    }
}

/// Returns the same program, written in C and without debug information.
fn in_c(mut evidence: Measured) -> Measured {
    for of in &mut evidence.facts_mut().regions {
        (of.function, of.file, of.line) = (of.shown.clone(), None, None);
        of.freed_by = vec!["node_free".to_string()];
    }
    for of in &mut evidence.facts_mut().sites {
        (of.function, of.shown) = ("cache_put".to_string(), "cache_put".to_string());
        of.owner =
            Owner { function: of.function.clone(), shown: of.shown.clone(), ..Owner::default() };
        of.stack = vec!["cache_put".to_string(), "main".to_string()];
    }
    evidence
}

#[test]
fn a_multipool_for_container_nodes_must_outlive_the_calls_of_the_function() {
    let mut evidence = sample::structure((16, 16));
    evidence.facts_mut().sites[0].made = Some(Made::HashMap);
    evidence.candidates = sample::structure((16, 64)).candidates;
    let card = first(&evidence);
    let title = "Give the nodes of the container in cache::put a multipool that outlives its calls";
    assert_eq!(card.title, title);
    assert!(card.strategy_words.unwrap().contains("one for the program"));
    assert!(card.hazards[0].contains("lives as long as the program"), "{:?}", card.hazards);
    let code = card.code.cpp_mallard.unwrap();
    assert!(
        code.contains("unordered_map") && code.contains("    static memory_type all;"),
        "{code}"
    );
}

#[test]
fn the_proposed_code_uses_the_container_types_seen_in_the_call_stacks() {
    let mut evidence = sample::document();
    let code = |evidence: &Measured| first(evidence).code;
    let mut add = |made, allocs| {
        let mut site = sample::site((16, 64));
        site.stack.insert(1, "render_document".to_string());
        site.made = Some(made);
        site.figures.allocs = allocs;
        evidence.facts_mut().sites.push(site);
        code(&evidence)
    };
    assert!(add(Made::Text, 100).cpp_mallard.unwrap().contains("std::vector<text"));
    assert!(add(Made::HashMap, 10).cpp_mallard.unwrap().contains("std::unordered_map<int, text"));
    assert!(add(Made::Object, 20).cpp_mallard.unwrap().contains("memory.make<node>()"));
    evidence.facts_mut().regions[0].file = Some("render.rs".to_string());
    assert!(code(&evidence).rust.unwrap().contains("use hashbrown::HashMap;"));
}

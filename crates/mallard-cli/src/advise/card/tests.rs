//! Which cards evidence gives, and what is on them.

use super::{cards, text, verdict, Card};
use crate::advise::evidence::{Account, Evidence, Kind};
use crate::advise::rules::{rule, sample, Action};
use crate::verdict::Verdict;
use mallard_trace::regions::Region;
use mallard_trace::replay::{End, Scope, Strategy};
use serde_json::Value;

fn first(evidence: &Evidence) -> Card {
    cards(evidence).swap_remove(0)
}

#[test]
fn each_sample_gives_the_card_of_its_rule() {
    let expected = [
        (sample::document(), "wink-out-arena", Action::Convert),
        (sample::one_escapes(), "multipool-over-arena", Action::Convert),
        (sample::structure((16, 64)), "multipool", Action::Pool),
        (sample::structure((48, 48)), "object-pool", Action::Pool),
        (sample::malloc("mimalloc", Kind::Malloc), "malloc-switch", Action::Switch),
        (sample::malloc("glibc:trim=1GiB", Kind::Variable), "glibc-variables", Action::Set),
        (sample::fragmented(), "fragmented-after-peak", Action::Switch),
        (sample::leak(), "leak", Action::Fix),
        (sample::nothing(), "leave-it", Action::Leave),
        (sample::noisy(), "undecided", Action::Undecided),
        (sample::program(), "leave-it", Action::Leave),
        (Evidence::default(), "leave-it", Action::Leave),
    ];
    for (evidence, id, action) in expected {
        let card = first(&evidence);
        assert_eq!((card.rule, card.action), (id, action));
    }
}

#[test]
fn what_saves_most_comes_first_and_each_function_has_one_card() {
    let mut evidence = sample::document();
    evidence.candidates.extend(sample::malloc("mimalloc", Kind::Malloc).candidates);
    let rules: Vec<&str> = cards(&evidence).iter().map(|card| card.rule).collect();
    assert_eq!(rules, ["wink-out-arena", "malloc-switch"]);
    evidence.candidates.last_mut().unwrap().cpu = sample::judged(0.5, Verdict::Gain);
    assert_eq!(first(&evidence).rule, "malloc-switch");
}

#[test]
fn a_leak_comes_before_a_smaller_saving_of_time() {
    let mut evidence = sample::leak();
    evidence.candidates.extend(sample::malloc("mimalloc", Kind::Malloc).candidates);
    let rules: Vec<&str> = cards(&evidence).iter().map(|card| card.rule).collect();
    assert_eq!(rules, ["leak", "malloc-switch"]);
}

#[test]
fn a_leak_is_named_by_the_function_of_the_program() {
    let card = first(&sample::leak());
    let site = card.site.as_ref().unwrap();
    assert_eq!((site.function.as_str(), site.shown.as_str()), ("remember(int)", "remember"));
    assert!(card.title.contains("remember") && card.sentence.contains("remember"), "{card:?}");
}

#[test]
fn of_equal_savings_the_one_with_destructors_comes_first_unless_they_take_time() {
    let mut evidence = sample::document();
    evidence.candidates[1].cpu = sample::judged(0.305, Verdict::Gain);
    evidence.regions[0].teardown_ns = 1e6;
    assert_eq!(first(&evidence).rule, "arena");
    evidence.regions[0].teardown_ns = 2e7;
    assert_eq!(first(&evidence).rule, "wink-out-arena");
}

#[test]
fn of_equal_savings_the_one_with_less_work_comes_first() {
    let mut evidence = sample::malloc("mimalloc", Kind::Malloc);
    let setting = sample::malloc("glibc:trim=1GiB", Kind::Variable).candidates;
    evidence.candidates.extend(setting);
    evidence.candidates[1].cpu.saving = 0.06;
    assert_eq!(first(&evidence).rule, "glibc-variables");
    evidence.candidates[1].cpu.saving = 0.02;
    assert_eq!(first(&evidence).rule, "malloc-switch");
}

#[test]
fn a_strategy_that_needs_much_more_memory_comes_last() {
    let mut evidence = sample::document();
    evidence.candidates[0].peak_bytes.1 = 20 << 20;
    evidence.candidates[1].cpu.saving = 0.3;
    assert_eq!(first(&evidence).rule, "arena");
    let mut alone = sample::document();
    alone.candidates.truncate(1);
    alone.candidates[0].peak_bytes.1 = 20 << 20;
    let card = first(&alone);
    assert_eq!(card.rule, "wink-out-arena");
    assert!(card.hazards[0].contains("much more memory"), "{:?}", card.hazards);
}

#[test]
fn an_allocator_that_several_threads_would_share_is_not_advised() {
    let mut evidence = sample::structure((16, 64));
    evidence.candidates[0].account.as_mut().unwrap().is_shared = true;
    assert_eq!(first(&evidence).action, Action::Leave);
}

#[test]
fn a_block_that_escapes_in_the_exact_account_forbids_a_wink_out() {
    let mut evidence = sample::document();
    evidence.candidates.truncate(1);
    evidence.candidates[0].account.as_mut().unwrap().escapes = 1;
    let card = first(&evidence);
    assert_eq!(card.action, Action::Leave);
    assert!(card.why_not.iter().any(|why| why.contains("used after their end")), "{card:?}");
}

#[test]
fn a_card_says_why_memory_is_not_dropped_at_once() {
    let why = |evidence: &Evidence| first(evidence).why_not.join("\n");
    let escapes = why(&sample::one_escapes());
    let expected = "no wink-out: 30 blocks outlived their call, allocated by title";
    assert!(escapes.contains(expected), "{escapes}");
    let mut few = sample::document();
    few.regions[0].instances = 29;
    assert!(why(&few).contains("no wink-out: 29 calls seen, and 30 are needed"));
    let mut one = sample::document();
    one.regions[0].inputs = 1;
    assert!(why(&one).contains("no wink-out: 1 different input seen, and 2 are needed"));
    let mut cut = sample::document();
    cut.validity = vec!["3 events were lost".to_string()];
    assert!(why(&cut).contains("less than the whole run: 3 events were lost"));
}

#[test]
fn a_program_below_the_bound_is_left_alone_however_noisy_the_machine_is() {
    let mut evidence = sample::nothing();
    evidence.is_noisy = true;
    evidence.undecided = vec!["the budget has ended".to_string()];
    assert_eq!(first(&evidence).action, Action::Leave);
    evidence.bound.share = Some(0.3);
    assert_eq!(first(&evidence).action, Action::Undecided);
}

#[test]
fn a_card_fits_on_a_screen_and_ends_with_a_sentence_that_stands_alone() {
    for evidence in sample::all() {
        let cards = cards(&evidence);
        for card in &cards {
            let shown = card.text();
            assert!(shown.lines().count() <= 60, "{shown}");
            let commands = [&card.how, &card.check];
            for line in shown.lines().filter(|&line| line != card.sentence) {
                let is_command =
                    commands.iter().any(|c| c.as_ref().is_some_and(|c| line.ends_with(c)));
                assert!(is_command || line.chars().count() <= 110, "{line}");
            }
            assert!(card.sentence.ends_with('.') && card.sentence.contains("app"), "{shown}");
            assert!(shown.ends_with(&format!("\n{}\n", card.sentence)), "{shown}");
        }
        assert!(text(&cards).starts_with(&cards[0].title));
    }
}

#[test]
fn a_card_has_the_keys_that_readers_of_json_rely_on() {
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
    let words = "arena, allocator as a type parameter, memory dropped at once";
    assert_eq!(value["strategy_words"], words);
    assert_eq!(value["saving"]["measured_by"], "replay");
    assert_eq!(value["saving"]["locality"], Value::Null);
    assert_eq!(value["saving"]["total"]["verdict"], "gain");
    assert_eq!(value["destructors_skipped"], 60_000);
    for language in ["cpp_pmr", "cpp_mallard", "c", "rust"] {
        assert!(value["code"][language].is_string(), "{language}");
    }
    let check = value["check"].as_str().unwrap();
    assert_eq!(check, "mallard verify --before './app.before data' --after './app data'");
}

#[test]
fn a_malloc_and_a_setting_come_with_the_command_that_uses_them() {
    let card = first(&sample::malloc("mimalloc", Kind::Malloc));
    assert_eq!(card.how.unwrap(), "mallard run --allocator mimalloc -- ./app data");
    let card = first(&sample::malloc("glibc:arenas=1", Kind::Variable));
    assert_eq!(card.how.unwrap(), "GLIBC_TUNABLES=glibc.malloc.arena_max=1 ./app data");
    assert_eq!(card.title, "Set GLIBC_TUNABLES=glibc.malloc.arena_max=1");
}

#[test]
fn the_verdict_is_that_of_the_first_card() {
    assert_eq!(verdict(&cards(&sample::document())), "change");
    assert_eq!(verdict(&cards(&sample::nothing())), "leave");
    assert_eq!(verdict(&cards(&sample::noisy())), "undecided");
    assert_eq!(verdict(&[]), "undecided");
}

#[test]
fn a_card_that_keeps_the_heap_says_why_a_function_has_no_allocator_of_its_own() {
    let mut evidence = sample::malloc("mimalloc", Kind::Malloc);
    evidence.regions = vec![Region { foreign_frees: 500, ..sample::region() }];
    let expected = "no allocator of its own for render_document: another thread frees 500 blocks";
    assert!(first(&evidence).why_not.contains(&expected.to_string()));
    evidence.candidates.clear();
    let card = first(&evidence);
    assert_eq!(card.action, Action::Leave);
    assert!(card.why_not.contains(&expected.to_string()));
    // With another end of its instances, the function has a rule.
    evidence.regions.push(Region { ends: End::Drained, ..sample::region() });
    assert!(!first(&evidence).why_not.contains(&expected.to_string()));
}

#[test]
fn a_plan_for_several_sites_names_them() {
    let mut evidence = sample::structure((16, 64));
    let mut node = sample::site((48, 48));
    node.function = "node::make()".to_string();
    evidence.sites.push(node);
    let plan = crate::advise::rules::plans(&evidence).pop().unwrap().plan;
    evidence.candidates[0].plan = Some(plan);
    let card = first(&evidence);
    assert!(card.evidence.iter().any(|line| line.contains("cache::put, node::make")), "{card:?}");
}

#[test]
fn the_code_is_for_the_library_that_allocates() {
    let mut evidence = sample::document();
    let mut site = sample::site((16, 64));
    let stack = ["cmark_node_new", "cmark_parser_finish", "render_document", "main"];
    site.stack = stack.map(str::to_string).to_vec();
    evidence.sites.push(site);
    let shown = first(&evidence).text();
    assert!(shown.contains("`cmark_mem`") && !shown.contains("C++ with Mallard"), "{shown}");
    evidence.sites[0].stack.remove(0);
    evidence.sites[0].stack.remove(0);
    assert!(first(&evidence).text().contains("C++ with Mallard"));
}

#[test]
fn two_functions_of_which_one_calls_the_other_have_one_card() {
    let mut evidence = sample::document();
    let outer = Region { function: "run".into(), shown: "run".into(), ..sample::region() };
    evidence.regions.push(outer);
    let mut of = sample::strategy(3, "arena", Scope::Region("run".into()), 0.1);
    of.region = Some(1);
    evidence.candidates.push(of);
    assert_eq!(cards(&evidence).len(), 2);
    let mut site = sample::site((16, 64));
    site.stack = ["render_document", "run", "main"].map(str::to_string).to_vec();
    evidence.sites.push(site);
    assert_eq!(cards(&evidence).len(), 1);
}

/// A random region, often near the limits of the conditions.
fn random_region(random: &mut fastrand::Rng) -> Region {
    Region {
        function: format!("f{}()", random.u8(0..3)),
        instances: random.u64(0..60),
        unfinished: random.u64(0..3),
        inputs: random.u64(0..4),
        escapes: random.u64(0..3).saturating_sub(1),
        foreign_frees: random.u64(0..4).saturating_sub(2),
        utilisation: random.f64(),
        ends: if random.bool() { End::Sure } else { End::Drained },
        ..sample::region()
    }
}

fn random_evidence(random: &mut fastrand::Rng) -> Evidence {
    let mut evidence = sample::program();
    evidence.regions = (0..random.usize(0..5)).map(|_| random_region(random)).collect();
    evidence.is_noisy = random.u8(0..4) == 0;
    evidence.bound.share = random.bool().then(|| random.f64());
    let ids = ["wink-out-arena", "arena", "wink-out-multipool-over-arena", "multipool-over-arena"];
    for _ in 0..random.usize(0..8) {
        let id = ids[random.usize(0..ids.len())];
        // Sometimes a rule comes with a plan of another strategy.
        let number = match random.u8(0..5) {
            0 => random.usize(1..15),
            _ => rule(id).unwrap().strategy,
        };
        let scope = Scope::Region("f".to_string());
        let mut of = sample::strategy(number, id, scope, random.f64());
        of.region = Some(random.usize(0..6));
        of.cpu.verdict = [Verdict::Gain, Verdict::Loss, Verdict::NotMeasurable][random.usize(0..3)];
        let escapes = random.u64(0..3).saturating_sub(1);
        of.account = random.bool().then(|| Account { escapes, ..Account::default() });
        evidence.candidates.push(of);
    }
    evidence
}

#[test]
fn random_evidence_never_gives_a_wink_out_with_an_escape_or_too_few_calls_or_inputs() {
    let mut random = fastrand::Rng::with_seed(25);
    let mut wink_outs = 0;
    for _ in 0..20_000 {
        let evidence = random_evidence(&mut random);
        let cards = cards(&evidence);
        assert!(!cards.is_empty());
        for card in cards {
            let strategy: Option<Strategy> = card.strategy.and_then(|name| name.parse().ok());
            if !strategy.is_some_and(Strategy::winks_out) {
                continue;
            }
            wink_outs += 1;
            let region = card.region.unwrap();
            let same = |of: &&Region| of.function == region.function;
            assert!(evidence.regions.iter().filter(same).all(|of| of.escapes == 0));
            assert!(region.instances >= 30 && region.inputs >= 2 && region.foreign_frees == 0);
        }
    }
    assert!(wink_outs > 100, "{wink_outs} of the random cards are wink-outs");
}

//! Tests which changes are recommended for each kind of evidence, and in which order.

use super::{cards, Card};
use crate::advise::candidate::{Account, By, Dropped, Kind};
use crate::advise::measured::Measured;
use crate::advise::reason::{CannotRun, Doubt, Gap, NoSecond, Reason, What};
use crate::advise::rules::{rule, sample, Action};
use mallard_measure::verdict::Verdict;
use mallard_trace::regions::Region;
use mallard_trace::replay::{End, Scope, Strategy};

mod words;

fn first(evidence: &Measured) -> Card {
    cards(evidence).swap_remove(0)
}

#[test]
fn each_sample_program_gets_the_recommendation_of_its_rule() {
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
        (Measured::default(), "leave-it", Action::Leave),
    ];
    for (evidence, id, action) in expected {
        let card = first(&evidence);
        assert_eq!((card.rule, card.action), (id, action));
    }
}

#[test]
fn the_largest_saving_comes_first_and_each_function_has_one_recommendation() {
    let mut evidence = sample::document();
    evidence.candidates.extend(sample::malloc("mimalloc", Kind::Malloc).candidates);
    let rules: Vec<&str> = cards(&evidence).iter().map(|card| card.rule).collect();
    assert_eq!(rules, ["wink-out-arena", "malloc-switch"]);
    evidence.candidates.last_mut().unwrap().cpu = sample::judged(0.5, Verdict::Gain);
    assert_eq!(first(&evidence).rule, "malloc-switch");
}

#[test]
fn the_second_recommendation_is_about_memory_if_it_saves_much_more_than_the_first() {
    let mut evidence = sample::document();
    evidence.candidates.extend(sample::malloc("mimalloc", Kind::Malloc).candidates);
    evidence.candidates.last_mut().unwrap().cpu = sample::judged(0.5, Verdict::Gain);
    let rules = |evidence: &Measured| -> Vec<(&'static str, bool)> {
        let about_memory = |card: &Card| card.sentence.contains("less memory and ");
        cards(evidence).iter().map(|card| (card.rule, about_memory(card))).collect()
    };
    assert_eq!(rules(&evidence), [("malloc-switch", false), ("wink-out-arena", false)]);
    let arena = &mut evidence.candidates[0];
    arena.peak_bytes = (100 << 20, 60 << 20);
    arena.memory = sample::judged(0.4, Verdict::Gain);
    assert_eq!(rules(&evidence), [("malloc-switch", false), ("wink-out-arena", true)]);
    // A plan that saves only memory is recommended, too, unless the plan costs time.
    let mut alone = sample::document();
    alone.candidates.truncate(1);
    let arena = &mut alone.candidates[0];
    arena.peak_bytes = (100 << 20, 60 << 20);
    arena.memory = sample::judged(0.4, Verdict::Gain);
    arena.cpu = sample::judged(0.0, Verdict::NoDifference);
    let card = first(&alone);
    let expected = "40 % less memory (60 MiB instead of 100 MiB at its peak)";
    assert!(card.sentence.contains(expected), "{}", card.sentence);
    alone.candidates[0].cpu = sample::judged(-0.1, Verdict::Loss);
    assert_eq!(first(&alone).rule, "leave-it");
}

#[test]
fn a_saving_measured_in_runs_is_not_compared_with_a_partial_saving_from_a_replay() {
    let mut evidence = sample::document();
    let saving = evidence.candidates[0].cpu.saving;
    let mut malloc = sample::malloc("mimalloc", Kind::Malloc).candidates.swap_remove(0);
    malloc.by = By::Try;
    for (times, first_rule) in [(1.1, "wink-out-arena"), (1.6, "malloc-switch")] {
        malloc.cpu = sample::judged(times * saving, Verdict::Gain);
        evidence.candidates.push(malloc.clone());
        assert_eq!(first(&evidence).rule, first_rule, "{times}");
        evidence.candidates.pop();
    }
}

#[test]
fn a_recommendation_shows_the_saving_of_a_plan_and_the_additional_saving_of_a_source_change() {
    let evidence = sample::in_program(sample::document(), 0.2, (0.01, 0.03), 0.05);
    let evidence = Measured { recordings: 2, ..evidence };
    let card = first(&evidence);
    assert_eq!((card.rule, card.saving.measured_by), ("wink-out-arena", Some(By::Plan)));
    let text = card.text();
    for part in [
        "20 % (19 to 21 %) of the CPU time, measured in the unchanged program",
        "a change of the source code saves more: 1.0 to 3.0 % for calls that inlined code avoids, at most 5.0 % for frees and \
         destructors that it skips",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let how = card.how.as_deref();
    assert_eq!(how, Some("mallard run --plan /tmp/app.mallard/advice.plan -- ./app data"));
    assert!(card.sentence.contains("would need 20 to 29 % less CPU time"), "{}", card.sentence);
    // If blocks are freed one by one, destructors run, so nothing is skipped at the ends.
    let plain = evidence.candidates.iter().find(|of| of.rule == Some("arena")).unwrap();
    assert_eq!(plain.in_program.as_ref().unwrap().ends, 0.0);
}

#[test]
fn running_under_a_plan_is_recommended_only_if_it_saves_more_than_every_malloc() {
    let with_malloc = |saving| {
        let mut evidence = sample::in_program(sample::structure((16, 64)), 0.2, (0.0, 0.0), 0.0);
        let mut malloc = sample::malloc("mimalloc", Kind::Malloc).candidates.swap_remove(0);
        malloc.cpu = sample::judged(saving, Verdict::Gain);
        evidence.candidates.push(malloc);
        cards(&evidence)
    };
    let plan =
        |cards: &[Card]| cards.iter().find(|card| card.rule == "multipool").unwrap().how.clone();
    assert!(plan(&with_malloc(0.15)).unwrap().contains("mallard run --plan "));
    assert_eq!(plan(&with_malloc(0.18)), None);
    // A malloc that saves about as much comes first, because it needs no change of the source.
    assert_eq!(with_malloc(0.18)[0].rule, "malloc-switch");
    assert_eq!(with_malloc(0.15)[0].rule, "multipool");
}

#[test]
fn memory_growth_ranks_above_a_small_time_saving_and_below_a_large_one() {
    let rules = |saving| {
        let mut evidence = sample::leak();
        let mut malloc = sample::malloc("mimalloc", Kind::Malloc).candidates.remove(0);
        malloc.cpu = sample::judged(saving, Verdict::Gain);
        evidence.candidates.push(malloc);
        cards(&evidence).iter().map(|card| card.rule).collect::<Vec<_>>()
    };
    assert_eq!(rules(0.04), ["leak", "malloc-switch"]);
    assert_eq!(rules(0.2), ["malloc-switch", "leak"]);
}

#[test]
fn a_leak_is_attributed_to_a_function_of_the_program_and_not_of_a_library() {
    let card = first(&sample::leak());
    let site = card.site.as_ref().unwrap();
    assert_eq!((site.function.as_str(), site.shown.as_str()), ("remember(int)", "remember"));
    assert!(card.title.contains("remember") && card.sentence.contains("remember"), "{card:?}");
}

#[test]
fn of_equal_savings_a_change_that_keeps_destructors_comes_first_unless_they_cost_time() {
    let mut evidence = sample::document();
    evidence.candidates[1].cpu = sample::judged(0.305, Verdict::Gain);
    evidence.facts_mut().regions[0].teardown_ns = 1e6;
    assert_eq!(first(&evidence).rule, "arena");
    evidence.facts_mut().regions[0].teardown_ns = 2e7;
    assert_eq!(first(&evidence).rule, "wink-out-arena");
}

#[test]
fn of_equal_savings_the_change_with_less_work_comes_first() {
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
fn an_allocator_that_several_threads_would_share_is_not_recommended() {
    let mut evidence = sample::structure((16, 64));
    evidence.candidates[0].account.as_mut().unwrap().is_shared = true;
    assert_eq!(first(&evidence).action, Action::Leave);
}

#[test]
fn a_block_that_escapes_in_the_exact_count_of_a_replay_rules_out_a_wink_out() {
    let mut evidence = sample::document();
    evidence.candidates.truncate(1);
    evidence.candidates[0].account.as_mut().unwrap().escapes = 1;
    let card = first(&evidence);
    assert_eq!(card.action, Action::Leave);
    assert!(card.why_not.iter().any(|why| why.contains("used after they are freed")), "{card:?}");
}

#[test]
fn a_recommendation_without_wink_out_explains_why() {
    let why = |evidence: &Measured| first(evidence).why_not.join("\n");
    let escapes = why(&sample::one_escapes());
    let expected = "no wink-out (dropping the memory as a whole): 30 blocks outlived their call, allocated by title";
    assert!(escapes.contains(expected), "{escapes}");
    let mut few = sample::document();
    few.facts_mut().regions[0].instances = 29;
    assert!(why(&few).contains(
        "no wink-out (dropping the memory as a whole): only 29 calls seen, but 30 are needed"
    ));
    few.facts_mut().regions[0].instances = 1;
    assert!(why(&few).contains("only 1 call seen, but 2 are needed"));
    let mut one = sample::document();
    one.facts_mut().regions[0].inputs = 1;
    assert!(why(&one).contains("no wink-out (dropping the memory as a whole): only 1 different input seen, but 2 are needed"));
    let mut cut = sample::document();
    cut.facts_mut().validity = vec![Gap::Events("3 events".to_string())];
    assert!(why(&cut).contains("does not cover the whole run: the recording lacks 3 events"));
}

#[test]
fn no_change_is_recommended_if_the_possible_saving_is_tiny_even_on_a_noisy_machine() {
    let mut evidence = sample::nothing();
    evidence.noise = Some(0.05);
    evidence.questions = vec![What::TooFewRuns.into()];
    assert_eq!(first(&evidence).action, Action::Leave);
    evidence.facts_mut().bound.share = Some(0.3);
    assert_eq!(first(&evidence).action, Action::Undecided);
}

#[test]
fn a_doubtful_recording_leaves_advice_undecided_even_if_the_possible_saving_is_tiny() {
    let evidence = sample::with(sample::nothing(), |of| of.doubts = vec![Doubt::EndedBySignal]);
    let card = first(&evidence);
    assert_eq!(card.action, Action::Undecided);
    let expected =
        "should change its allocator: a signal ended the recorded run, which shows only the \
                    work until then.";
    assert!(card.sentence.ends_with(expected), "{card:?}");
}

#[test]
fn a_recommended_malloc_is_checked_by_mallard_try() {
    for (name, kind) in [("mimalloc", Kind::Malloc), ("glibc:trim=1GiB", Kind::Variable)] {
        let check = format!("mallard try --allocator {name} -- ./app data");
        assert_eq!(first(&sample::malloc(name, kind)).check, Some(check));
    }
}

#[test]
fn noise_leaves_advice_undecided_only_if_a_candidate_is_not_ruled_out() {
    let mut evidence = sample::noisy();
    let card = first(&evidence);
    assert_eq!(card.action, Action::Undecided);
    let reasons = card.evidence.join("\n");
    assert!(reasons.contains("too busy") && reasons.contains("differ by up to 5.0 %"), "{reasons}");
    assert!(reasons.contains("--min-gain 5%"), "{reasons}");
    let check = "mallard try --allocator mimalloc --budget 5m -- ./app data";
    assert_eq!(card.check.as_deref(), Some(check));
    evidence.facts_mut().program.cpu_ns = Some(12e6);
    let card = first(&evidence);
    assert!(card.evidence.join("\n").contains("one run is too short (12 ms)"), "{card:?}");
    let expected =
        "two measurements of the unchanged program differ by up to 5.0 %, too much to detect a saving of 2.0 %.";
    assert!(card.sentence.ends_with(expected), "{}", card.sentence);
    // Even when noise widens the interval of the saving, the interval ends below the minimum gain.
    evidence.candidates[0].cpu = sample::judged(0.002, Verdict::NotMeasurable);
    evidence.candidates[0].margin = 0.007;
    assert_eq!(first(&evidence).action, Action::Leave);
    evidence.candidates[0].margin = 0.009;
    assert_eq!(first(&evidence).action, Action::Undecided);
    evidence.candidates[0].cpu = sample::judged(0.002, Verdict::NoDifference);
    assert_eq!(first(&evidence).action, Action::Leave);
}

#[test]
fn undecided_advice_reports_what_the_replay_found() {
    let mut evidence = sample::noisy();
    evidence.candidates[0].replayed = Some(sample::judged(0.04, Verdict::Gain));
    let reasons = first(&evidence).evidence.join("\n");
    let expected = "mimalloc saves 4.0 % (3.0 to 5.0 %) of CPU time in replays and 5.0 %";
    assert!(reasons.contains(expected), "{reasons}");
}

#[test]
fn without_a_second_recording_the_same_allocator_is_recommended_without_wink_out() {
    let mut evidence = sample::document();
    evidence.recordings = 1;
    evidence.no_second = Some(NoSecond::NoTime);
    let card = first(&evidence);
    assert_eq!((card.rule, card.strategy.as_deref()), ("arena", Some("AS3")));
    let expected = "no wink-out (dropping the memory as a whole): it needs a second recording, and the budget was too small for one";
    assert!(card.why_not.contains(&expected.to_string()), "{card:?}");
    evidence.no_second = None;
    let dropped = evidence.candidates.remove(0);
    evidence.dropped.push(Dropped {
        name: "AS4 in render_document".into(),
        kind: Kind::Strategy,
        region: Some(0),
        why: Reason::PlayTooLong,
    });
    let expected =
        "no wink-out (dropping the memory as a whole): AS4 in render_document was not measured: it could not be replayed in time";
    assert!(first(&evidence).why_not.contains(&expected.to_string()), "{:?}", first(&evidence));
    // If nothing else saves enough, a second recording may decide.
    evidence.candidates.insert(0, dropped);
    evidence.candidates.truncate(1);
    let card = first(&evidence);
    assert_eq!(card.action, Action::Undecided);
    assert!(card.evidence.join("\n").contains("(AS4) would save 31 %"), "{card:?}");
    // A malloc that saves more than the wink-out does not hide the wink-out.
    let mimalloc =
        sample::whole("mimalloc", Kind::Malloc, (0.5, Verdict::Gain), (0.0, Verdict::NoDifference));
    evidence.candidates.push(mimalloc);
    let card = first(&evidence);
    assert_eq!(card.allocator.as_deref(), Some("mimalloc"));
    assert!(card.why_not.join("\n").contains("(AS4) would save 31 %"), "{card:?}");
}

#[test]
fn the_user_decides_about_a_change_that_needs_much_more_memory_relatively_and_in_bytes() {
    let of = |before: u64, after: u64| {
        let mut evidence = sample::malloc("mimalloc", Kind::Malloc);
        evidence.candidates[0].memory = sample::judged(-0.3, Verdict::Loss);
        evidence.candidates[0].peak_bytes = (before, after);
        first(&evidence)
    };
    let card = of(40 << 20, 50 << 20);
    assert_eq!(card.title, "Start the program with mimalloc, if 10 MiB more memory may be used");
    assert!(card.sentence.contains("10 MiB more memory (50 MiB instead of 40 MiB): your choice"));
    for (before, after) in [(100 << 20, 109 << 20), (1 << 20, (3 << 20) / 2), (40 << 20, 30 << 20)]
    {
        let card = of(before, after);
        assert_eq!(card.title, "Start the program with mimalloc");
        assert!(!card.sentence.contains("more memory"), "{}", card.sentence);
    }
    assert_eq!(of(40 << 20, 80 << 20).action, Action::Leave);
}

#[test]
fn memory_figures_of_a_replay_are_labelled_as_heap_memory_even_if_time_comes_from_runs() {
    let mut evidence = sample::malloc("mimalloc", Kind::Malloc);
    assert!(first(&evidence).text().contains("MiB of the program instead of"));
    evidence.candidates[0].memory_by = By::Replay;
    let card = first(&evidence);
    assert!(card.text().contains("MiB of the heap instead of"), "{}", card.text());
    assert_eq!(serde_json::to_value(card).unwrap()["memory"]["measured_by"], "replay");
}

#[test]
fn memory_that_stays_allocated_after_a_peak_is_measured_at_the_end() {
    let mut evidence = sample::fragmented();
    let of = &mut evidence.candidates[0];
    of.memory = sample::judged(0.0, Verdict::NoDifference);
    assert_eq!(first(&evidence).action, Action::Leave);
    let of = &mut evidence.candidates[0];
    of.memory_at_end = Some(sample::judged(0.9, Verdict::Gain));
    of.end_bytes = (50 << 20, 5 << 20);
    let card = first(&evidence);
    assert_eq!(card.rule, "fragmented-after-peak");
    let sentence = &card.sentence;
    assert!(sentence.contains("needs 90 % (89 to 91 %) less memory after its peak"), "{sentence}");
    let expected = "after the last call 5.0 MiB of the heap instead of 50 MiB: less by 90 %";
    assert!(card.text().contains(expected), "{}", card.text());
    // A setting comes before another malloc, because it takes less effort.
    let mut setting = evidence.candidates[0].clone();
    (setting.name, setting.kind) = ("glibc:trim=64KiB".into(), Kind::Variable);
    evidence.candidates.push(setting);
    let card = first(&evidence);
    let variable = "GLIBC_TUNABLES=glibc.malloc.trim_threshold=65536";
    assert_eq!((card.rule, card.action), ("fragmented-after-peak", Action::Set));
    assert!(card.how.unwrap().starts_with(variable));
}

#[test]
fn a_pool_and_an_arena_for_one_function_are_one_recommendation_with_an_alternative() {
    let mut evidence = sample::document();
    let mut structure = sample::structure((16, 48));
    structure.facts_mut().sites[0].owner.function = evidence.facts.regions[0].function.clone();
    structure.facts_mut().sites[0].stack =
        ["render_document", "main", "__libc_start_main", "_start"].map(String::from).to_vec();
    evidence.facts_mut().sites = structure.facts.sites.clone();
    evidence.candidates.truncate(2); // an arena with wink-out saves 31 %, and without 25 %
    evidence.candidates.append(&mut structure.candidates);
    let why = |evidence: &Measured| {
        let all = cards(evidence);
        assert_eq!(all.len(), 1, "{all:?}");
        (all[0].strategy.clone().unwrap(), all[0].why_not.join("\n"), all[0].evidence.join("\n"))
    };
    let pool = "a multipool (AS7) saves 12 % (11 to 13 %) of CPU time";
    let (strategy, others, _) = why(&evidence);
    assert!(strategy == "AS4" && others.contains(pool), "{others}");
    // Of two changes that save about the same, the change that skips no destructor comes first.
    evidence.candidates.remove(1);
    evidence.candidates[0].cpu = sample::judged(0.13, Verdict::Gain);
    evidence.facts_mut().regions[0].teardown_ns = 0.0;
    let (strategy, others, stack) = why(&evidence);
    assert_eq!(strategy, "AS7");
    // An allocator for each call is a smaller change than a pool that has to outlive the calls.
    let mut arena = sample::document().candidates.swap_remove(1);
    for (saving, expected) in [(0.125, "AS3"), (0.10, "AS3"), (0.05, "AS7")] {
        arena.cpu = sample::judged(saving, Verdict::Gain);
        let candidates = vec![evidence.candidates[1].clone(), arena.clone()];
        let mut both = Measured { candidates, ..evidence.clone() };
        assert_eq!(why(&both).0, expected, "{saving}");
        // A change of another kind that saves as much, but needs much more memory, does not change
        // the order.
        let mut malloc = sample::malloc("mimalloc", Kind::Malloc).candidates.swap_remove(0);
        malloc.cpu = both.candidates[0].cpu.clone();
        malloc.peak_bytes.1 *= 3;
        both.candidates.push(malloc);
        assert_eq!(first(&both).strategy.as_deref(), Some(expected), "{saving}");
    }
    let arena = "an arena, dropped as a whole (AS4) saves 13 % (12 to 14 %) of CPU time, but does not free single blocks";
    assert!(others.contains(arena), "{others}");
    assert!(stack.contains("call stack: render_document from main\n"), "{stack}");
}

#[test]
fn a_predicted_saving_says_that_only_the_changed_program_can_confirm_it() {
    assert!(first(&sample::document())
        .sentence
        .contains("only the changed program can show the real saving"));
}

#[test]
fn a_malloc_under_which_the_program_did_not_run_is_not_recommended() {
    let mut malloc = sample::malloc("mimalloc", Kind::Malloc);
    malloc.candidates[0].by = By::Replay;
    malloc.facts_mut().program.cannot_run = Some(CannotRun::NotAsked);
    let card = first(&malloc);
    assert_eq!(card.action, Action::Undecided);
    let why =
        "mimalloc saves 8.0 % (7.0 to 9.0 %) of CPU time in replays, but the program has not run \
               under it (--no-try was given)";
    assert!(card.sentence.contains(why), "{}", card.sentence);
    assert!(card.check.unwrap().starts_with("mallard try --allocator mimalloc"));
    // If other changes are recommended, the first recommendation reports that the program did not
    // run under the malloc.
    malloc.candidates.extend(sample::document().candidates);
    malloc.facts_mut().regions = sample::document().facts.regions.clone();
    let cards = cards(&malloc);
    assert!(cards.iter().all(|card| card.action != Action::Switch), "{cards:?}");
    assert!(cards[0].why_not.iter().any(|line| line.contains(why)), "{cards:?}");
}

#[test]
fn a_malloc_that_breaks_the_program_is_named_with_the_reason() {
    let breaks = Dropped {
        name: "tcmalloc".into(),
        kind: Kind::Malloc,
        region: None,
        why: Reason::Breaks("ended by signal 6 (SIGABRT): free(): invalid pointer".to_string()),
    };
    for mut evidence in [sample::malloc("mimalloc", Kind::Malloc), sample::nothing()] {
        evidence.dropped.push(breaks.clone());
        let lines = first(&evidence).why_not;
        let expected = format!("tcmalloc {}", breaks.why);
        assert!(lines.contains(&expected), "{lines:?}");
        assert!(!lines.join("\n").contains("1 other change"), "{lines:?}");
    }
}

#[test]
fn a_function_and_its_caller_have_one_recommendation() {
    let mut evidence = sample::document();
    let outer = Region { function: "run".into(), shown: "run".into(), ..sample::region() };
    evidence.facts_mut().regions.push(outer);
    let mut of = sample::strategy(3, "arena", Scope::Region("run".into()), 0.1);
    of.region = Some(1);
    evidence.candidates.push(of);
    assert_eq!(cards(&evidence).len(), 2);
    let mut site = sample::site((16, 64));
    site.stack = ["render_document", "run", "main"].map(str::to_string).to_vec();
    evidence.facts_mut().sites.push(site);
    assert_eq!(cards(&evidence).len(), 1);
}

/// Makes a random region, often near the limits of the conditions.
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

fn random_evidence(random: &mut fastrand::Rng) -> Measured {
    let mut evidence = sample::program();
    evidence.facts_mut().regions = (0..random.usize(0..5)).map(|_| random_region(random)).collect();
    evidence.noise = (random.u8(0..4) == 0).then_some(0.05);
    evidence.recordings = 1 + u32::from(random.u8(0..4) > 0);
    evidence.facts_mut().bound.share = random.bool().then(|| random.f64());
    let ids = ["wink-out-arena", "arena", "wink-out-multipool-over-arena", "multipool-over-arena"];
    for _ in 0..random.usize(0..8) {
        let id = ids[random.usize(0..ids.len())];
        // Sometimes the strategy of the plan does not belong to the rule.
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
fn random_evidence_never_leads_to_wink_out_with_an_escape_or_too_few_calls_or_inputs() {
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
            assert_eq!(evidence.recordings, 2);
            let same = |of: &&Region| of.function == region.function;
            assert!(evidence.facts.regions.iter().filter(same).all(|of| of.escapes == 0));
            assert!(region.instances >= 30 && region.inputs >= 2 && region.foreign_frees == 0);
        }
    }
    assert!(wink_outs > 100, "{wink_outs} of the random cards are wink-outs");
}

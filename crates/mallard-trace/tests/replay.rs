//! Tests that traces of a few events are compiled to the expected ops.

use crate::support::replay::*;
use crate::support::repository;
use mallard_trace::format::{flag, op};
use mallard_trace::replay::{Plan, RuleResult, Strategy};

#[test]
fn the_constants_equal_those_in_the_c_header() {
    let header = repository("include/mallard/trace/replay_format.h");
    let ours = repository("crates/mallard-trace/src/replay/format.rs");
    let number = |text: &str| {
        let digits: String = text.chars().take_while(|c| c.is_ascii_alphanumeric()).collect();
        match digits.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok(),
            None => digits.parse::<u64>().ok(),
        }
    };
    let theirs = |name: &str| {
        let begin = format!("mallard_replay_{name} =");
        let rest = header.split_once(&begin).map(|(_, rest)| rest.trim_start());
        rest.and_then(number)
    };
    let mut compared = 0;
    for line in ours.lines() {
        let constant = line.trim().strip_prefix("pub const ").and_then(|l| l.split_once(": u"));
        let Some((name, rest)) = constant else { continue };
        let value = rest.split(" = ").nth(1).unwrap().trim_end_matches(';').replace('_', "");
        if let (Some(value), Some(theirs)) = (number(&value), theirs(&name.to_lowercase())) {
            assert_eq!(value, theirs, "{name}");
            compared += 1;
        }
    }
    let in_header = header.lines().filter(|line| {
        line.trim().strip_prefix("mallard_replay_").is_some_and(|line| line.contains(" ="))
    });
    assert_eq!(compared, in_header.count());
}

#[test]
fn an_op_stream_has_the_calls_of_the_program() {
    let mut script = Script::new();
    script.malloc(0, 0x10, 24, MAIN).event(0, op::CALLOC, 0x20, 100, MAIN);
    script.align = 6;
    script.event(0, op::POSIX_MEMALIGN, 0x30, 256, MAIN);
    script.event(0, op::PVALLOC, 0, 1 << 39, MAIN);
    script.align = 0;
    script.realloc(0, 0x10, 0x10, 48, MAIN).realloc(0, 0x10, 0x40, 64, MAIN);
    script.realloc(0, 0, 0x50, 32, MAIN);
    script.realloc(0, 0x50, 0x50, 0, MAIN);
    script.realloc(0, 0x40, 0, 1 << 39, MAIN);
    script.realloc(0, 0, 0, 1 << 39, MAIN);
    script.realloc(0, 0x40, 0, 0, MAIN);
    script.free(0, 0, MAIN);
    script.flags = flag::FROM_NEW | flag::SIZED;
    script.free(0, 0x20, MAIN);
    script.flags = 0;
    script.free(0, 0x30, MAIN);
    script.malloc(0, 0x60, 0, MAIN).event(0, op::FREE_SIZED, 0x60, 0, MAIN);
    let (file, compiled) = compiled(script, &Plan::default());
    let expected = [
        "malloc 24 slot 0",
        "calloc 100 slot 1",
        "aligned 256 slot 2 align 6",
        "aligned_failed 549755813888 align 6",
        "realloc_from 24 slot 0",
        "realloc 48 slot 0",
        "realloc_from 48 slot 0",
        "realloc 64 slot 0",
        "realloc 32 slot 3",
        "realloc_from 32 slot 3",
        "realloc 1 slot 3",
        "realloc_from 64 slot 0",
        "realloc_failed 549755813888 slot 0",
        "malloc_failed 549755813888",
        "free 64 slot 0",
        "free_null",
        "free 100 slot 1",
        "free 256 slot 2 align 6",
        "malloc 0 slot 2",
        "free 0 slot 2",
        "end",
    ];
    assert_eq!(file.text(0), expected);
    assert_eq!((compiled.calls, compiled.live_peak, compiled.blocks_peak), (16, 452, 4));
    assert_eq!(compiled.validity, []);
    assert_eq!(file.recorded, [0]);
}

#[test]
fn a_block_of_operator_new_is_freed_by_operator_delete_and_no_other_block() {
    let mut script = Script::new();
    let forms = [(0, 0), (0, flag::SIZED), (6, flag::ALIGNED), (6, flag::ALIGNED | flag::SIZED)];
    for (align, form) in forms {
        let made_by = if align == 0 { op::MALLOC } else { op::ALIGNED_ALLOC };
        script.flags = flag::FROM_NEW | form & flag::ALIGNED;
        script.align = align;
        script.event(0, made_by, 0x10, 24, MAIN);
        (script.flags, script.align) = (flag::FROM_NEW | form, 0);
        script.free(0, 0x10, MAIN);
    }
    script.flags = flag::FROM_NEW;
    script.event(0, op::MALLOC, 0, 1 << 39, MAIN).malloc(0, 0x20, 8, MAIN).malloc(0, 0x30, 9, MAIN);
    script.flags = 0;
    script.free(0, 0x20, MAIN).realloc(0, 0x30, 0x40, 10, MAIN);
    script.flags = flag::FROM_NEW | flag::SIZED;
    script.free(0, 0x40, MAIN);
    let (file, _) = compiled(script, &Plan::default());
    let expected = [
        "new 24 slot 0",
        "delete 24 slot 0",
        "new 24 slot 0",
        "free_sized 24 slot 0",
        "new_aligned 24 slot 0 align 6",
        "delete_aligned 24 slot 0 align 6",
        "new_aligned 24 slot 0 align 6",
        "free_aligned 24 slot 0 align 6",
        "malloc_failed 549755813888",
        "new 8 slot 0",
        "new 9 slot 1",
        "delete 8 slot 0",
        "realloc_from 9 slot 1",
        "realloc 10 slot 1",
        "free 10 slot 1",
        "end",
    ];
    assert_eq!(file.text(0), expected);
}

#[test]
fn pauses_are_measured_from_the_end_of_a_call_to_the_next_call() {
    let mut script = Script::new();
    script.wait(99).malloc(0, 0x10, 8, MAIN);
    script.dur = 20;
    script.wait(49).malloc(0, 0x20, 8, MAIN);
    script.dur = 0;
    script.wait(29).free(0, 0x20, MAIN);
    script.wait(5_000_000_000 - 1).free(0, 0x10, MAIN);
    let (file, _) = compiled(script, &Plan::default());
    let gaps: Vec<u32> = file.threads[0].iter().map(|op| op.gap).collect();
    assert_eq!(gaps, [0, 30, 30, 0, u32::MAX, 0]);
    assert_eq!(file.text(0)[3], format!("pause {}", 5_000_000_000 - u64::from(u32::MAX)));
}

#[test]
fn a_thread_waits_before_it_uses_a_block_of_another_thread() {
    let mut script = Script::new();
    script.malloc(0, 0xa0, 1, MAIN).malloc(0, 0x10, 2, CREATE);
    script.malloc(1, 0xb0, 3, WORKER);
    // Thread 1 starts after 0xa0 was allocated, so this free needs no wait.
    script.free(1, 0xa0, WORKER);
    script.malloc(0, 0xc0, 4, MAIN).malloc(0, 0xd0, 5, MAIN).malloc(0, 0xe0, 6, MAIN);
    // The first two frees share one wait.
    script.free(1, 0xd0, WORKER).free(1, 0xc0, WORKER).free(1, 0xe0, WORKER);
    let (file, compiled) = compiled(script, &Plan::default());
    let expected = [
        "malloc 1 slot 0",
        "malloc 2 slot 1",
        "start thread 1",
        "malloc 4 slot 2",
        "malloc 5 slot 3",
        "publish 5",
        "malloc 6 slot 4",
        "publish 6",
        "end",
    ];
    assert_eq!(file.text(0), expected);
    let expected = [
        "malloc 3 slot 16", // Each thread gets 16 adjacent slots.
        "free 1 slot 0",
        "wait 5 of thread 0",
        "free 5 slot 3",
        "free 4 slot 2",
        "wait 6 of thread 0",
        "free 6 slot 4",
        "end",
    ];
    assert_eq!(file.text(1), expected);
    assert_eq!((compiled.edges, compiled.threads), (3, 2));
}

#[test]
fn a_wait_that_earlier_waits_imply_is_omitted() {
    let mut script = Script::new();
    script.malloc(0, 0x10, 1, CREATE).malloc(1, 0x11, 1, WORKER).malloc(2, 0x12, 1, WORKER);
    script.malloc(0, 0xa0, 7, MAIN).malloc(0, 0xb0, 8, MAIN);
    script.free(1, 0xb0, WORKER).malloc(1, 0xc0, 9, WORKER);
    script.free(2, 0xc0, WORKER).free(2, 0xa0, WORKER);
    let (file, _) = compiled(script, &Plan::default());
    let expected = [
        "wait 1 of thread 1", // the call that precedes the first call of this thread
        "malloc 1 slot 32",
        "wait 4 of thread 1",
        "free 9 slot 2",
        "free 7 slot 1",
        "end",
    ];
    assert_eq!(file.text(2), expected);
}

#[test]
fn the_creator_of_an_exited_thread_and_new_threads_wait_for_it() {
    let mut script = Script::new();
    script.malloc(0, 0x10, 1, CREATE).malloc(1, 0x11, 2, WORKER).malloc(1, 0x12, 3, WORKER);
    script.wait(5).record(op::THREAD_END, 1, 0, 0);
    script.malloc(0, 0x13, 4, CREATE).malloc(2, 0x14, 5, WORKER).malloc(0, 0x15, 6, MAIN);
    let (file, _) = compiled(script, &Plan::default());
    let creator = [
        "malloc 1 slot 0",
        "start thread 1",
        "wait 2 of thread 1",
        "malloc 4 slot 1",
        "start thread 2",
        "malloc 6 slot 2",
        "end",
    ];
    assert_eq!(file.text(0), creator);
    assert_eq!(file.text(1), ["malloc 2 slot 16", "malloc 3 slot 17", "publish 2", "end"]);
    assert_eq!(file.text(2), ["malloc 5 slot 32", "end"]); // its creator has waited
}

#[test]
fn an_exited_thread_does_not_start_other_threads() {
    let mut script = Script::new();
    script.malloc(0, 0x10, 1, CREATE).malloc(1, 0x11, 2, WORKER);
    script.malloc(1, 0x12, 3, &["start_thread", "outer", "pthread_create"]);
    script.wait(5).record(op::THREAD_END, 1, 0, 0);
    script.wait(5).malloc(2, 0x14, 5, WORKER);
    let (file, _) = compiled(script, &Plan::default());
    assert!(file.text(0).contains(&"start thread 2".to_string()));
    assert_eq!(file.text(2), ["wait 2 of thread 1", "malloc 5 slot 32", "end"]);
}

#[test]
fn a_resized_block_is_used_after_its_realloc() {
    let mut script = Script::new();
    script.malloc(0, 0x10, 1, CREATE).malloc(1, 0x11, 1, WORKER);
    script.realloc(1, 0x10, 0x20, 50, WORKER).free(0, 0x20, MAIN);
    let (file, _) = compiled(script, &Plan::default());
    let expected =
        ["malloc 1 slot 0", "start thread 1", "wait 3 of thread 1", "free 50 slot 0", "end"];
    assert_eq!(file.text(0), expected);
}

#[test]
fn a_thread_is_started_by_the_thread_that_last_called_pthread_create() {
    let mut script = Script::new();
    script.malloc(0, 0x10, 1, MAIN).malloc(1, 0x11, 1, WORKER);
    script.malloc(1, 0x12, 1, &["start_thread", "outer", "pthread_create"]);
    script.malloc(0, 0x13, 1, MAIN).malloc(1, 0x14, 1, WORKER).wait(500).malloc(2, 0x15, 1, WORKER);
    let (file, compiled) = compiled(script, &Plan::default());
    assert!(file.text(0).contains(&"start thread 1".to_string()));
    assert!(file.text(1).contains(&"start thread 2".to_string()));
    assert_eq!(file.starts_ns, [0, 1, 505]);
    assert_eq!(compiled.edges, 2);
}

#[test]
fn the_instances_of_a_drained_region_end_with_their_last_block() {
    let mut script = Script::new();
    for _ in 0..2 {
        script.malloc(0, 0x10, 40, PARSE).malloc(0, 0x20, 50, NODE).malloc(0, 0x30, 60, MAIN);
        script.free(0, 0x10, MAIN).free(0, 0x20, MAIN).free(0, 0x30, MAIN);
    }
    let (file, compiled) = compiled(script, &region("parse_document", "AS3", "drained"));
    let once = [
        "open target 1",
        "malloc 40 slot 0 target 1",
        "malloc 50 slot 1 target 1",
        "malloc 60 slot 2",
        "free 40 slot 0 target 1",
        "free 50 slot 1 target 1",
        "close target 1",
        "free 60 slot 2",
    ];
    let again = once.map(|op| op.replace("slot 2", "slot 9").replace("slot 0", "slot 2"));
    let again = again.map(|op| op.replace("slot 9", "slot 0"));
    let mut expected: Vec<String> = once.iter().map(|op| op.to_string()).chain(again).collect();
    expected.push("end".to_string());
    assert_eq!(file.text(0), expected);
    assert_eq!(file.targets, [(0, false, 0, 0), (1, false, 0, 1)]);
    let result = &compiled.rules[0];
    assert_eq!((result.instances, result.blocks, result.bytes), (2, 4, 180));
    assert_eq!((result.peaks.median(), result.totals.max(), result.targets), (90, 90, 1));
    assert_eq!((result.escapes, result.unfinished, result.is_shared), (0, 0, false));
}

#[test]
fn wink_out_omits_the_frees_after_the_last_allocation_and_closes_the_allocator_at_the_end() {
    let mut script = Script::new();
    script.malloc(0, 0x10, 40, PARSE).malloc(0, 0x20, 50, NODE);
    script.free(0, 0x10, PARSE).malloc(0, 0x30, 60, PARSE);
    script.free(0, 0x20, PARSE).free(0, 0x30, PARSE).malloc(0, 0x40, 70, MAIN);
    let plan = region("parse_document", "AS6", "drained");
    let (file, compiled) = compiled(script, &plan);
    let expected = [
        "open target 1",
        "malloc 40 slot 0 target 1",
        "malloc 50 slot 1 target 1",
        "free 40 slot 0 target 1",
        "malloc 60 slot 0 target 1",
        "close target 1",
        "malloc 70 slot 0",
        "end",
    ];
    assert_eq!(file.text(0), expected);
    assert_eq!((compiled.virtual_calls, compiled.rules[0].winked_out), (4, 2));
}

#[test]
fn a_region_with_sure_ends_ends_at_an_event_outside_or_in_another_call() {
    let mut script = Script::new();
    script.malloc(0, 0x10, 1, PARSE).free(0, 0x10, PARSE);
    // The frame of main has changed, so main calls parse_document again.
    script.keeps(0).malloc(0, 0x20, 2, PARSE);
    // The frame of main is unchanged, so parse_document may be in the same call.
    script.keeps(1).malloc(0, 0x30, 3, NODE).free(0, 0x20, PARSE).free(0, 0x30, PARSE);
    script.malloc(0, 0x40, 4, MAIN);
    let (file, compiled) = compiled(script, &region("parse_document", "AS7", "sure"));
    let expected = [
        "open target 1",
        "malloc 1 slot 0 target 1",
        "free 1 slot 0 target 1",
        "close target 1",
        "open target 1",
        "malloc 2 slot 0 target 1",
        "malloc 3 slot 1 target 1",
        "free 2 slot 0 target 1",
        "free 3 slot 1 target 1",
        "close target 1",
        "malloc 4 slot 1",
        "end",
    ];
    assert_eq!(file.text(0), expected);
    assert_eq!(compiled.rules[0].instances, 2);
}

#[test]
fn an_allocator_exists_until_the_last_block_of_its_region_is_freed() {
    let mut script = Script::new();
    script.malloc(0, 0x10, 1, CREATE).malloc(1, 0x11, 1, WORKER);
    script.malloc(0, 0x20, 40, PARSE).malloc(0, 0x30, 50, MAIN);
    script.malloc(0, 0x40, 60, PARSE).free(0, 0x40, PARSE);
    script.free(1, 0x20, WORKER);
    let (file, compiled) = compiled(script, &region("parse_document", "AS11", "sure"));
    let main = &file.text(0)[2..];
    let expected = [
        "open target 1",
        "malloc 40 slot 1 target 1",
        "publish 4",
        "malloc 50 slot 2",
        "open target 2",
        "malloc 60 slot 3 target 2",
        "free 60 slot 3 target 2",
        "close target 2",
        "end",
    ];
    assert_eq!(main, expected);
    let worker = [
        "malloc 1 slot 16",
        "wait 4 of thread 0",
        "free 40 slot 1 target 1",
        "close target 1",
        "end",
    ];
    assert_eq!(file.text(1), worker);
    // Two threads use one instance of the rule, so both targets must be shared.
    assert_eq!(file.targets[1..], [(3, true, 0, 1), (3, true, 0, 1)]);
    let RuleResult { escapes, foreign_escapes, escape_from, .. } = &compiled.rules[0];
    assert_eq!((*escapes, *foreign_escapes), (1, 1));
    assert_eq!(escape_from.as_deref(), Some("parse_document"));
}

#[test]
fn the_whole_program_under_a_strategy_has_one_instance() {
    let script = || {
        let mut script = Script::new();
        script.malloc(0, 0x10, 1, CREATE).malloc(1, 0x11, 2, WORKER);
        script.free(1, 0x10, WORKER);
        script
    };
    let plan_of = |number| Plan::of_strategy(Strategy::new(number).unwrap());
    let (file, compiled_9) = compiled(script(), &plan_of(9));
    let main = ["open target 1", "malloc 1 slot 0 target 1", "start thread 1", "end"];
    assert_eq!(file.text(0), main);
    assert_eq!(file.text(1), ["malloc 2 slot 16 target 1", "free 1 slot 0 target 1", "end"]);
    assert_eq!((compiled_9.virtual_calls, compiled_9.rules[0].is_shared), (3, true));
    let (file, _) = compiled(script(), &plan_of(10));
    let main = [
        "open target 1",
        "malloc 1 slot 0 target 1",
        "start thread 1",
        "wait 1 of thread 1",
        "close target 1",
        "end",
    ];
    assert_eq!(file.text(0), main);
    assert_eq!(file.text(1), ["malloc 2 slot 16 target 1", "publish 1", "end"]);
    let (file, compiled_2) = compiled(script(), &plan_of(2));
    assert_eq!((file.targets.len(), compiled_2.virtual_calls), (1, 3));
}

#[test]
fn call_stack_rules_override_site_rules_which_override_region_rules() {
    let script = || {
        let mut script = Script::new();
        script.malloc(0, 0x10, 1, &["main", "outer", "parse_document"]);
        script.malloc(0, 0x20, 2, &["main", "outer"]);
        script.malloc(
            0,
            0x30,
            3,
            &["main", "outer", "make_node(int)", "operator new(unsigned long)"],
        );
        script.malloc(0, 0x40, 4, &["main", "outer", "make_node(int)"]);
        script.malloc(0, 0x50, 5, &["main", "Node* app::build<int>(int)", "libx.so+0x77"]);
        script.malloc(0, 0x60, 6, MAIN);
        script
    };
    let folder = tempfile::tempdir().unwrap();
    let trace = script().trace(folder.path());
    let stacks = trace.stacks().unwrap();
    let sites = trace.sites().unwrap();
    let inner = |stack| stacks.functions(stack)[0].function;
    let site = sites.iter().find(|site| site.allocs == 1 && inner(site.stack) == "make_node(int)");
    let text = format!(
        "[[rule]]\nstrategy = 'AS3'\n\
         [[rule]]\nregion = 'outer'\nstrategy = 'AS3'\nends = 'drained'\n\
         [[rule]]\nregion = 'parse_document'\nstrategy = 'AS3'\nends = 'drained'\n\
         [[rule]]\nsite = 'make_node'\nstrategy = 'AS3'\n\
         [[rule]]\nstack = {}\nstrategy = 'AS3'\n\
         [[rule]]\nsite = 'app::build'\nstrategy = 'AS3'\nfirst_chunk = 4096\n",
        site.unwrap().stack
    );
    let (file, _) = compiled(script(), &plan(&text));
    let rule_of = |size: u64| {
        let op = file.threads[0].iter().find(|op| op.size() == size && op.op() == 1).unwrap();
        file.targets[usize::from(op.target())].3
    };
    assert_eq!([1, 2, 3, 4, 5, 6].map(rule_of), [3, 2, 4, 5, 6, 1]);
    let chunks: Vec<u64> = file.targets.iter().map(|target| target.2).collect();
    assert_eq!(chunks.iter().filter(|&&bytes| bytes == 4096).count(), 1);
}

#[test]
fn a_replayed_thread_that_would_run_far_ahead_waits_for_the_others() {
    let mut script = Script::new();
    for turn in 0..4 {
        script.malloc(0, 0x10 + turn, 8 << 20, MAIN);
        script.malloc(1, 0x80 + turn, 16, MAIN).free(1, 0x80 + turn, MAIN);
    }
    let (file, _) = compiled(script, &Plan::default());
    // Each large block ends a step. The last block waits for the position that thread 1 had reached
    // two steps before.
    let expected = [
        "malloc 8388608 slot 0",
        "start thread 1",
        "malloc 8388608 slot 1",
        "publish 3",
        "malloc 8388608 slot 2",
        "wait 2 of thread 1",
        "malloc 8388608 slot 3",
        "end",
    ];
    assert_eq!(file.text(0), expected);
}

#[test]
fn a_replayed_thread_stays_closer_to_the_thread_that_frees_its_blocks() {
    let mut script = Script::new();
    script.malloc(1, 0x70, 16, MAIN);
    for turn in 0..4 {
        script.malloc(0, 0x10 + turn, 1 << 20, MAIN).free(1, 0x10 + turn, MAIN);
    }
    let (file, _) = compiled(script, &Plan::default());
    // The last block waits until the first block is freed.
    assert_eq!(file.text(1)[6..8], ["wait 4 of thread 0", "malloc 1048576 slot 19"]);
}

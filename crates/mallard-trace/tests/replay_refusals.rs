//! Tests that the compiler rejects traces that it cannot compile, and that it reports what a trace
//! lacks.

use crate::support::replay::*;
use crate::support::{golden, header, trace_of};
use mallard_trace::error::ErrorKind;
use mallard_trace::format::{loss, op};
use mallard_trace::manifest::Manifest;
use mallard_trace::replay::{compile, Cause, Options, Plan};
use mallard_trace::tables::schema::THREADS;
use mallard_trace::Trace;

fn escaping() -> Script {
    let mut script = Script::new();
    script.malloc(0, 0x10, 40, NODE).malloc(0, 0x20, 50, MAIN);
    script.realloc(0, 0x10, 0x30, 60, MAIN).free(0, 0x30, MAIN).malloc(0, 0x40, 70, PARSE);
    script
}

#[test]
fn wink_out_of_blocks_that_are_used_later_is_rejected() {
    let plan = region("parse_document", "AS8", "sure");
    let error = error(escaping(), &plan);
    assert_eq!(error.kind(), ErrorKind::Refused);
    let expected = "a plan: rule 1 winks out 2 blocks of the region parse_document that are used \
                    afterwards, for example of make_node(int)";
    assert_eq!(error.what(), expected);
    assert!(error.help().starts_with("use AS7"), "{error}");

    let options = Options { allow_escapes: true, ..Options::default() };
    let (file, compiled) = compiled_with(escaping(), &plan, &options);
    let expected = [
        "open target 1",
        "malloc 40 slot 0 target 1",
        "close target 1",
        "malloc 50 slot 1",
        "realloc 60 slot 0",
        "free 60 slot 0",
        "open target 1",
        "malloc 70 slot 0 target 1",
        "close target 1",
        "end",
    ];
    assert_eq!(file.text(0), expected);
    assert!(compiled.validity.iter().any(|v| v.cause == Cause::Escapes && v.count == 2));
}

#[test]
fn wink_out_of_a_region_that_never_ends_is_rejected() {
    let script = || {
        let mut script = Script::new();
        script.malloc(0, 0x10, 40, PARSE).malloc(0, 0x20, 50, PARSE).free(0, 0x20, PARSE);
        script
    };
    let error = error(script(), &region("parse_document", "AS4", "drained"));
    assert!(error.what().ends_with("(1 of its instances never ends)"), "{error}");
    let (file, compiled) = compiled(script(), &region("parse_document", "AS3", "drained"));
    assert!(!file.text(0).contains(&"close target 1".to_string()));
    let finding = &compiled.validity[0];
    assert_eq!((finding.cause, finding.count), (Cause::UnfinishedRegions, 1));
}

#[test]
fn a_plan_that_does_not_match_the_trace_is_rejected() {
    let script = || {
        let mut script = Script::new();
        script.malloc(0, 0x10, 1, NODE).malloc(0, 0x20, 1, &["Node* app::build<int>(int)"]);
        script
    };
    let rule = |keys: &str| plan(&format!("[[rule]]\nstrategy = 'AS3'\n{keys}"));
    let cases = [
        (
            "site = 'make_nod'",
            "rule 1: no call stack has an allocation of make_nod",
            "\"make_node\"",
        ),
        ("site = 'main'", "no call stack has an allocation of main", "write region = \"main\""),
        ("site = 'build'", "no call stack has an allocation of build", "\"app::build\""),
        ("region = 'zzz'\nends = 'sure'", "no call stack has the function zzz", "mallard sites"),
        (
            "stack = 99",
            "a plan: rule 1: the trace does not have the call stack 99",
            "mallard sites",
        ),
        ("stack = 0", "rule 1: the trace does not have the call stack 0", "mallard sites"),
        ("region = 'main'\nends = 'exact'", "a plan: rule 1 needs exact ends", "\"drained\""),
        (
            "site = 'make_node'\n[[rule]]\nstrategy = 'AS4'\nsite = 'make_node(int)'",
            "rules 1 and 2 are both for the site make_node(int)",
            "remove rule 1",
        ),
    ];
    for (keys, what, help) in cases {
        let error = error(script(), &rule(keys));
        assert_eq!(error.kind(), ErrorKind::Plan);
        assert!(error.what().contains(what), "{error}");
        assert!(error.help().contains(help), "{error}");
    }
}

#[test]
fn more_region_instances_than_available_targets_are_rejected() {
    let mut script = Script::new();
    for block in 0..8192 {
        script.malloc(0, 0x10 + 0x10 * block, 8, PARSE).malloc(0, 0x90_0000 + block, 1, MAIN);
    }
    let error = error(script, &region("parse_document", "AS3", "sure"));
    assert!(error.what().contains("a plan: rule 1 has too many instances"), "{error}");
}

/// Changes the manifest of a trace on disk, and opens the trace again.
fn with_manifest(trace: &Trace, change: impl Fn(&mut Manifest)) -> Trace {
    let mut manifest = trace.manifest().clone();
    change(&mut manifest);
    let text = serde_json::to_string(&manifest).unwrap();
    std::fs::write(trace.folder().join("manifest.json"), text).unwrap();
    Trace::open(trace.folder()).unwrap()
}

#[test]
fn the_validity_of_a_replay_lists_what_the_trace_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let mut script = Script::new();
    script.malloc(0, 0x10, 1, MAIN).free(0, 0x70, MAIN).realloc(0, 0x80, 0x90, 5, MAIN);
    script.record(op::LOST, loss::FULL, 0, 12);
    let trace = with_manifest(&script.trace(folder.path()), |manifest| {
        manifest.stream.ending = "cut".to_string();
        manifest.notes.window = Some("10s..70s".to_string());
        manifest.counts.missed_frees = 3;
    });
    let path = folder.path().join("ops");
    let compiled = compile(&trace, &Plan::default(), &Options::default(), &path).unwrap();
    let found: Vec<(Cause, u64)> = compiled.validity.iter().map(|v| (v.cause, v.count)).collect();
    let expected = [
        (Cause::Losses, 12),
        (Cause::Ending, 1),
        (Cause::Window, 1),
        (Cause::UnknownBlocks, 2),
        (Cause::MissedFrees, 3),
    ];
    assert_eq!(found, expected);
    assert!(compiled.validity[0].to_string().starts_with("12 events are missing"));
    assert!(compiled.validity[2].sentence.contains("10s..70s"));
    assert_eq!(OpFile::read(&path).text(0), ["malloc 1 slot 0", "realloc 5 slot 1", "end"]);
}

#[test]
fn a_sampled_trace_is_rejected_unless_the_caller_allows_it() {
    let header = mallard_trace::format::Header { sample_bytes: 4096, ..header() };
    let script = || {
        let mut script = Script::with(&header);
        script.malloc(0, 0x10, 1, MAIN);
        script
    };
    let error = error(script(), &Plan::default());
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.what().starts_with("the trace is sampled"), "{error}");
    let options = Options { allow_samples: true, ..Options::default() };
    let (_, compiled) = compiled_with(script(), &Plan::default(), &options);
    assert_eq!((compiled.validity[0].cause, compiled.validity[0].count), (Cause::Sampled, 4096));
}

#[test]
fn only_one_process_of_a_trace_is_compiled() {
    let script = || {
        let mut script = Script::new();
        script.malloc(0, 0x10, 1, MAIN);
        script.process(2, "fork 1 /bin/a").free(5, 0x10, MAIN);
        script.malloc(5, 0x20, 2, MAIN).malloc(5, 0x30, 3, MAIN);
        script
    };
    let (file, compiled_2) = compiled(script(), &Plan::default());
    assert_eq!((compiled_2.process, file.recorded.as_slice()), (2, &[5][..]));
    assert_eq!(file.text(0), ["malloc 2 slot 0", "malloc 3 slot 1", "end"]);
    let causes: Vec<Cause> = compiled_2.validity.iter().map(|v| v.cause).collect();
    assert_eq!(causes, [Cause::UnknownBlocks, Cause::OtherProcesses]);
    let options = |process| Options { process: Some(process), ..Options::default() };
    let (file, compiled_1) = compiled_with(script(), &Plan::default(), &options(1));
    assert_eq!((compiled_1.process, file.text(0)[0].as_str()), (1, "malloc 1 slot 0"));
    let error = error_with(script(), &Plan::default(), &options(9));
    assert!(error.what().ends_with("has no events of the process 9"), "{error}");
    assert_eq!(error.help(), "the processes are 1 (/bin/a), 2 (/bin/a)");
}

#[test]
fn the_process_with_the_most_cpu_time_or_else_the_most_events_is_compiled() {
    for (cpu_of_second, wanted) in [(None, 2), (Some(3000), 1), (Some(7000), 2)] {
        let mut script = Script::new();
        script.malloc(0, 0x10, 1, MAIN).cpu(0, 5000);
        script.process(2, "fork 1 /bin/a");
        script.malloc(5, 0x20, 2, MAIN).malloc(5, 0x30, 3, MAIN);
        cpu_of_second.map(|ns| script.cpu(5, ns).wait(0));
        assert_eq!(compiled(script, &Plan::default()).1.process, wanted, "{cpu_of_second:?}");
    }
}

#[test]
fn a_trace_without_events_cannot_be_replayed() {
    let error = error(Script::new(), &Plan::default());
    assert_eq!(error.kind(), ErrorKind::Missing);
    assert!(error.what().ends_with("a.mallard has no events"), "{error}");
}

#[test]
fn an_op_stream_file_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut script = Script::new();
    script.malloc(0, 0x10, 1, MAIN);
    let trace = script.trace(folder.path());
    let path = folder.path().join("no/such/ops");
    let error = compile(&trace, &Plan::default(), &Options::default(), &path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::System);
    assert!(error.what().starts_with("cannot write the op stream"), "{error}");
}

#[test]
fn events_of_traced_allocators_are_omitted_from_a_replay() {
    let folder = tempfile::tempdir().unwrap();
    let (_other, trace) = trace_of(&golden());
    let path = folder.path().join("ops");
    let compiled = compile(&trace, &Plan::default(), &Options::default(), &path).unwrap();
    let found = |cause| compiled.validity.iter().find(|v| v.cause == cause).map(|v| v.count);
    let left_out = [Cause::TracedAllocators, Cause::UnknownBlocks].map(found);
    let left_out: u64 = left_out.into_iter().flatten().sum();
    let marks = trace.manifest().counts.marks; // marks end regions, and call no allocator
    assert_eq!(compiled.calls + left_out + marks, events_of(&trace, compiled.process));
    assert!(left_out > 0 && compiled.calls > 0);
    assert_eq!(found(Cause::Losses), Some(2));
}

/// Returns the number of events of a process.
fn events_of(trace: &Trace, process: i32) -> u64 {
    let threads = trace.table(&THREADS).unwrap();
    let processes = threads.i64s("proc").unwrap().into_iter();
    let of = processes.zip(threads.i64s("events").unwrap());
    of.filter(|&(number, _)| number == i64::from(process)).map(|(_, events)| events as u64).sum()
}

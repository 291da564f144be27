//! Compares the regions that are found in a recording of a real program with the program's own
//! marks.
//!
//! Also tests the regions of functions that are left in other ways than by a return.
//!
//! The tests need `libmallard-record.so`, the replayer (MALLARD_RECORDER and MALLARD_REPLAY have
//! their paths), and compilers for C and C++.

use crate::support::Folder;
use mallard_trace::regions::{find, Limits, Region};
use mallard_trace::replay::End;
use mallard_trace::Trace;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Returns whether a region has enough instances, and none of its blocks outlives its instance.
fn is_region(region: &Region) -> bool {
    region.escapes == 0 && region.instances >= 30
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn nine_of_ten_marked_regions_are_found_and_nine_of_ten_found_regions_are_right() {
    let folder = Folder::new();
    let source = source("regions.cpp");
    let (mut right, mut wrong, mut missed) = (Vec::new(), Vec::new(), Vec::new());
    for level in ["-O0", "-O2"] {
        let program = folder.compile_file("regions", &source, &["-std=c++20", "-pthread", level]);
        let ran = folder.mallard(&["record", "-q", "--force", "--", &program]);
        assert_eq!(ran.status(), 0, "{}", ran.errors());
        let trace = Trace::open(&folder.path("regions.mallard")).unwrap();
        let limits = Limits { least_share: 0.001, ..Limits::default() };
        let all = find(&trace, limits).unwrap().all;
        let marked: Vec<&Region> = all.iter().filter(|region| region.ends == End::Exact).collect();
        assert_eq!(marked.len(), 19, "the functions that mark their calls");
        // Each resume of a coroutine is a call of its function, but the coroutine's blocks live
        // until it is destroyed.
        let of_coroutine = |region: &&Region| region.shown.contains("generate");
        assert!(all.iter().any(|region| of_coroutine(&region)), "the coroutine allocates");
        let found = all.iter().filter(of_coroutine).find(|region| is_region(region));
        assert!(found.is_none(), "{found:?}");
        for truth in marked {
            let name = format!("{} {level}", truth.function);
            let plain = |region: &&Region| {
                let shown = region.shown.split_whitespace().last();
                region.ends != End::Exact && shown == Some(truth.function.as_str())
            };
            let is_found = all.iter().filter(plain).any(is_region);
            match (is_region(truth), is_found) {
                (true, true) => right.push(name),
                (true, false) => missed.push(name),
                (false, true) => wrong.push(name),
                (false, false) => {}
            }
        }
    }
    let all = format!("right {right:?}, wrong {wrong:?}, missed {missed:?}");
    println!("{all}");
    let (found, there) = (right.len() + wrong.len(), right.len() + missed.len());
    assert!(right.len() * 10 >= found * 9, "precision: {all}");
    assert!(right.len() * 10 >= there * 9, "recall: {all}");
    assert!(wrong.iter().all(|name| name.starts_with("next_line")), "{all}");
}

/// The number of calls of the functions in tests/programs/jumps.c and throws.cpp.
const CALLS: u64 = 50;

/// Returns whether a call is left by a jump or an exception.
fn is_left(call: u64) -> bool {
    call % 2 == 1
}

/// Records a program with arguments, and returns the regions of a function.
fn recorded(folder: &Folder, program: &[&str], function: &str) -> Vec<Region> {
    let record = ["record", "-q", "--force", "-o", "run.mallard", "--"];
    let ran = folder.mallard(&[&record, program].concat());
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    let trace = Trace::open(&folder.path("run.mallard")).unwrap();
    let all = find(&trace, Limits { least_share: 0.0, ..Limits::default() }).unwrap().all;
    assert!(all.iter().all(|region| !region.shown.contains('[')), "{all:#?}");
    all.into_iter().filter(|region| region.shown == function).collect()
}

/// Returns the region of a function whose instances end with its calls.
fn sure(regions: &[Region]) -> &Region {
    let found = regions.iter().find(|region| region.ends == End::Sure).unwrap();
    assert_eq!((found.instances, found.unfinished), (CALLS, 0), "{found:#?}");
    assert!(found.lanes.windows(2).all(|pair| pair[0].t1 < pair[1].t0), "{:#?}", found.lanes);
    found
}

/// Returns the strategies that drop the memory of a function as a whole, and that `mallard advise`
/// replays or could replay for the program in the directory.
fn wink_outs(folder: &Folder, function: &str) -> Vec<String> {
    let ran = folder.mallard(&["advise", "run", "--json", "--no-try", "--budget", "2s"]);
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    let advice: Value = serde_json::from_str(&ran.out()).unwrap();
    let is_possible = |row: &&Value| {
        let why = row["dropped"].as_str().unwrap_or_default();
        !why.starts_with("no rule proposes it") && !why.starts_with("is the same as")
    };
    let rows = advice["matrix"].as_array().unwrap().iter();
    let of_function = rows.filter(|row| row["region"] == function).filter(is_possible);
    let names = of_function.map(|row| row["name"].as_str().unwrap().to_string());
    names
        .filter(|name| ["AS4", "AS6", "AS8", "AS10", "AS12", "AS14"].contains(&name.as_str()))
        .collect()
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn a_call_ended_by_longjmp_is_an_instance_and_its_unfreed_blocks_escape() {
    let folder = Folder::new();
    for level in ["-O0", "-O1"] {
        let program = folder.compile_file("jumps", &source("jumps.c"), &["-g", level]);
        for (how, function, added) in [
            ("caller", "parse_document", 0),
            ("nobody", "parse_document", 0),
            ("self", "parse_document", 0),
            ("recursive", "parse_part", 1),
        ] {
            let regions = recorded(&folder, &[&program, how], function);
            let region = sure(&regions);
            let blocks = |call| if is_left(call) { 60 } else { 100 + call % 7 + added };
            let escapes = |call| if is_left(call) && how != "self" { 60 } else { 0 };
            let found: Vec<_> = region.lanes.iter().map(|of| (of.blocks, of.escapes)).collect();
            let expected: Vec<_> = (0..CALLS).map(|call| (blocks(call), escapes(call))).collect();
            assert_eq!(found, expected, "{how} {level}");
            assert_eq!(region.escapes, (0..CALLS).map(escapes).sum::<u64>(), "{how} {level}");
            // No other region of the function hides the blocks that escape.
            let hides = |other: &&Region| other.escapes < region.escapes;
            assert_eq!(regions.iter().find(hides), None, "{how} {level}");
            if level == "-O1" {
                let possible = wink_outs(&folder, function);
                let expected: &[&str] = if how == "self" { &["AS4"] } else { &[] };
                assert_eq!(possible, expected, "{how}");
            }
        }
    }
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn calls_ended_by_longjmp_in_a_loop_without_other_events_hide_no_escapes() {
    let folder = Folder::new();
    let program = folder.compile_file("jumps", &source("jumps.c"), &["-g", "-O1"]);
    // A call that returns and the next call, which is left by a jump, have the same call stacks.
    let regions = recorded(&folder, &[&program, "caller", "quiet"], "parse_document");
    assert!(regions.iter().all(|region| region.escapes == 60 * CALLS / 2), "{regions:#?}");
    assert!(wink_outs(&folder, "parse_document").is_empty());
    // If each call frees its blocks before the jump, the last free ends the instance.
    let regions = recorded(&folder, &[&program, "self", "quiet"], "parse_document");
    let drained = regions.iter().find(|region| region.ends == End::Drained).unwrap();
    assert_eq!((drained.instances, drained.escapes), (CALLS, 0), "{drained:#?}");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn a_call_ended_by_an_exception_is_an_instance_that_only_the_exception_escapes() {
    let folder = Folder::new();
    for level in ["-O0", "-O1"] {
        let options = ["-std=c++20", "-g", level];
        let program = folder.compile_file("throws", &source("throws.cpp"), &options);
        let regions = recorded(&folder, &[&program], "parse_document");
        let region = sure(&regions);
        let found: Vec<_> = region.lanes.iter().map(|of| of.escapes).collect();
        let expected: Vec<_> = (0..CALLS).map(|call| u64::from(is_left(call))).collect();
        assert_eq!(found, expected, "{level}");
        let [site] = &region.escape_sites[..] else { panic!("{:#?}", region.escape_sites) };
        assert_eq!((site.function.as_str(), site.blocks), ("__cxa_allocate_exception", CALLS / 2));
        assert!(regions.iter().all(|other| other.escapes > 0), "{regions:#?}");
        if level == "-O1" {
            assert!(wink_outs(&folder, "parse_document").is_empty());
        }
    }
}

/// The first call of an operator looks the operator up. The blocks of that lookup belong to the
/// dynamic linker.
#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn looking_up_operator_new_for_a_plugin_of_a_c_program_adds_no_blocks_to_the_plugin() {
    let folder = Folder::new();
    let source = |file| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(file);
    let plugin = folder.compile_file("work.so", &source("late_plugin.cpp"), &["-shared", "-fPIC"]);
    let program = folder.compile_file("host", &source("late_plugin.c"), &["-ldl"]);
    let ran = folder.mallard(&["record", "-q", "--force", "--", &program, &plugin]);
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    let all = find(&Trace::open(&folder.path("host.mallard")).unwrap(), Limits::default()).unwrap();
    assert!(all.all.iter().all(|region| region.shown != "work" || region.escapes == 0));
    let calls = |region: &&Region| region.shown == "work" && region.ends == End::Drained;
    assert_eq!(all.all.iter().find(calls).map(|region| region.instances), Some(300));
}

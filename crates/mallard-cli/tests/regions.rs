//! Compares the regions that are found in a recording of a real program with the program's own marks.
//!
//! The test needs `libmallard-record.so`, whose path is in MALLARD_RECORDER, and a C++ compiler.

mod support;

use mallard_trace::regions::{find, Limits, Region};
use mallard_trace::replay::End;
use mallard_trace::Trace;
use std::path::Path;
use support::Folder;

/// Whether a region has enough instances, and none of its blocks outlives its instance.
fn is_region(region: &Region) -> bool {
    region.escapes == 0 && region.instances >= 30
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn nine_of_ten_regions_that_a_program_marks_are_found_and_nine_of_ten_that_are_found_are_right() {
    let folder = Folder::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/regions.cpp");
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
        // A resume of a coroutine is a call of its function, but its blocks live until it is destroyed.
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

//! Tests the region marks that a Rust program sets, in a recording of the program.
//!
//! The test needs `libmallard-record.so`, whose path is in MALLARD_RECORDER. The recorded program
//! is the test program itself, which then runs the test that sets the marks.

use crate::support::{self, Folder};
use local::trace::region;
use mallard_trace::regions::{find, Limits, Region};
use mallard_trace::replay::End;
use mallard_trace::Trace;

/// The environment variable that is set in the recorded process.
const RECORDED: &str = "MALLARD_TEST_OF_MARKS";
/// The number of calls of each function.
const CALLS: u64 = 40;

/// Allocates and frees in a region.
fn convert(size: usize) -> usize {
    let _marked = region("convert");
    let parts: Vec<Vec<u8>> = (0..9).map(|part| vec![1; size + part]).collect();
    parts.iter().map(Vec::len).sum()
}

/// Leaves a region by a panic.
fn fail() {
    let _marked = region("fail");
    let part = std::hint::black_box(vec![2_u8; 77]);
    assert!(part.is_empty(), "always");
}

#[test]
fn region_marks_have_no_effect_in_a_program_that_is_not_recorded() {
    assert_eq!(convert(10), 126);
    if std::env::var_os(RECORDED).is_none() {
        return;
    }
    std::panic::set_hook(Box::new(|_| ()));
    for call in 1..CALLS {
        convert(call as usize);
        assert!(std::panic::catch_unwind(fail).is_err());
    }
    // A name may be long, and may contain a zero byte.
    drop(region(&"long ".repeat(99)));
    drop(region("cut\0here"));
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn region_marks_of_a_rust_program_are_in_its_recording() {
    let folder = Folder::new();
    let own = std::env::current_exe().unwrap();
    let name = "marks::region_marks_have_no_effect_in_a_program_that_is_not_recorded";
    let command = ["record", "-q", "-o", "marked", "--", own.to_str().unwrap(), "--exact", name];
    let ran = folder.command(support::MALLARD).args(command).env(RECORDED, "1").output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let trace = Trace::open(&folder.path("marked.mallard")).unwrap();
    let limits = Limits { least_share: 0.0, regions: usize::MAX, ..Limits::default() };
    let all = find(&trace, limits).unwrap().all;
    let of = |function: &str| {
        let is_it = |of: &&Region| of.ends == End::Exact && of.function == function;
        all.iter().find(is_it).unwrap_or_else(|| panic!("{function} is not marked"))
    };
    let convert = of("convert");
    // Each call allocates one vector that contains nine vectors.
    assert_eq!((convert.instances, convert.blocks, convert.escapes), (CALLS, CALLS * 10, 0));
    assert_eq!(of("fail").instances, CALLS - 1);
}

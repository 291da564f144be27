//! The programs of `spec/`, which the C++ tests run too, and what becomes of wrong ones.
//! The files here are those of `tests/spec` in C++.

mod block_subject;
mod blocks;
mod element;
mod ground;
mod line;
mod program;
mod subject;

use block_subject::BlockSubject;
use line::{Held, Line};
use mallard::{Arena, Growth, Multipool};
use std::path::{Path, PathBuf};
use subject::{growth_from, State, Subject};

fn make(kind: &str, l: &mut Line, state: &State) -> Held<Option<Box<dyn Subject>>> {
    let source = state.ground.clone();
    let named = &state.named;
    Ok(Some(match kind {
        "arena" => match growth_from(l, Growth::new(), named)? {
            None => BlockSubject::boxed(Arena::new_in(source)),
            Some(growth) => BlockSubject::boxed(Arena::with_growth_in(growth, source)),
        },
        "multipool" => BlockSubject::boxed(Multipool::new_in(source)),
        _ => return Ok(None),
    }))
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec")
}

fn run_file(name: &str) {
    let text = std::fs::read_to_string(folder().join(format!("{name}.ops"))).unwrap();
    if let Err(failure) = program::run(make, &format!("spec/{name}.ops"), &text) {
        panic!("{failure}");
    }
}

fn run_text(text: &str) -> String {
    program::run(make, "spec/it.ops", text).err().unwrap_or_default()
}

macro_rules! programs {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                run_file(stringify!($name));
            }
        )*
        const PROGRAMS: &[&str] = &[$(stringify!($name)),*];
    };
}

programs! {
    alignment arena arena_objects exhaustion generations growth limits moved multipool
    object_pool pool shared_objects slot_map zero_size
}

#[test]
fn every_program_has_its_test() {
    let mut files: Vec<_> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "ops"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    files.sort();
    assert_eq!(files, PROGRAMS);
}

#[test]
fn what_is_true_runs() {
    let text = "# A comment.\n\narena first 4096 # and another\na = allocate 40 8\n\
                expect a holds\nin c++ expect a walks\n";
    assert_eq!(run_text(text), "");
}

#[test]
fn a_wrong_expectation_says_where_it_is() {
    assert_eq!(
        run_text("arena\na = allocate 40 8\n\nb = allocate 40 8\nexpect b is a\n"),
        "spec/it.ops:5: failed: expect b is a"
    );
    assert_eq!(
        run_text("multipool\n  expect live is 40 # no\n"),
        "spec/it.ops:2: failed: expect live is 40\n  live is 0"
    );
}

#[test]
fn what_is_not_of_the_language_is_refused() {
    for (text, line, why) in [
        ("arena\na = conjure 40 8\n", 2, "there is no verb conjure here"),
        ("multipool\na = insert 7\n", 2, "there is no verb insert here"),
        ("arena\na = allocate 40 8\nexpect a walks\n", 3, "there is no expectation walks here"),
        ("arena\nin c expect taken is 0\n", 2, "there is no language c"),
        ("a = allocate 40 8\n", 1, "there is no allocator yet"),
        ("arena\na = allocate 40 8 8\n", 2, "nothing should follow, but there is 8"),
        ("arena\na = allocate 4O 8\n", 2, "4O should be bytes"),
        ("arena\nfree a\n", 2, "there is no a"),
        ("arena\na = allocate 8 8\nfree a\nfree a\n", 4, "a is free"),
        ("arena last 4096\n", 1, "growth has no last"),
    ] {
        let statement = text.lines().nth(line - 1).unwrap();
        let said = format!("spec/it.ops:{line}: failed: {statement}\n  {why}");
        assert_eq!(run_text(text), said);
    }
}

#[test]
fn a_call_that_does_not_fail_is_seen() {
    assert_ne!(run_text("arena\nrefuses allocate 40 8\n"), "");
    assert_ne!(run_text("arena\nthrows free a\n"), "");
}

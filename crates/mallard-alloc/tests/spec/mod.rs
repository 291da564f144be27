//! Runs the programs of `spec/`, which the C++ tests run too, and tests that invalid programs fail.
//! The files of this test correspond to the files of the C++ tests in `tests/spec`.
#![cfg(feature = "std")]

mod block_subject;
mod blocks;
mod element;
mod ground;
mod key_subject;
mod line;
mod object_subject;
mod program;
mod subject;

use block_subject::BlockSubject;
use element::{Aligned, Element, Empty, Plain};
use key_subject::KeySubject;
use line::{broken, Held, Line};
use mallard::handles::{Atomic, Counts, Local};
use mallard::sync::{self, Growing};
use mallard::{Arena, CountedPool, Growth, Key32, Key64, Multipool, ObjectPool, Pool};
use object_subject::ObjectSubject;
use std::alloc::Layout;
use std::path::Path;
use subject::{growth_from, State, Subject};

mallard::key_type! {
    struct SmallKey(4, 2);
    struct SmallWrappingKey(4, 2, wrapping);
}

type Made = Held<Box<dyn Subject>>;

/// A threading mode in which every program runs. Allocators without modes ignore the mode.
/// `sync::LockFree` is missing, because its pools do not grow and the programs need pools that
/// grow.
trait Manner: 'static {
    type Mode: Growing + 'static;
    type Counts: Counts + 'static;
    /// The mode for pools with a limit. It differs for `ThreadCached`, whose thread caches use
    /// memory in addition to the limit.
    type Limited: Growing + 'static;
}
const MANNERS: [(&str, program::Maker); 3] =
    [("one thread", make::<One>), ("a mutex", make::<Locked>), ("cached", make::<Cached>)];

macro_rules! manners {
    ($($name:ident: $mode:ty, $counts:ty, $limited:ty;)*) => {
        $(
            struct $name;
            impl Manner for $name {
                type Mode = $mode;
                type Counts = $counts;
                type Limited = $limited;
            }
        )*
    };
}

manners! {
    One: sync::Unshared, Local, sync::Unshared;
    Locked: sync::Mutex, Atomic, sync::Mutex;
    Cached: sync::ThreadCached, Atomic, sync::Unshared;
}

fn make<M: Manner>(kind: &str, l: &mut Line, state: &State) -> Held<Option<Box<dyn Subject>>> {
    Ok(Some(match kind {
        "arena" => make_arena(l, state)?,
        "pool" => make_pool::<M>(l, state)?,
        "multipool" => BlockSubject::boxed(Multipool::new_in(state.ground.clone())),
        "object_pool" => make_object_pool::<M>(l, state),
        "slot_map" => make_slot_map(l, state)?,
        _ => return Ok(None),
    }))
}

fn make_arena(l: &mut Line, state: &State) -> Made {
    let source = state.ground.clone();
    Ok(match growth_from(l, Growth::new(), &state.named)? {
        None => BlockSubject::boxed(Arena::new_in(source)),
        Some(growth) => BlockSubject::boxed(Arena::with_growth_in(growth, source)),
    })
}

fn make_pool<M: Manner>(l: &mut Line, state: &State) -> Made {
    let source = state.ground.clone();
    let bytes = l.number("bytes of a block", &state.named)?;
    let align = l.number("the alignment of a block", &state.named)?;
    let Ok(block) = Layout::from_size_align(bytes, align) else {
        return broken("no layout is like that");
    };
    let usual = Growth { first: 64 << 10, ..Growth::new() };
    Ok(match growth_from(l, usual, &state.named)? {
        None => BlockSubject::boxed(Pool::<M::Mode>::new_in(block, source)),
        Some(growth) if growth.limit == usize::MAX => {
            BlockSubject::boxed(Pool::<M::Mode>::with_growth_in(block, growth, source))
        }
        Some(growth) => {
            BlockSubject::boxed(Pool::<M::Limited>::with_growth_in(block, growth, source))
        }
    })
}

fn make_object_pool<M: Manner>(l: &mut Line, state: &State) -> Box<dyn Subject> {
    fn of<T: Element, M: Manner>(state: &State) -> Box<dyn Subject> {
        ObjectSubject::boxed(ObjectPool::<T, M::Mode>::new_in(state.ground.clone()))
    }
    if l.take("empty") {
        of::<Empty, M>(state)
    } else if l.take("aligned") {
        of::<Aligned, M>(state)
    } else if l.take("shared") {
        let source = state.ground.clone();
        ObjectSubject::boxed(CountedPool::<Plain, M::Counts, M::Mode>::new_in(source))
    } else {
        of::<Plain, M>(state)
    }
}

fn make_slot_map(l: &mut Line, state: &State) -> Made {
    let source = state.ground.clone();
    let index = l.number("bits of an index", &state.named)?;
    let generation = l.number("bits of a generation", &state.named)?;
    Ok(match (index, generation, l.take("wrapping")) {
        (20, 12, false) => KeySubject::<Key32>::boxed(source),
        (32, 32, false) => KeySubject::<Key64>::boxed(source),
        (4, 2, false) => KeySubject::<SmallKey>::boxed(source),
        (4, 2, true) => KeySubject::<SmallWrappingKey>::boxed(source),
        _ => return broken("keys are 20 12, 32 32, 4 2, or 4 2 wrapping"),
    })
}

fn run_in_all_manners(path: &str, text: &str) {
    for (manner, make) in MANNERS {
        if let Err(failure) = program::run(make, path, text) {
            panic!("{failure}\n  in this manner: {manner}");
        }
    }
}

fn run_text(text: &str) -> String {
    program::run(MANNERS[0].1, "spec/it.ops", text).err().unwrap_or_default()
}

macro_rules! programs {
    ($($(#[$meta:meta])* $name:ident)*) => {
        $(
            #[test]
            $(#[$meta])*
            fn $name() {
                let path = concat!("spec/", stringify!($name), ".ops");
                let text = include_str!(concat!("../../spec/", stringify!($name), ".ops"));
                run_in_all_manners(path, text);
            }
        )*
        const PROGRAMS: &[&str] = &[$(stringify!($name)),*];
    };
}

// Miri skips the programs with thousands of steps.
programs! {
    #[cfg_attr(miri, ignore)]
    alignment
    arena
    arena_objects
    #[cfg_attr(miri, ignore)] exhaustion
    generations
    #[cfg_attr(miri, ignore)]
    growth
    #[cfg_attr(miri, ignore)]
    limits
    moved
    #[cfg_attr(miri, ignore)] multipool
    #[cfg_attr(miri, ignore)] object_pool
    #[cfg_attr(miri, ignore)] pool
    shared_objects
    #[cfg_attr(miri, ignore)] slot_map
    zero_size
}

#[test]
#[cfg_attr(miri, ignore)]
fn every_program_in_the_specification_has_a_test() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("spec");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "ops"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    files.sort();
    assert_eq!(files, PROGRAMS);
}

#[test]
fn a_program_whose_expectations_hold_passes() {
    let text = "# A comment.\n\narena first 4096 # and another\na = allocate 40 8\n\
                expect a holds\nin c++ expect a walks\n";
    assert_eq!(run_text(text), "");
}

#[test]
fn the_error_for_an_unmet_expectation_names_its_line() {
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
fn an_invalid_line_in_a_program_is_an_error() {
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
fn a_call_that_succeeds_although_it_must_fail_is_an_error() {
    assert_ne!(run_text("arena\nrefuses allocate 40 8\n"), "");
    assert_ne!(run_text("arena\nthrows free a\n"), "");
}

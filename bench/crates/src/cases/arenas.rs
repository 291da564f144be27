//! Repeats the benchmarks of the crate bumpalo, in which values are freed together. bump-scope and
//! blink-alloc use the same benchmarks.
//!
//! As in the originals, `black_box` is applied to the arena, to the value and to the returned
//! reference, so that the compiler cannot remove the work.

use crate::contenders::arenas::{Any, Arena, ArenaOf, Blink, BumpScope, Bumpalo, TypedArena};
use crate::contenders::mallard_arenas::{MallardArena, MallardTypedArena};
use crate::harness::{clock, timed, Body, Entrant, Experiment, Why};
use std::hint::black_box;
use std::marker::PhantomData;

/// The number of values that bumpalo's benchmarks make in a pass.
const VALUES: usize = 10_000;

/// A program that fills an arena once in each pass. After the pass the arena is reset.
pub trait Program: Copy + 'static {
    /// Returns the number of bytes that a pass needs.
    fn room(self) -> usize;
    fn refusal<A: Arena>(self) -> Option<Why> {
        None
    }
    fn pass<A: Arena>(self, arena: &A);
}

/// Measures an arena that already has enough memory. The arena was used once before the clock
/// starts, and it is reset after each pass.
pub fn kept<A: Arena, G: Program>(program: G) -> Entrant {
    entrant::<A, G>(program, move || {
        let mut arena = A::with_room(program.room());
        timed(move || {
            program.pass(&arena);
            arena.reset();
        })
    })
}

/// Measures an arena that begins without memory. Each reset keeps as much memory as the crate can.
pub fn grown<A: Arena, G: Program>(program: G) -> Entrant {
    entrant::<A, G>(program, move || {
        let mut arena = A::new();
        timed(move || {
            program.pass(&arena);
            arena.reset();
        })
    })
}

/// Measures a new arena in each pass. The arena begins without memory.
pub fn fresh<A: Arena, G: Program>(program: G) -> Entrant {
    entrant::<A, G>(program, move || {
        timed(move || {
            let arena = A::new();
            program.pass(&arena);
        })
    })
}

/// Measures only the reset of a new arena that has grown.
pub fn only_reset<A: Arena, G: Program>(program: G) -> Entrant {
    entrant::<A, G>(program, move || {
        Box::new(move |passes, spent| {
            let ns_per_tick = clock::ns_per_tick();
            for _ in 0..passes {
                let mut arena = A::new();
                program.pass(&arena);
                let from = clock::ticks();
                arena.reset();
                black_box(&arena);
                spent[0] += (clock::ticks() - from) as f64 * ns_per_tick;
            }
        })
    })
}

fn entrant<A: Arena, G: Program>(program: G, make: impl Fn() -> Body + 'static) -> Entrant {
    let prepare = move |_| program.refusal::<A>().map_or_else(|| Ok(make()), Err);
    Entrant { name: A::name(), prepare: Box::new(prepare) }
}

/// Calls `$way` for every contender that can allocate blocks of any layout.
macro_rules! everyone {
    ($way:ident, $program:expr) => {
        vec![
            $way::<MallardArena<1>, _>($program),
            $way::<MallardArena<8>, _>($program),
            $way::<Bumpalo, _>($program),
            $way::<BumpScope<true>, _>($program),
            $way::<BumpScope<false>, _>($program),
            $way::<Blink, _>($program),
        ]
    };
}
pub(super) use everyone;

/// Calls `$way` for every contender that can allocate values of one type.
macro_rules! everyone_of {
    ($way:ident, $value:ty) => {
        vec![
            $way::<$value, Any<MallardArena<1>>>(),
            $way::<$value, Any<MallardArena<8>>>(),
            $way::<$value, MallardTypedArena<$value>>(),
            $way::<$value, Any<Bumpalo>>(),
            $way::<$value, Any<BumpScope<true>>>(),
            $way::<$value, Any<BumpScope<false>>>(),
            $way::<$value, Any<Blink>>(),
            $way::<$value, TypedArena<$value>>(),
        ]
    };
}

pub fn experiments() -> Vec<Experiment> {
    let mut all = values::<Small>("small", "a byte");
    all.extend(values::<Big>("big", "256 bytes"));
    all
}

/// The smaller of the two types in bumpalo's benchmark.
#[derive(Clone, Copy, Default)]
struct Small(#[allow(dead_code)] u8);
#[derive(Clone, Copy, Default)]
struct Big(#[allow(dead_code)] [usize; 32]);

fn values<T: Default + Copy + 'static>(name: &str, what: &str) -> Vec<Experiment> {
    let of = |kind: &str, how: &str, entrants| {
        let asks = format!("10,000 values of {what} each {how}. ns of one");
        Experiment::new(format!("bumpalo/{kind}/{name}"), asks, entrants).ops(VALUES)
    };
    vec![
        of("alloc", "are put into a new arena with room for them", everyone_of!(into_new, T))
            .variant("faithful"),
        of("alloc", "are put into an arena that is then reset", everyone_of!(into_kept, T))
            .variant("corrected"),
        of(
            "alloc-with",
            "are made in place in an arena that is then reset",
            everyone!(kept, Made::<T>(PhantomData)),
        ),
        of(
            "try-alloc",
            "are put by try_alloc into an arena that is then reset",
            everyone!(kept, Tried::<T>(PhantomData)),
        ),
    ]
}

#[inline(always)]
fn put_values<T: Default, A: ArenaOf<T>>(arena: &A) {
    for _ in 0..VALUES {
        black_box(black_box(arena).alloc(black_box(T::default())));
    }
}

/// Measures in the same way as bumpalo's benchmark. Each pass makes a new arena, so the time
/// includes the page faults on its memory.
fn into_new<T: Default + 'static, A: ArenaOf<T>>() -> Entrant {
    let prepare = |_| Ok(timed(|| put_values::<T, A>(&A::with_room_for(VALUES))));
    Entrant { name: A::name(), prepare: Box::new(prepare) }
}

fn into_kept<T: Default + 'static, A: ArenaOf<T>>() -> Entrant {
    let prepare = |_| {
        let mut arena = A::with_room_for(VALUES);
        Ok(timed(move || {
            put_values::<T, A>(&arena);
            arena.reset();
        }))
    };
    Entrant { name: A::name(), prepare: Box::new(prepare) }
}

#[derive(Clone, Copy)]
struct Made<T>(PhantomData<fn() -> T>);
#[derive(Clone, Copy)]
struct Tried<T>(PhantomData<fn() -> T>);

macro_rules! program_of_values {
    ($program:ident, |$arena:ident| $pass:expr) => {
        impl<T: Default + Copy + 'static> Program for $program<T> {
            fn room(self) -> usize {
                VALUES * size_of::<T>()
            }
            #[inline(always)]
            fn pass<A: Arena>(self, arena: &A) {
                for _ in 0..VALUES {
                    let $arena = black_box(arena);
                    black_box($pass);
                }
            }
        }
    };
}

program_of_values!(Made, |arena| arena.alloc_with(|| black_box(T::default())));
program_of_values!(Tried, |arena| arena.try_alloc(black_box(T::default())));

//! Repeats the second benchmark of bumpalo and blink-alloc. It uses an arena as an `Allocator`, and
//! makes texts in an arena.

use super::arenas::{everyone, fresh, grown, kept, only_reset, Program};
use crate::contenders::arenas::{Arena, Blink, BumpScope, Bumpalo, Via};
use crate::contenders::mallard_arenas::MallardArena;
use crate::harness::{Entrant, Experiment, Why};
use allocator_api2::vec::Vec as VecIn;
use std::alloc::Layout;
use std::hint::black_box;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// The number of blocks allocated in a pass. A prime, so that no period of an allocator (such as
/// the number of blocks in a chunk) divides it.
const BLOCKS: usize = 10_007;

pub fn experiments() -> Vec<Experiment> {
    let mut all = blocks();
    all.extend(changes());
    all.extend(vectors());
    all.extend(texts());
    all.extend(lives());
    all
}

fn of_blocks(name: &str, what: &str, entrants: Vec<Entrant>) -> Experiment {
    let asks = format!("10,007 blocks {what} in an arena that is then reset. ns of one");
    Experiment::new(format!("bumpalo/{name}"), asks, entrants).ops(BLOCKS)
}

/// Allocates blocks for a type.
#[derive(Clone, Copy)]
struct For<T>(PhantomData<T>);

impl<T: Copy + 'static> Program for For<T> {
    fn room(self) -> usize {
        size_of::<T>() * BLOCKS
    }
    #[inline(always)]
    fn pass<A: Arena>(self, arena: &A) {
        for _ in 0..BLOCKS {
            black_box(black_box(arena).allocate(Layout::new::<T>()));
        }
    }
}

/// Allocates blocks of a number of bytes that is not known at compile time, as a Vec does.
#[derive(Clone, Copy)]
struct Bytes(usize);

impl Program for Bytes {
    fn room(self) -> usize {
        self.0 * BLOCKS
    }
    #[inline(always)]
    fn pass<A: Arena>(self, arena: &A) {
        for _ in 0..BLOCKS {
            let layout = Layout::array::<u8>(black_box(self.0)).expect("it is small");
            black_box(black_box(arena).allocate(layout));
        }
    }
}

fn blocks() -> Vec<Experiment> {
    let mut all = vec![
        of_blocks("allocate/u8", "for a u8 each", everyone!(kept, For::<u8>(PhantomData))),
        of_blocks("allocate/u32", "for a u32 each", everyone!(kept, For::<u32>(PhantomData))),
        of_blocks("allocate/u64", "for a u64 each", everyone!(kept, For::<u64>(PhantomData))),
        of_blocks("allocate/u128", "for a u128 each", everyone!(kept, For::<u128>(PhantomData))),
    ];
    for bytes in [0, 1, 7, 8, 31, 32] {
        let name = format!("allocate/{bytes}B");
        let what = format!("of {bytes} bytes each, a length that is not known before,");
        let e = of_blocks(&name, &what, everyone!(kept, Bytes(bytes)));
        all.push(if [1, 8, 32].contains(&bytes) { e } else { e.not_in_brief() });
    }
    all
}

/// Allocates a block for one type, then reallocates it for another type. The other type is larger
/// or smaller.
#[derive(Clone, Copy)]
struct Change<From, To>(PhantomData<(From, To)>);

impl<From: Copy + 'static, To: Copy + 'static> Program for Change<From, To> {
    fn room(self) -> usize {
        // Leaves room for two copies of each block, because a block that cannot be changed in place
        // is copied.
        (size_of::<From>() + size_of::<To>()) * BLOCKS
    }
    #[inline(always)]
    fn pass<A: Arena>(self, arena: &A) {
        let (from, to) = (Layout::new::<From>(), Layout::new::<To>());
        for _ in 0..BLOCKS {
            let Some(block) = black_box(arena).allocate(from) else { continue };
            let arena = black_box(arena);
            let block: NonNull<u8> = block.cast();
            let changed = if to.size() >= from.size() {
                // SAFETY: the block was just allocated for `from`, and `to` is not smaller.
                unsafe { arena.grow(block, from, to) }
            } else {
                // SAFETY: the block was just allocated for `from`, and `to` is smaller.
                unsafe { arena.shrink(block, from, to) }
            };
            black_box(changed);
        }
    }
}

/// Frees either the newest block, or the block allocated before that one.
#[derive(Clone, Copy)]
struct GiveBack {
    is_last: bool,
}

impl Program for GiveBack {
    fn room(self) -> usize {
        2 * size_of::<u32>() * BLOCKS
    }
    #[inline(always)]
    fn pass<A: Arena>(self, arena: &A) {
        let layout = Layout::new::<u32>();
        for _ in 0..BLOCKS {
            let Some(block) = black_box(arena).allocate(layout) else { continue };
            if !self.is_last {
                black_box(black_box(arena).allocate(layout));
            }
            // SAFETY: the block was just allocated for this layout.
            unsafe { black_box(arena).deallocate(black_box(block.cast()), layout) };
        }
    }
}

macro_rules! changes {
    ($($name:literal, $what:literal, $from:ty => $to:ty;)*) => {
        vec![$(of_blocks(
            $name,
            concat!("for a ", $what),
            everyone!(kept, Change::<$from, $to>(PhantomData)),
        )),*]
    };
}

fn changes() -> Vec<Experiment> {
    let mut all = changes! {
        "grow/same-align", "u32, grown to two,", u32 => [u32; 2];
        "grow/smaller-align", "u32, grown to four u16,", u32 => [u16; 4];
        "grow/larger-align", "u32, grown to a u64,", u32 => u64;
        "shrink/same-align", "pair of u32, shrunk to one,", [u32; 2] => u32;
        "shrink/smaller-align", "u32, shrunk to a u16,", u32 => u16;
        "shrink/larger-align", "four u16, shrunk to a u32,", [u16; 4] => u32;
    };
    let last = everyone!(kept, GiveBack { is_last: true });
    let before = everyone!(kept, GiveBack { is_last: false });
    all.push(of_blocks("deallocate/last", "for a u32 each, freed immediately,", last));
    all.push(of_blocks("deallocate/not-last", "for two u32, the first freed,", before));
    all
}

#[derive(Clone, Copy)]
enum Vector {
    Push,
    ReserveExact,
}

impl Program for Vector {
    fn room(self) -> usize {
        // Leaves room for several copies of the vector, because it is copied when it grows.
        size_of::<usize>() * BLOCKS * 10
    }
    #[inline(always)]
    fn pass<A: Arena>(self, arena: &A) {
        match self {
            Vector::Push => {
                let mut vector = VecIn::new_in(Via(black_box(arena)));
                (0..BLOCKS).for_each(|i| vector.push(i));
                black_box(&vector);
            }
            Vector::ReserveExact => {
                let mut vector = VecIn::<u32, _>::new_in(Via(black_box(arena)));
                (0..BLOCKS).for_each(|i| vector.reserve_exact(i));
                black_box(&vector);
            }
        }
    }
}

fn vectors() -> Vec<Experiment> {
    let asks = "A Vec in an arena gets 10,007 usize, and is dropped. ns of one";
    let push = Experiment::new("bumpalo/vec/push", asks, everyone!(kept, Vector::Push));
    let asks = "A Vec in an arena grows by one u32 at a time, to 10,007. ns of one step";
    let case = "bumpalo/vec/reserve-exact";
    let exact = Experiment::new(case, asks, everyone!(kept, Vector::ReserveExact));
    vec![push.ops(BLOCKS), exact.ops(BLOCKS)]
}

/// Makes texts and slices, 1,000 of each length.
#[derive(Clone, Copy)]
enum Text {
    Str(usize),
    Slice(usize),
    Collect(usize),
    /// Formats a text of the given number of letters. bumpalo's benchmark always has 13 letters,
    /// because it uses the number only as a maximum.
    Format(usize),
}

const TEXTS: usize = 1000;
static LETTERS: [u8; 16 << 10] = [b'x'; 16 << 10];

impl Text {
    fn bytes(self) -> usize {
        match self {
            Text::Str(n) | Text::Slice(n) | Text::Format(n) => n,
            Text::Collect(n) => n * size_of::<u32>(),
        }
    }
}

impl Program for Text {
    fn room(self) -> usize {
        (self.bytes() + 64) * 4 * TEXTS
    }
    fn refusal<A: Arena>(self) -> Option<Why> {
        let formats = !matches!(self, Text::Format(_)) || A::FORMATS;
        (!formats).then_some("it formats no text")
    }
    #[inline(always)]
    fn pass<A: Arena>(self, arena: &A) {
        let bytes = &LETTERS[..self.bytes().min(LETTERS.len())];
        // SAFETY: the bytes are ASCII letters.
        let text = unsafe { std::str::from_utf8_unchecked(bytes) };
        for _ in 0..TEXTS {
            let arena = black_box(arena);
            match self {
                Text::Str(_) => {
                    black_box(arena.copy_str(black_box(text)));
                }
                Text::Slice(_) => {
                    black_box(arena.copy_slice(black_box(bytes)));
                }
                Text::Collect(n) => {
                    black_box(arena.collect((0..n).map(|_| black_box(0u32))));
                }
                Text::Format(n) => {
                    let (n, text) = black_box((n, text));
                    black_box(arena.format(format_args!("Hello {:.*}", n, text)));
                }
            }
        }
    }
}

fn texts() -> Vec<Experiment> {
    let of = |case: String, what: String, text| {
        let asks = format!("1,000 times {what} into an arena that is then reset. ns of one");
        Experiment::new(case, asks, everyone!(kept, text)).ops(TEXTS)
    };
    let mut all = Vec::new();
    for n in [16, 331, 16 << 10] {
        let (text, slice) = (format!("bumpalo/str/{n}"), format!("bumpalo/slice/{n}"));
        all.push(of(text, format!("a str of {n} bytes"), Text::Str(n)));
        all.push(of(slice, format!("a slice of {n} bytes"), Text::Slice(n)));
    }
    for n in [10, 640] {
        let case = format!("bumpalo/format/{n}");
        all.push(of(case, format!("\"Hello \" and {n} letters are formatted"), Text::Format(n)));
    }
    let case = "blink-alloc/from-iter/111".to_string();
    all.push(of(case, "111 u32 of an iterator".to_string(), Text::Collect(111)));
    all
}

fn lives() -> Vec<Experiment> {
    let first = Experiment::new(
        "bumpalo/warm-up",
        "A new arena allocates its first block, and is dropped. ns of all of it",
        everyone!(fresh, One),
    );
    let reset = Experiment::new(
        "bumpalo/reset/10007",
        "An arena that has allocated 10,007 blocks for a u32, and grew, is reset. ns of the reset",
        everyone!(only_reset, For::<u32>(PhantomData)),
    );
    let again = Experiment::new(
        "bumpalo/reset-loop/10007",
        "An arena that began empty allocates 10,007 blocks for a u32 and is reset, again and \
         again. ns of one block",
        everyone!(grown, For::<u32>(PhantomData)),
    );
    let new = Experiment::new(
        "blink-alloc/warm-up/10007",
        "A new arena allocates 10,007 blocks for a u32, grows, and is dropped. ns of one block",
        everyone!(fresh, For::<u32>(PhantomData)),
    );
    // Sets a longer batch for the reset, because a reset takes only about 20 ns of a pass of 10,000
    // ns.
    vec![first, reset.batch_ns(2e4), again.ops(BLOCKS), new.ops(BLOCKS)]
}

/// Allocates one block for a u32.
#[derive(Clone, Copy)]
struct One;

impl Program for One {
    fn room(self) -> usize {
        64
    }
    #[inline(always)]
    fn pass<A: Arena>(self, arena: &A) {
        black_box(black_box(arena).allocate(Layout::new::<u32>()));
    }
}

//! Runs random programs on an arena, and compares the arena with a model, which is a list of the
//! blocks in use.

use crate::common::{Flaky, Random};
use mallard::arena::Mark;
use mallard::{Arena, BlockAllocator, Growth, Owns};
use std::alloc::Layout;
use std::ptr::NonNull;

/// A block in use, filled with `fill`.
#[derive(Clone, Copy)]
struct Live {
    data: NonNull<u8>,
    layout: Layout,
    fill: u8,
}

impl Live {
    fn range(&self) -> (usize, usize) {
        (self.data.addr().get(), self.data.addr().get() + self.layout.size())
    }
    fn write(&self, from: usize) {
        // SAFETY: the block has `layout.size()` bytes, and nothing else uses the block.
        unsafe { self.data.add(from).write_bytes(self.fill, self.layout.size() - from) }
    }
    fn holds(&self) -> bool {
        // SAFETY: all bytes were written.
        let bytes = unsafe { std::slice::from_raw_parts(self.data.as_ptr(), self.layout.size()) };
        bytes.iter().all(|byte| *byte == self.fill)
    }
}

struct Program<const M: usize> {
    random: Random,
    source: Flaky,
    arena: Arena<Flaky, M>,
    limit: usize,
    live: Vec<Live>,
    marks: Vec<(Mark, usize)>,
}

impl<const M: usize> Program<M> {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let source = Flaky::new();
        let limit = if random.below(2) == 0 { usize::MAX } else { 200 + random.below(20_000) };
        let first = 16 << random.below(9);
        let growth = match random.below(4) {
            0 => Growth::fixed(first),
            1 => Growth::linear(first, 1 + random.below(500)),
            2 => Growth::custom(|last, asked| last + asked / 2 + 100),
            _ => Growth::exponential(first, 5, 2),
        };
        let arena = Arena::with_min_align_in(growth.limit(limit), source.clone());
        Self { random, source, arena, limit, live: Vec::new(), marks: Vec::new() }
    }

    fn layout(&mut self) -> Layout {
        let bytes = match self.random.below(10) {
            0 => 0,
            1 => self.random.below(if cfg!(miri) { 500 } else { 5000 }),
            _ => self.random.below(100),
        };
        let align = 1 << if self.random.below(5) == 0 { self.random.below(9) } else { 3 };
        Layout::from_size_align(bytes, align).unwrap()
    }

    fn step(&mut self, number: usize) {
        if self.random.below(8) == 0 {
            self.source.fail_after(self.random.below(2));
        }
        match self.random.below(100) {
            0 => self.forget_all(Arena::reset),
            1 => self.forget_all(Arena::release),
            2..6 => self.arena.trim(self.random.below(5000)),
            6..12 => self.marks.push((self.arena.mark(), self.live.len())),
            12..16 => self.rewind(),
            16..30 => self.give_back(),
            30..50 => self.resize(),
            _ => self.allocate(number as u8),
        }
        self.source.recover();
    }

    fn allocate(&mut self, fill: u8) {
        let layout = self.layout();
        let before = self.arena.statistics();
        match self.arena.try_allocate(layout) {
            Some(data) => {
                let block = Live { data, layout, fill };
                block.write(0);
                self.live.push(block);
            }
            None => assert_eq!(before, self.arena.statistics(), "a refusal has changed something"),
        }
    }

    fn give_back(&mut self) {
        // A mark stores the number of blocks in use. That number must stay valid, so the test frees
        // only blocks that are newer than the last mark.
        let oldest = self.marks.last().map_or(0, |mark| mark.1);
        if self.live.len() > oldest {
            let late = self.random.below(2) == 0;
            let count = self.live.len() - oldest;
            let at = if late { count - 1 } else { self.random.below(count) } + oldest;
            let block = self.live.remove(at);
            // SAFETY: the block is in use, with this layout.
            unsafe { self.arena.deallocate(block.data, block.layout) };
        }
    }

    /// A rewind also frees the bytes that an older block has gained since the mark. So the test
    /// resizes only blocks that are newer than the last mark.
    fn resize(&mut self) {
        let oldest = self.marks.last().map_or(0, |mark| mark.1);
        let Some(block) = self.live[oldest..].last_mut() else { return };
        let bytes = self.random.below(200);
        let align = block.layout.align() << self.random.below(3);
        let to = Layout::from_size_align(bytes, align).unwrap();
        // SAFETY: the block is in use, with this layout.
        if unsafe { self.arena.try_expand(block.data, block.layout, to) } {
            let from = block.layout.size().min(bytes);
            block.layout = to;
            block.write(from);
        } else {
            let aligned = block.data.addr().get() % align == 0;
            assert!(bytes > block.layout.size() || !aligned);
        }
    }

    fn rewind(&mut self) {
        if self.marks.is_empty() {
            return;
        }
        let at = self.random.below(self.marks.len());
        let (mark, live) = self.marks[at];
        self.marks.truncate(at + self.random.below(2)); // a mark may be used again
        self.live.truncate(live);
        // SAFETY: nothing made after the mark is used any more.
        unsafe { self.arena.rewind(mark) };
    }

    fn forget_all(&mut self, how: fn(&mut Arena<Flaky, M>)) {
        self.live.clear();
        self.marks.clear();
        how(&mut self.arena);
        assert_eq!(self.arena.statistics().bytes_live, 0);
    }

    fn check(&self) {
        let s = self.arena.statistics();
        assert_eq!((s.bytes_taken, s.chunks), (self.source.taken(), self.source.chunks()));
        assert!(s.bytes_taken <= self.limit);
        let mut ranges = Vec::new();
        for block in &self.live {
            assert!(block.holds());
            assert_eq!(block.data.addr().get() % block.layout.align(), 0);
            if block.layout.size() != 0 {
                assert!(self.arena.owns(block.data.as_ptr()));
                assert_eq!(block.data.addr().get() % M, 0);
                ranges.push(block.range());
            }
        }
        ranges.sort_unstable();
        assert!(ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0), "blocks overlap");
        let bytes: usize = ranges.iter().map(|range| range.1 - range.0).sum();
        assert!(bytes <= s.bytes_live && s.bytes_live <= s.bytes_taken);
    }
}

fn run<const M: usize>() {
    let (programs, steps) = if cfg!(miri) { (3, 50) } else { (100, 300) };
    for seed in 0..programs {
        let mut program = Program::<M>::new(seed + 1000 * M as u64);
        for number in 0..steps {
            program.step(number);
            program.check();
        }
    }
}

#[test]
fn random_operations_have_the_same_results_as_a_model() {
    run::<1>();
}

#[test]
fn random_operations_have_the_same_results_as_a_model_at_word_alignment() {
    run::<8>();
}

#[test]
fn random_operations_have_the_same_results_as_a_model_at_the_largest_alignment() {
    run::<16>();
}

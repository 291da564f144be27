//! The programs that make and drop objects, written after fastalloc's benchmarks.
//!
//! `black_box` is applied where fastalloc applies it: to the value that is moved into an object, or
//! to the handles that exist at the end. Where fastalloc does not use `black_box` at all, these
//! programs apply it to each handle.

use crate::contenders::objects::{Growth, Object, Objects, Part, Plan};
use std::collections::VecDeque;
use std::hint::black_box;

/// A program that makes and drops objects of a pool in each pass. No object is left at the end of a
/// pass.
pub trait Program<T: Object>: Copy + 'static {
    /// Whether the program drops an object while other objects are live.
    const TAKES_BACK: bool = true;

    fn plan(self) -> Plan;
    /// Returns the number of objects made in a pass.
    fn ops(self) -> usize;
    fn pass<P: Objects<T>>(self, pool: &P);
}

/// Drops the first `count` objects in order.
#[inline(always)]
fn drop_first<'p, T: Object, P: Objects<T>>(
    pool: &'p P,
    handles: &mut Vec<P::Handle<'p>>,
    count: usize,
) {
    handles.drain(..count).for_each(|h| pool.give(h));
}

/// Makes and drops one object at a time, `pairs` times, always in the same slot.
#[derive(Clone, Copy)]
pub struct OneLive {
    pub capacity: usize,
    pub pairs: usize,
}

impl<T: Object> Program<T> for OneLive {
    fn plan(self) -> Plan {
        Plan::of(self.capacity)
    }
    /// Counts all `pairs` of a pass as one operation, as fastalloc's benchmark does.
    fn ops(self) -> usize {
        1
    }
    #[inline(always)]
    fn pass<P: Objects<T>>(self, pool: &P) {
        for _ in 0..self.pairs {
            let handle = pool.make(black_box(T::of(42)));
            pool.give(black_box(handle));
        }
    }
}

/// Makes the given number of objects, then drops all.
#[derive(Clone, Copy)]
pub struct Bulk(pub usize);

impl<T: Object> Program<T> for Bulk {
    const TAKES_BACK: bool = false;

    fn plan(self) -> Plan {
        Plan::of(self.0)
    }
    fn ops(self) -> usize {
        self.0
    }
    #[inline(always)]
    fn pass<P: Objects<T>>(self, pool: &P) {
        let mut handles = Vec::with_capacity(self.0);
        for i in 0..self.0 {
            handles.push(pool.make(T::of(i)));
        }
        black_box(&mut handles).drain(..).for_each(|h| pool.give(h));
    }
}

/// Repeats 50 times: makes three objects and drops them. Two or three of them are live at the same
/// time.
#[derive(Clone, Copy)]
pub struct Churn {
    /// Whether `black_box` is applied to each handle. fastalloc does not do that, so the compiler
    /// may remove the making and dropping of an object.
    pub with_barrier: bool,
}

impl<T: Object> Program<T> for Churn {
    fn plan(self) -> Plan {
        Plan::of(100)
    }
    fn ops(self) -> usize {
        150
    }
    #[inline(always)]
    fn pass<P: Objects<T>>(self, pool: &P) {
        let make = |i| {
            let handle = pool.make(T::of(i));
            if self.with_barrier {
                black_box(handle)
            } else {
                handle
            }
        };
        for i in 0..50 {
            let first = make(i);
            let second = make(i + 1);
            pool.give(first);
            let third = make(i + 2);
            pool.give(second);
            pool.give(third);
        }
    }
}

/// Makes 500 objects that stay, and after each of them an object that is dropped immediately.
#[derive(Clone, Copy)]
pub struct Alternating;

impl<T: Object> Program<T> for Alternating {
    fn plan(self) -> Plan {
        Plan::of(1000)
    }
    fn ops(self) -> usize {
        1000
    }
    #[inline(always)]
    fn pass<P: Objects<T>>(self, pool: &P) {
        let mut handles = Vec::new();
        for i in 0..500 {
            handles.push(pool.make(T::of(i)));
            pool.give(black_box(pool.make(T::of(i + 1000))));
        }
        black_box(&mut handles).drain(..).for_each(|h| pool.give(h));
    }
}

/// Makes a queue of 100 objects. Then repeats 100 times: drops the oldest and makes another.
#[derive(Clone, Copy)]
pub struct Fifo;

impl<T: Object> Program<T> for Fifo {
    fn plan(self) -> Plan {
        Plan::of(100)
    }
    fn ops(self) -> usize {
        200
    }
    #[inline(always)]
    fn pass<P: Objects<T>>(self, pool: &P) {
        let mut queue = VecDeque::new();
        for i in 0..100 {
            queue.push_back(pool.make(T::of(i)));
        }
        for i in 100..200 {
            black_box(&mut queue);
            if let Some(oldest) = queue.pop_front() {
                pool.give(oldest);
            }
            queue.push_back(pool.make(T::of(i)));
        }
        black_box(&mut queue).drain(..).for_each(|h| pool.give(h));
    }
}

/// Makes 500 objects. After every third object, drops one from the middle.
#[derive(Clone, Copy)]
pub struct RandomDrop;

impl<T: Object> Program<T> for RandomDrop {
    fn plan(self) -> Plan {
        Plan::of(500)
    }
    fn ops(self) -> usize {
        500
    }
    #[inline(always)]
    fn pass<P: Objects<T>>(self, pool: &P) {
        let mut handles = Vec::new();
        for i in 0..500 {
            handles.push(pool.make(T::of(i)));
            if i % 3 == 0 {
                let index = i % handles.len();
                pool.give(handles.remove(index));
            }
        }
        black_box(&mut handles).drain(..).for_each(|h| pool.give(h));
    }
}

/// Makes 500 objects in a pool that grows in one of two ways.
///
/// - From 100 by steps of 100. The program drops the oldest object after every fifth object.
///
/// - From 10 by doubling. The program drops the newest object after every seventh object.
#[derive(Clone, Copy)]
pub struct Growing {
    pub growth: Growth,
}

impl<T: Object> Program<T> for Growing {
    fn plan(self) -> Plan {
        let capacity = if self.is_linear() { 100 } else { 10 };
        Plan { capacity, growth: self.growth }
    }
    fn ops(self) -> usize {
        500
    }
    #[inline(always)]
    fn pass<P: Objects<T>>(self, pool: &P) {
        let mut handles = Vec::new();
        for i in 0..500 {
            handles.push(pool.make(T::of(i)));
            if self.is_linear() && i % 5 == 0 {
                pool.give(handles.remove(0));
            } else if !self.is_linear() && i % 7 == 0 {
                if let Some(newest) = handles.pop() {
                    pool.give(newest);
                }
            }
        }
        black_box(&mut handles).drain(..).for_each(|h| pool.give(h));
    }
}

impl Growing {
    fn is_linear(self) -> bool {
        matches!(self.growth, Growth::Linear { .. })
    }
}

/// Runs 100 cycles. Each cycle makes 100 objects, and drops the oldest 100 if there are more than
/// 500.
#[derive(Clone, Copy)]
pub struct Cycles;

impl<T: Object> Program<T> for Cycles {
    fn plan(self) -> Plan {
        Plan::of(1000)
    }
    fn ops(self) -> usize {
        10_000
    }
    #[inline(always)]
    fn pass<P: Objects<T>>(self, pool: &P) {
        let mut handles = Vec::new();
        for cycle in 0..100 {
            for i in 0..100 {
                handles.push(pool.make(T::of(cycle * 100 + i)));
            }
            if handles.len() > 500 {
                drop_first(pool, &mut handles, 100);
            }
        }
        black_box(&mut handles).drain(..).for_each(|h| pool.give(h));
    }
}

/// Makes the given number of objects. Then each frame drops the oldest objects and makes the same
/// number of new ones. Game entities, connections and particles behave like this.
#[derive(Clone, Copy)]
pub struct Waves {
    pub capacity: usize,
    pub start: usize,
    pub renewed: usize,
    pub frames: usize,
}

impl<T: Object> Program<T> for Waves {
    fn plan(self) -> Plan {
        Plan::of(self.capacity)
    }
    fn ops(self) -> usize {
        self.start + self.renewed * self.frames
    }
    #[inline(always)]
    fn pass<P: Objects<T>>(self, pool: &P) {
        let mut handles = Vec::new();
        for i in 0..self.start {
            handles.push(pool.make(T::of(i)));
        }
        for frame in 0..self.frames {
            drop_first(pool, &mut handles, self.renewed);
            let first = self.start + frame * self.renewed;
            for i in first..first + self.renewed {
                handles.push(pool.make(T::of(i)));
            }
        }
        black_box(&mut handles).drain(..).for_each(|h| pool.give(h));
    }
}

/// Makes and processes 50 buffers, drops half of them, and makes 25 more.
#[derive(Clone, Copy)]
pub struct Pipeline;

impl Program<Part> for Pipeline {
    fn plan(self) -> Plan {
        Plan::of(200)
    }
    fn ops(self) -> usize {
        75
    }
    #[inline(always)]
    fn pass<P: Objects<Part>>(self, pool: &P) {
        let mut parts = Vec::new();
        for i in 0..50 {
            parts.push(pool.make(Part::of(i)));
        }
        for part in &mut parts {
            pool.get_mut(part).is_processed = true;
        }
        drop_first(pool, &mut parts, 25);
        for i in 50..75 {
            parts.push(pool.make(Part::of(i)));
        }
        black_box(&mut parts).drain(..).for_each(|h| pool.give(h));
    }
}

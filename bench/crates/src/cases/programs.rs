//! The programs that make and drop objects, after fastalloc's recipes.
//!
//! The barrier is where the recipes have it, on the value that goes into an object or on the
//! handles that are there at the end; where they have none, it is on each handle.

use crate::contenders::objects::{Growth, Object, Objects, Part, Plan};
use std::collections::VecDeque;
use std::hint::black_box;

/// A pass over a pool. At its end no object is left.
pub trait Program<T: Object>: Copy + 'static {
    /// Whether an object goes while others stay.
    const TAKES_BACK: bool = true;

    fn plan(self) -> Plan;
    /// Objects made in a pass.
    fn ops(self) -> usize;
    fn pass<P: Objects<T>>(self, pool: &P);
}

/// `i < count` are dropped, in their order.
#[inline(always)]
fn drop_first<'p, T: Object, P: Objects<T>>(
    pool: &'p P,
    handles: &mut Vec<P::Handle<'p>>,
    count: usize,
) {
    handles.drain(..count).for_each(|h| pool.give(h));
}

/// One object at a time, `pairs` times: the same slot again and again.
#[derive(Clone, Copy)]
pub struct OneLive {
    pub capacity: usize,
    pub pairs: usize,
}

impl<T: Object> Program<T> for OneLive {
    fn plan(self) -> Plan {
        Plan::of(self.capacity)
    }
    /// What the report calls an operation is all the pairs of a pass.
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

/// So many are made, then all dropped.
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

/// Three objects whose lives overlap, 50 times.
#[derive(Clone, Copy)]
pub struct Churn {
    /// The recipe has none, and a compiler may then remove what it understands.
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

/// 500 stay, and after each comes one that goes at once.
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

/// A queue of 100, through which 100 more go.
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

/// 500, and at every third one from somewhere in the middle goes.
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

/// 500 in a pool for 100 that grows by 100, the oldest going at every fifth; or for 10 that
/// doubles, the newest going at every seventh.
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

/// 100 cycles of 100, the oldest 100 going where more than 500 are there.
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

/// So many, and then in each frame the oldest go and as many come: game entities, connections,
/// particles.
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

/// 50 parts are made and worked on, half go, and 25 more come.
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

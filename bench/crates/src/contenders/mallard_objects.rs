//! The contenders that are Mallard's object pools.

use super::objects::{Growth, Object, Objects, Plan};
use super::objects_peers::by_deref;
use crate::harness::Why;
use mallard::handles::Box;
use mallard::sync::{self, Growing, Mode};
use mallard::ObjectPool;

/// A threading mode of the pool, with the name that results print.
pub trait Named: Mode + 'static {
    const NAME: &'static str;
}

impl Named for sync::Unshared {
    const NAME: &'static str = "";
}
impl Named for sync::Mutex {
    const NAME: &'static str = "/Mutex";
}
impl Named for sync::LockFree {
    const NAME: &'static str = "/LockFree";
}
impl Named for sync::ThreadCached {
    const NAME: &'static str = "/ThreadCached";
}

/// An object pool that grows as needed.
pub struct MallardPool<T, M: Mode = sync::Unshared>(ObjectPool<T, M>);

impl<T: Object, M: Named + Growing> Objects<T> for MallardPool<T, M> {
    type Handle<'p> = Box<'p, T, M>;

    fn name() -> String {
        format!("mallard/ObjectPool{}", M::NAME)
    }
    fn new(plan: Plan) -> Result<Self, Why> {
        let bytes = |count| count * size_of::<T>();
        let first = bytes(plan.capacity);
        Ok(Self(match plan.growth {
            Growth::None => ObjectPool::with_capacity(plan.capacity),
            Growth::Linear { add, .. } => {
                ObjectPool::with_growth(mallard::Growth::linear(first, bytes(add)))
            }
            Growth::Double { .. } => {
                ObjectPool::with_growth(mallard::Growth::exponential(first, 2, 1))
            }
        }))
    }
    #[inline(always)]
    fn make(&self, value: T) -> Self::Handle<'_> {
        self.0.make(value)
    }
    by_deref!();
}

/// An object pool of fixed capacity. It requests all its memory in one chunk.
pub struct MallardFixed<T, M: Mode = sync::Unshared>(ObjectPool<T, M>);

impl<T: Object, M: Named> Objects<T> for MallardFixed<T, M> {
    type Handle<'p> = Box<'p, T, M>;

    fn name() -> String {
        // Leaves out "fixed" with `LockFree`, because every such pool has a fixed capacity.
        format!("mallard/ObjectPool{}", if M::NAME.is_empty() { "/fixed" } else { M::NAME })
    }
    fn new(plan: Plan) -> Result<Self, Why> {
        match plan.growth {
            Growth::None => Ok(Self(ObjectPool::fixed(plan.capacity))),
            _ => Err("it does not grow"),
        }
    }
    #[inline(always)]
    fn make(&self, value: T) -> Self::Handle<'_> {
        self.0.make(value)
    }
    by_deref!();
}

/// An arena for objects of one type. All objects are freed together.
pub struct MallardArenaOfOne<T>(mallard::TypedArena<T>);

impl<T: Object> Objects<T> for MallardArenaOfOne<T> {
    type Handle<'p> = &'p mut T;
    const TAKES_BACK: bool = false;

    fn name() -> String {
        "mallard/TypedArena".to_string()
    }
    fn new(plan: Plan) -> Result<Self, Why> {
        Ok(Self(mallard::TypedArena::with_capacity(plan.capacity)))
    }
    #[inline(always)]
    fn make(&self, value: T) -> &mut T {
        self.0.alloc(value)
    }
    by_deref!();
    fn clear(&mut self) {
        self.0.reset();
    }
}

//! The competing crates that make objects one by one.
//!
//! Some crates lend objects and reuse them (object-pool, opool, lockfree-object-pool). In these,
//! making an object writes a value into a lent object.

use super::objects::{Growth, Object, Objects, Plan};
use super::{glibc, peer};
use crate::harness::Why;
use fastalloc::{FixedPool, GrowingPool, GrowthStrategy, OwnedHandle, PoolConfig, ThreadSafePool};
use heapless::pool::boxed::{BoxBlock, BoxPool};
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::DerefMut;

const DOES_NOT_GROW: Why = "it does not grow";

/// Implements the functions that access an object by dereferencing its handle. Used for handles
/// that drop their objects.
macro_rules! by_deref {
    () => {
        #[inline(always)]
        fn get<'a>(&'a self, handle: &'a Self::Handle<'_>) -> &'a T {
            handle
        }
        #[inline(always)]
        fn get_mut<'a>(&'a self, handle: &'a mut Self::Handle<'_>) -> &'a mut T {
            handle
        }
    };
}
pub(super) use by_deref;

/// A box for each object, from the global allocator.
pub struct Boxes;

impl<T: Object> Objects<T> for Boxes {
    type Handle<'p> = Box<T>;

    fn name() -> String {
        glibc() + "/Box"
    }
    fn new(_: Plan) -> Result<Self, Why> {
        Ok(Self)
    }
    #[inline(always)]
    fn make(&self, value: T) -> Box<T> {
        Box::new(value)
    }
    by_deref!();
}

pub struct Fixed<T>(FixedPool<T>);

impl<T: Object> Objects<T> for Fixed<T> {
    type Handle<'p> = OwnedHandle<'p, T>;

    fn name() -> String {
        peer("fastalloc") + "/FixedPool"
    }
    fn new(plan: Plan) -> Result<Self, Why> {
        if plan.growth != Growth::None {
            return Err(DOES_NOT_GROW);
        }
        FixedPool::new(plan.capacity).map(Self).map_err(|_| "it rejects the capacity")
    }
    #[inline(always)]
    fn make(&self, value: T) -> Self::Handle<'_> {
        self.0.allocate(value).unwrap()
    }
    by_deref!();
}

pub struct Growing<T>(GrowingPool<T>);

fn config<T>(plan: Plan) -> Result<PoolConfig<T>, Why> {
    let (growth, most) = match plan.growth {
        // Lets the pool grow, though it never needs to, because the published benchmark does the
        // same.
        Growth::None => (GrowthStrategy::Exponential { factor: 2.0 }, None),
        Growth::Linear { add, most } => (GrowthStrategy::Linear { amount: add }, Some(most)),
        Growth::Double { most } => (GrowthStrategy::Exponential { factor: 2.0 }, Some(most)),
    };
    let config = PoolConfig::builder().capacity(plan.capacity).growth_strategy(growth);
    config.max_capacity(most).build().map_err(|_| "it rejects the plan")
}

impl<T: Object> Objects<T> for Growing<T> {
    type Handle<'p> = OwnedHandle<'p, T>;

    fn name() -> String {
        peer("fastalloc") + "/GrowingPool"
    }
    fn new(plan: Plan) -> Result<Self, Why> {
        GrowingPool::with_config(config(plan)?).map(Self).map_err(|_| "it rejects the plan")
    }
    #[inline(always)]
    fn make(&self, value: T) -> Self::Handle<'_> {
        self.0.allocate(value).unwrap()
    }
    by_deref!();
}

/// fastalloc's growing pool with a lock. The type of its handle is private, so it is inferred from
/// `F`, the type of `allocate`.
pub struct ThreadSafe<T, H, F> {
    pool: ThreadSafePool<T>,
    allocate: PhantomData<fn(F) -> H>,
}

/// Returns the type of the contender. `allocate` is a closure that captures nothing.
pub fn thread_safe<T, H, F>(_allocate: F) -> PhantomData<ThreadSafe<T, H, F>>
where
    T: Object,
    F: Fn(&ThreadSafePool<T>, T) -> H + Copy,
{
    PhantomData
}

impl<T, H, F> Objects<T> for ThreadSafe<T, H, F>
where
    T: Object,
    H: DerefMut<Target = T> + 'static,
    F: Fn(&ThreadSafePool<T>, T) -> H + Copy + 'static,
{
    type Handle<'p> = H;

    fn name() -> String {
        peer("fastalloc") + "/ThreadSafePool"
    }
    fn new(plan: Plan) -> Result<Self, Why> {
        let pool = ThreadSafePool::with_config(config(plan)?).map_err(|_| "it rejects the plan")?;
        Ok(Self { pool, allocate: PhantomData })
    }
    #[inline(always)]
    fn make(&self, value: T) -> H {
        const { assert!(size_of::<F>() == 0) };
        // SAFETY: `F` has no bytes, and a value of it existed: it was passed to `thread_safe`.
        let allocate = unsafe { std::mem::transmute_copy::<(), F>(&()) };
        allocate(&self.pool, value)
    }
    by_deref!();
}

pub struct TypedArena<T> {
    arena: typed_arena::Arena<T>,
    capacity: usize,
}

impl<T: Object> Objects<T> for TypedArena<T> {
    type Handle<'p> = &'p mut T;
    const TAKES_BACK: bool = false;

    fn name() -> String {
        peer("typed-arena")
    }
    fn new(plan: Plan) -> Result<Self, Why> {
        let capacity = plan.capacity;
        Ok(Self { arena: typed_arena::Arena::with_capacity(capacity), capacity })
    }
    #[inline(always)]
    fn make(&self, value: T) -> &mut T {
        self.arena.alloc(value)
    }
    by_deref!();
    /// Replaces the arena, because typed-arena has no reset.
    fn clear(&mut self) {
        self.arena = typed_arena::Arena::with_capacity(self.capacity);
    }
}

pub struct ObjectPool<T>(object_pool::Pool<T>);

impl<T: Object> Objects<T> for ObjectPool<T> {
    type Handle<'p> = object_pool::Reusable<'p, T>;

    fn name() -> String {
        peer("object-pool")
    }
    fn new(plan: Plan) -> Result<Self, Why> {
        Ok(Self(object_pool::Pool::new(plan.capacity, T::default)))
    }
    #[inline(always)]
    fn make(&self, value: T) -> Self::Handle<'_> {
        match self.0.try_pull() {
            Some(mut object) => {
                *object = value;
                object
            }
            None => object_pool::Reusable::new(&self.0, value),
        }
    }
    by_deref!();
}

pub struct Maker;

impl<T: Default> opool::PoolAllocator<T> for Maker {
    #[inline(always)]
    fn allocate(&self) -> T {
        T::default()
    }
}

pub struct LocalOpool<T: Default>(opool::LocalPool<Maker, T>);

impl<T: Object> Objects<T> for LocalOpool<T> {
    type Handle<'p> = opool::RefLocalGuard<'p, Maker, T>;

    fn name() -> String {
        peer("opool") + "/LocalPool"
    }
    fn new(plan: Plan) -> Result<Self, Why> {
        Ok(Self(opool::LocalPool::new_prefilled(plan.capacity, Maker)))
    }
    #[inline(always)]
    fn make(&self, value: T) -> Self::Handle<'_> {
        let mut object = self.0.get();
        *object = value;
        object
    }
    by_deref!();
}

pub struct Opool<T: Default>(opool::Pool<Maker, T>);

impl<T: Object> Objects<T> for Opool<T> {
    type Handle<'p> = opool::RefGuard<'p, Maker, T>;

    fn name() -> String {
        peer("opool") + "/Pool"
    }
    fn new(plan: Plan) -> Result<Self, Why> {
        Ok(Self(opool::Pool::new_prefilled(plan.capacity, Maker)))
    }
    #[inline(always)]
    fn make(&self, value: T) -> Self::Handle<'_> {
        let mut object = self.0.get();
        *object = value;
        object
    }
    by_deref!();
}

pub struct LinearPool<T>(lockfree_object_pool::LinearObjectPool<T>);

impl<T: Object> Objects<T> for LinearPool<T> {
    type Handle<'p> = lockfree_object_pool::LinearReusable<'p, T>;

    fn name() -> String {
        peer("lockfree-object-pool") + "/Linear"
    }
    fn new(_: Plan) -> Result<Self, Why> {
        Ok(Self(lockfree_object_pool::LinearObjectPool::new(T::default, |_| {})))
    }
    #[inline(always)]
    fn make(&self, value: T) -> Self::Handle<'_> {
        let mut object = self.0.pull();
        *object = value;
        object
    }
    by_deref!();
}

/// A pool of the crate slab. A handle is a key, by which the pool finds and drops the object.
pub struct Slab<T>(UnsafeCell<slab::Slab<T>>);

impl<T: Object> Objects<T> for Slab<T> {
    type Handle<'p> = usize;

    fn name() -> String {
        peer("slab")
    }
    fn new(plan: Plan) -> Result<Self, Why> {
        Ok(Self(UnsafeCell::new(slab::Slab::with_capacity(plan.capacity))))
    }
    #[inline(always)]
    fn make(&self, value: T) -> usize {
        // SAFETY: only one thread uses the pool, and no reference into it outlives a statement of
        // the caller.
        unsafe { (*self.0.get()).insert(value) }
    }
    #[inline(always)]
    fn get<'a>(&'a self, handle: &'a usize) -> &'a T {
        // SAFETY: only one thread uses the pool, and no reference into it outlives a statement of
        // the caller.
        let slab = unsafe { &*self.0.get() };
        &slab[*handle]
    }
    #[inline(always)]
    fn get_mut<'a>(&'a self, handle: &'a mut usize) -> &'a mut T {
        // SAFETY: only one thread uses the pool, and no reference into it outlives a statement of
        // the caller.
        let slab = unsafe { &mut *self.0.get() };
        &mut slab[*handle]
    }
    #[inline(always)]
    fn give(&self, handle: usize) {
        // SAFETY: only one thread uses the pool, and no reference into it outlives a statement of
        // the caller.
        drop(unsafe { (*self.0.get()).remove(handle) });
    }
}

/// heapless's static pool. It never releases the memory that it was given.
pub struct Heapless<T>(PhantomData<T>);

impl<T: Object> Objects<T> for Heapless<T> {
    type Handle<'p> = heapless::pool::boxed::Box<T::Heapless>;

    fn name() -> String {
        peer("heapless") + "/BoxPool"
    }
    fn new(plan: Plan) -> Result<Self, Why> {
        if plan.growth != Growth::None {
            return Err(DOES_NOT_GROW);
        }
        let blocks: Vec<BoxBlock<T>> = (0..plan.capacity).map(|_| BoxBlock::new()).collect();
        blocks.leak().iter_mut().for_each(T::Heapless::manage);
        Ok(Self(PhantomData))
    }
    #[inline(always)]
    fn make(&self, value: T) -> Self::Handle<'_> {
        T::Heapless::alloc(value).unwrap_or_else(|_| panic!("no block is left"))
    }
    by_deref!();
}

//! The contenders that keep values by keys, for several threads at the same time.

use super::maps::{Map, Value};
use super::peer;
use std::sync::{PoisonError, RwLock};

/// A map that chooses the keys of its elements. Several threads may call it without an additional
/// lock.
pub trait SharedMap: Sized + Sync + Send + 'static {
    type Key: Copy + Send;

    fn name() -> String;
    fn new() -> Self;
    fn insert(&self, value: Value) -> Self::Key;
    fn remove(&self, key: Self::Key) -> bool;
    /// Returns a copy of the value. If the map returns a guard, the guard is released before this
    /// function returns.
    fn get(&self, key: Self::Key) -> Option<Value>;
}

pub type Sharded = sharded_slab::Slab<Value>;

impl SharedMap for sharded_slab::Slab<Value> {
    type Key = usize;

    fn name() -> String {
        peer("sharded-slab")
    }
    fn new() -> Self {
        Self::new()
    }
    #[inline(always)]
    fn insert(&self, value: Value) -> usize {
        self.insert(value).expect("it has room for 2^38 elements")
    }
    #[inline(always)]
    fn remove(&self, key: usize) -> bool {
        self.remove(key)
    }
    #[inline(always)]
    fn get(&self, key: usize) -> Option<Value> {
        self.get(key).map(|v| *v)
    }
}

/// Any map, protected by one lock. sharded-slab's benchmark has `slab` in this form.
pub struct Locked<M>(RwLock<M>);

impl<M: Map<Key: Send> + Send + Sync> SharedMap for Locked<M> {
    type Key = M::Key;

    fn name() -> String {
        M::name() + "+RwLock"
    }
    fn new() -> Self {
        Self(RwLock::new(M::new()))
    }
    #[inline(always)]
    fn insert(&self, value: Value) -> M::Key {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(value)
    }
    #[inline(always)]
    fn remove(&self, key: M::Key) -> bool {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(key).is_some()
    }
    #[inline(always)]
    fn get(&self, key: M::Key) -> Option<Value> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(key)
    }
}

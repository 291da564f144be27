//! The contenders that are Mallard's maps.

use super::maps::{Map, Value};
use super::shared_maps::SharedMap;
use mallard::shared_slot_map::{Access, Copied, Guarded};
use mallard::{Key, Key32, Key64, SharedSlotMap, SlotMap};

/// A kind of key, with the name that results print.
pub trait Named: Key + 'static {
    const NAME: &'static str;
}

impl Named for Key32 {
    const NAME: &'static str = "Key32";
}
impl Named for Key64 {
    const NAME: &'static str = "Key64";
}

impl<K: Named> Map for SlotMap<K, Value> {
    type Key = K;

    fn name() -> String {
        format!("mallard/SlotMap/{}", K::NAME)
    }
    fn new() -> Self {
        Self::new()
    }
    fn with_capacity(count: usize) -> Self {
        Self::with_capacity(count)
    }
    #[inline(always)]
    fn insert(&mut self, value: Value) -> K {
        self.insert(value)
    }
    #[inline(always)]
    fn remove(&mut self, key: K) -> Option<Value> {
        self.remove(key)
    }
    #[inline(always)]
    fn get(&self, key: K) -> Option<Value> {
        self.get(key).copied()
    }
    #[inline(always)]
    fn sum(&mut self) -> Value {
        self.values().fold(0, |sum, v| sum.wrapping_add(*v))
    }
}

/// A way to read a value, with the name that results print.
pub trait Look: Access<Value> + Sized + 'static {
    const NAME: &'static str;
    fn get<K: Key>(map: &SharedSlotMap<K, Value, Self>, key: K) -> Option<Value>;
}

impl Look for Guarded {
    const NAME: &'static str = "guard";
    #[inline(always)]
    fn get<K: Key>(map: &SharedSlotMap<K, Value, Self>, key: K) -> Option<Value> {
        map.get(key).map(|v| *v)
    }
}
impl Look for Copied {
    const NAME: &'static str = "read";
    #[inline(always)]
    fn get<K: Key>(map: &SharedSlotMap<K, Value, Self>, key: K) -> Option<Value> {
        map.read(key)
    }
}

impl<A: Look> SharedMap for SharedSlotMap<Key64, Value, A> {
    type Key = Key64;

    fn name() -> String {
        format!("mallard/SharedSlotMap/{}", A::NAME)
    }
    fn new() -> Self {
        Self::new()
    }
    #[inline(always)]
    fn insert(&self, value: Value) -> Key64 {
        self.insert(value)
    }
    #[inline(always)]
    fn remove(&self, key: Key64) -> bool {
        self.remove(key)
    }
    #[inline(always)]
    fn get(&self, key: Key64) -> Option<Value> {
        A::get(self, key)
    }
}

//! Mallard's maps.

use super::maps::{Map, Value};
use mallard::{Key, Key32, Key64, SlotMap};

/// What a kind of key is called in rows.
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

//! The contenders that keep values by keys, for one thread.
#![allow(deprecated)] // HopSlotMap is deprecated, but still used by many

use super::peer;

pub type Value = u64;

/// A map that chooses the keys of its elements. One thread uses it.
pub trait Map: Sized + 'static {
    type Key: Copy;

    fn name() -> String;
    fn new() -> Self;
    fn with_capacity(count: usize) -> Self;
    fn insert(&mut self, value: Value) -> Self::Key;
    fn remove(&mut self, key: Self::Key) -> Option<Value>;
    /// Returns a copy of the value, so that maps that return guards can be measured too.
    fn get(&self, key: Self::Key) -> Option<Value>;
    /// Adds up the values of all elements.
    fn sum(&mut self) -> Value;
}

macro_rules! slotmaps {
    ($($map:ident, $name:literal;)*) => {
        $(impl Map for slotmap::$map<slotmap::DefaultKey, Value> {
            type Key = slotmap::DefaultKey;
            fn name() -> String {
                peer("slotmap") + $name
            }
            fn new() -> Self {
                Self::new()
            }
            fn with_capacity(count: usize) -> Self {
                Self::with_capacity(count)
            }
            #[inline(always)]
            fn insert(&mut self, value: Value) -> Self::Key {
                self.insert(value)
            }
            #[inline(always)]
            fn remove(&mut self, key: Self::Key) -> Option<Value> {
                self.remove(key)
            }
            #[inline(always)]
            fn get(&self, key: Self::Key) -> Option<Value> {
                self.get(key).copied()
            }
            #[inline(always)]
            fn sum(&mut self) -> Value {
                self.values().fold(0, |sum, v| sum.wrapping_add(*v))
            }
        })*
    };
}

pub type Slot = slotmap::SlotMap<slotmap::DefaultKey, Value>;
pub type Hop = slotmap::HopSlotMap<slotmap::DefaultKey, Value>;
pub type Dense = slotmap::DenseSlotMap<slotmap::DefaultKey, Value>;

slotmaps! {
    SlotMap, "/SlotMap";
    HopSlotMap, "/HopSlotMap";
    DenseSlotMap, "/DenseSlotMap";
}

pub type Thunderdome = thunderdome::Arena<Value>;

macro_rules! arenas {
    ($($arena:ty, $key:ty, $name:literal;)*) => {
        $(impl Map for $arena {
            type Key = $key;
            fn name() -> String {
                peer($name)
            }
            fn new() -> Self {
                Self::new()
            }
            fn with_capacity(count: usize) -> Self {
                Self::with_capacity(count)
            }
            #[inline(always)]
            fn insert(&mut self, value: Value) -> Self::Key {
                self.insert(value)
            }
            #[inline(always)]
            fn remove(&mut self, key: Self::Key) -> Option<Value> {
                self.remove(key)
            }
            #[inline(always)]
            fn get(&self, key: Self::Key) -> Option<Value> {
                self.get(key).copied()
            }
            #[inline(always)]
            fn sum(&mut self) -> Value {
                self.iter().fold(0, |sum, (_, v)| sum.wrapping_add(*v))
            }
        })*
    };
}

pub type Generational = generational_arena::Arena<Value>;

arenas! {
    thunderdome::Arena<Value>, thunderdome::Index, "thunderdome";
    generational_arena::Arena<Value>, generational_arena::Index, "generational-arena";
}

/// A map whose keys are only indices, without a generation. So the key of a removed element may
/// find a later element.
pub type Slab = slab::Slab<Value>;

impl Map for slab::Slab<Value> {
    type Key = usize;

    fn name() -> String {
        peer("slab")
    }
    fn new() -> Self {
        Self::new()
    }
    fn with_capacity(count: usize) -> Self {
        Self::with_capacity(count)
    }
    #[inline(always)]
    fn insert(&mut self, value: Value) -> usize {
        self.insert(value)
    }
    #[inline(always)]
    fn remove(&mut self, key: usize) -> Option<Value> {
        self.try_remove(key)
    }
    #[inline(always)]
    fn get(&self, key: usize) -> Option<Value> {
        self.get(key).copied()
    }
    #[inline(always)]
    fn sum(&mut self) -> Value {
        self.iter().fold(0, |sum, (_, v)| sum.wrapping_add(*v))
    }
}

/// A map that several threads may share. Here only one thread uses it. Each read returns a guard.
pub type Sharded = sharded_slab::Slab<Value>;

impl Map for sharded_slab::Slab<Value> {
    type Key = usize;

    fn name() -> String {
        peer("sharded-slab")
    }
    fn new() -> Self {
        Self::new()
    }
    fn with_capacity(_: usize) -> Self {
        Self::new()
    }
    #[inline(always)]
    fn insert(&mut self, value: Value) -> usize {
        (*self).insert(value).expect("it has room for 2^38 elements")
    }
    #[inline(always)]
    fn remove(&mut self, key: usize) -> Option<Value> {
        self.take(key)
    }
    #[inline(always)]
    fn get(&self, key: usize) -> Option<Value> {
        self.get(key).map(|v| *v)
    }
    #[inline(always)]
    fn sum(&mut self) -> Value {
        self.unique_iter().fold(0, |sum, v| sum.wrapping_add(*v))
    }
}

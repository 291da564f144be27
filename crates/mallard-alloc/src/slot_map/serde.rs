//! Serialisation of slot maps. Keys are still valid after deserialisation.

use super::SlotMap;
use crate::base::source::Source;
use crate::slot_map::key::{Bits, Key, Words};
use crate::slot_map::keyed::ChunkLayout;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Writes a sequence of one pair for each slot, from slot 1 to the last slot ever used. If the slot
/// has an element, its pair is the key and the element. Otherwise, its pair is the key of the
/// slot's next element, and `None`. The key of a retired slot has generation 0. A detached key
/// becomes stale.
impl<K: Key, V: Serialize, S: Source> Serialize for SlotMap<K, V, S> {
    fn serialize<T: Serializer>(&self, to: T) -> Result<T::Ok, T::Error> {
        let next = self.next_keys();
        to.collect_seq(next.iter().enumerate().map(|(i, &next)| {
            let key = K::from_bits(next).filter(|&key| key.generation() != 0);
            let value = key.and_then(|key| self.get(key));
            let bits = next.to_u64() | (i + 1) as u64;
            (bits, value)
        }))
    }
}

impl<K: Key, V, S: Source> SlotMap<K, V, S> {
    /// Returns one key for each slot, from slot 1 on. The key belongs to the slot's element, or
    /// else to its next element. The key of a retired slot is 0.
    fn next_keys(&self) -> Vec<K::Bits> {
        let none = K::Bits::from_u64(0);
        let mut next = Vec::new();
        for i in 1..self.slots.view.count * ChunkLayout::<K, V>::SLOTS {
            let number = i / ChunkLayout::<K, V>::SLOTS;
            let there = self.slots.view.chunk(number);
            let is_fresh = there.is_none() || (self.fresh..self.fresh_end).contains(&i);
            // SAFETY: the place is below the number of slots of a chunk, and each slot has a word.
            let word = there.map(|c| unsafe { *c.slot(i % ChunkLayout::<K, V>::SLOTS).word() });
            next.push(match word {
                _ if is_fresh => Words::<K>::key(i, self.fresh_generation(number)),
                Some(word) if word == none => none,
                Some(word) if self.slots.view.find(Words::<K>::known(word)).is_some() => word,
                _ => none,
            });
        }
        for i in 1..=next.len() {
            let number = i / ChunkLayout::<K, V>::SLOTS;
            let Some(chunk) = self.slots.view.chunk(number) else { continue };
            let slot = chunk.slot(i % ChunkLayout::<K, V>::SLOTS);
            // SAFETY: the place is below the number of slots of a chunk.
            let (word, idle) = unsafe { (*slot.word(), slot.is_idle()) };
            if word != none && Words::<K>::index(word) == 0 {
                let key = K::Bits::from_u64(word.to_u64() | i as u64);
                next[i - 1] = if idle { key } else { after_or_none::<K>(key) };
            }
        }
        self.slots.free_keys.for_each(|key| next[Words::<K>::index(key) - 1] = key);
        let first = |i: usize| Words::<K>::key(i, 1);
        while next.last().is_some_and(|&key| key == first(next.len()) && !self.has_bits(key)) {
            next.pop();
        }
        next
    }
    fn has_bits(&self, bits: K::Bits) -> bool {
        K::from_bits(bits).is_some_and(|key| self.contains_key(key))
    }

    /// Adds the next slot from its pair.
    fn read_slot(&mut self, bits: K::Bits, value: Option<V>) -> Result<(), &'static str> {
        let no_memory = "no memory for the slots of a slot map";
        if !self.make_first_keys() {
            return Err(no_memory);
        }
        if self.fresh == self.fresh_end && !self.add_chunk() {
            return Err(no_memory);
        }
        let is_none = bits.to_u64() == self.fresh as u64;
        if Words::<K>::index(bits) != self.fresh || bits.to_u64() > Words::<K>::VALUE_MAX {
            return Err("a slot map has a key of another slot");
        }
        self.fresh += 1;
        let slot = self.slots.view.slot_of(bits);
        match value {
            Some(_) if is_none => {
                self.retired += 1;
                return Err("a slot map has an element without a generation");
            }
            // SAFETY: the slot is in a chunk, and is free.
            Some(value) => unsafe {
                slot.begin(bits, value);
                slot.mark();
            },
            None if is_none => self.retired += 1,
            None => self.make_idle(bits),
        }
        Ok(())
    }
}

fn after_or_none<K: Key>(key: K::Bits) -> K::Bits {
    let next = Words::<K>::after(key);
    let index = Words::<K>::index(key);
    match next > key {
        true => next,
        false if K::WRAPPING => Words::<K>::key(index, 1),
        false => K::Bits::from_u64(0),
    }
}

/// A deserialiser of a map. The first field names the data in error messages. The second field is
/// the type of the map.
pub(crate) struct Pairs<M>(pub(crate) &'static str, pub(crate) PhantomData<M>);

impl<'de, K: Key, V: Deserialize<'de>> Visitor<'de> for Pairs<SlotMap<K, V>> {
    type Value = SlotMap<K, V>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
        let mut map = SlotMap::new();
        while let Some((bits, value)) = from.next_element::<(u64, Option<V>)>()? {
            if K::Bits::from_u64(bits).to_u64() != bits {
                return Err(A::Error::custom("a slot map has a key that is too large"));
            }
            map.read_slot(K::Bits::from_u64(bits), value).map_err(A::Error::custom)?;
        }
        Ok(map)
    }
}
impl<'de, K: Key, V: Deserialize<'de>> Deserialize<'de> for SlotMap<K, V> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(Pairs::<Self>("the slots of a slot map", PhantomData))
    }
}

//! Serialisation of secondary maps. Keys are still valid after deserialisation.

use super::{SecondaryMap, SparseSecondaryMap};
use crate::base::source::{DefaultHeap, Source};
use crate::slot_map::key::Key;
use crate::slot_map::Pairs;
use core::fmt;
use core::marker::PhantomData;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! secondary {
    ($map:ident) => {
        /// Writes a sequence of pairs of key and value.
        impl<K: Key + Serialize, V: Serialize, S: Source> Serialize for $map<K, V, S> {
            fn serialize<T: Serializer>(&self, to: T) -> Result<T::Ok, T::Error> {
                to.collect_seq(self)
            }
        }
        impl<'de, K: Key + Deserialize<'de>, V: Deserialize<'de>> Visitor<'de>
            for Pairs<$map<K, V>>
        {
            type Value = $map<K, V>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.0)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
                let mut map = $map::new_in(DefaultHeap);
                while let Some((key, value)) = from.next_element::<(K, V)>()? {
                    let failed = |_| A::Error::custom("no memory, or a key without an element");
                    map.try_insert(key, value).map_err(failed)?;
                }
                Ok(map)
            }
        }
        impl<'de, K: Key + Deserialize<'de>, V: Deserialize<'de>> Deserialize<'de> for $map<K, V> {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                from.deserialize_seq(Pairs::<Self>("the keys and values of a map", PhantomData))
            }
        }
    };
}
secondary!(SecondaryMap);
secondary!(SparseSecondaryMap);

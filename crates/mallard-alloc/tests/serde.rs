//! Tests of the serialisation of keys and maps.

use crate::common::Random;
use mallard::{Key, Key32, Key64, SecondaryMap, SlotMap, SparseSecondaryMap};
use std::collections::HashSet;

mallard::key_type! {
    struct TinyKey(3, 3);
}

fn there_and_back<T: serde::Serialize + serde::de::DeserializeOwned>(value: &T) -> T {
    serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap()
}

#[test]
fn a_key_is_serialised_as_an_integer() {
    let key = Key32::from_bits(3 << 20 | 7).unwrap();
    assert_eq!(serde_json::to_string(&key).unwrap(), (3u32 << 20 | 7).to_string());
    assert_eq!(there_and_back(&key), key);
    assert_eq!(there_and_back(&Some(Key64::null())), Some(Key64::null()));
    assert!(serde_json::from_str::<Key32>("0").unwrap_err().to_string().contains("no key"));
    assert!(serde_json::from_str::<Key32>("4294967296").is_err());
}

#[test]
fn serialisation_keeps_valid_keys_valid_and_stale_keys_stale() {
    let mut random = Random::new(8);
    let mut map = SlotMap::<Key32, String>::new();
    let mut given = HashSet::new();
    for round in 0..8 {
        for _ in 0..random.below(3000) {
            if random.below(3) < 2 {
                given.insert(map.insert(round.to_string()));
            } else if let Some(key) = map.keys().nth(random.below(9)) {
                map.remove(key);
            }
        }
        if round % 3 == 1 {
            map.clear();
            map.trim();
        }
        let away = map.keys().next();
        away.map(|key| map.detach(key));
        let twin = there_and_back(&map);
        assert!(given.iter().all(|&key| twin.get(key) == map.get(key)));
        assert_eq!((twin.len(), twin.iter().count()), (map.len(), map.len()));
        map = twin;
        let new: Vec<_> = (0..200).map(|_| map.insert("new".into())).collect();
        assert!(new.iter().all(|&key| given.insert(key)), "a key was given twice");
    }
    assert_eq!(serde_json::to_string(&SlotMap::<Key32, u8>::new()).unwrap(), "[]");
}

#[test]
fn serialisation_keeps_retired_slots_retired() {
    let mut map = SlotMap::<TinyKey, u8>::new();
    for _ in 0..7 {
        let key = map.insert(1);
        map.remove(key);
    }
    let kept = map.insert(2);
    let mut twin = there_and_back(&map);
    assert_eq!((twin.retired(), twin.len(), twin[kept]), (1, 1, 2));
    let mut count = 0;
    while let Ok(key) = twin.try_insert(0) {
        twin.remove(key);
        count += 1;
    }
    assert_eq!(count, 5 * 7); // retired slots and slots in use do not count
}

#[test]
fn deserialising_invalid_data_is_an_error() {
    for text in [
        "[[5,null]]",
        "[[1,7]]",
        "[[1048577,1],[1048577,1]]",
        "[[4294967297,1]]",
        "[[0,1]]",
        "[[1048577,1],[3,null]]",
        "{}",
    ] {
        assert!(serde_json::from_str::<SlotMap<Key32, u8>>(text).is_err(), "{text}");
    }
    assert!(serde_json::from_str::<SlotMap<TinyKey, u8>>("[[513,1]]").is_err());
    assert!(serde_json::from_str::<SecondaryMap<Key32, u8>>("[[1,1]]").is_err());
}

#[test]
fn serialisation_keeps_the_values_of_secondary_maps() {
    let mut map = SlotMap::<Key64, ()>::new();
    let keys: Vec<_> = (0..100).map(|_| map.insert(())).collect();
    let dense: SecondaryMap<_, _> = keys.iter().map(|&k| (k, k.index())).collect();
    let sparse: SparseSecondaryMap<_, _> = keys.iter().map(|&k| (k, k.index())).collect();
    let (dense, sparse) = (there_and_back(&dense), there_and_back(&sparse));
    assert!(keys.iter().all(|&k| dense[k] == k.index() && sparse[k] == k.index()));
    assert_eq!((dense.len(), sparse.len()), (100, 100));
}

#[test]
fn a_malicious_key_in_serialised_data_costs_no_more_memory_than_another_key() {
    let hostile = (1u64 << 32) | 0xffff_fffe;
    let map: SecondaryMap<Key64, u8> =
        serde_json::from_str(&format!("[[{hostile},1],[{},2]]", hostile - 7)).unwrap();
    assert_eq!(map.len(), 2);
    assert!(map.statistics().bytes_taken < 40_000, "{:?}", map.statistics());
}

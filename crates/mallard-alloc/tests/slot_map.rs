//! Tests of slot maps.

use crate::common::{Flaky, Random};
use mallard::{Buffer, Growth, Key, Key32, Key64, SlotMap};
use std::cell::RefCell;
use std::collections::HashSet;
use std::mem::MaybeUninit;
use std::panic::{catch_unwind, AssertUnwindSafe};

mallard::key_type! {
    struct TinyKey(3, 3);
    struct RoundKey(3, 2, wrapping);
    struct MidKey(12, 20);
}

/// The number of steps of a test, which is smaller under Miri.
const MANY: usize = if cfg!(miri) { 600 } else { 20_000 };

#[test]
fn an_empty_map_uses_no_memory_and_finds_no_key() {
    static EMPTY: SlotMap<Key32, u8> = SlotMap::new();
    assert_eq!((EMPTY.len(), EMPTY.capacity(), EMPTY.statistics().bytes_taken), (0, 0, 0));
    for bits in [1, 2, 0xfff, 0x10_0000, 0x10_0001, u32::MAX] {
        assert!(EMPTY.get(Key32::from_bits(bits).unwrap()).is_none());
    }
    assert_eq!(EMPTY.iter().count() + EMPTY.keys().count(), 0);
    let source = Flaky::new();
    drop(SlotMap::<Key32, u64, _>::new_in(source.clone()));
    assert_eq!(source.calls(), 0);
}

#[test]
fn an_inserted_element_is_found_until_it_is_removed() {
    let mut map = SlotMap::<Key32, String>::new();
    let a = map.insert("a".into());
    let b = map.insert("b".into());
    assert_eq!((map[a].as_str(), map.get(b).map(String::as_str)), ("a", Some("b")));
    map[b].push('!');
    assert_eq!(map.remove(a).as_deref(), Some("a"));
    assert_eq!((map.remove(a), map.get(a), map.contains_key(a)), (None, None, false));
    assert_eq!((map.len(), map.remove(b).as_deref(), map.len()), (1, Some("b!"), 0));
    let c = map.insert("c".into());
    assert!(c != a && c != b && map.get(b).is_none());
}

#[test]
fn values_keep_their_addresses() {
    let mut map = SlotMap::<Key64, u64>::new();
    let first = map.insert(7);
    let at = map.get(first).unwrap() as *const u64;
    let keys: Vec<_> = (0..MANY as u64).map(|i| map.insert(i)).collect();
    keys.iter().step_by(2).for_each(|&k| {
        map.remove(k);
    });
    let map = Box::new(map);
    assert_eq!(map.get(first).unwrap() as *const u64, at);
}

#[test]
fn a_key_from_an_arbitrary_integer_finds_no_element() {
    let mut map = SlotMap::<Key32, u64>::new();
    let keys: HashSet<_> = (0..MANY as u64 / 10).map(|i| map.insert(i)).collect();
    let mut random = Random::new(5);
    for i in 0..MANY as u32 {
        for bits in [random.next() as u32, i, i << 20 | 1, i | 1 << 20, i | 2 << 20] {
            if let Some(key) = Key32::from_bits(bits) {
                assert_eq!(map.contains_key(key), keys.contains(&key), "{key:?}");
            }
        }
    }
    assert!(map.remove(Key32::null()).is_none() && Key32::null().is_null());
    assert_eq!(Key32::from_bits(0), None);
    let future = Key32::from_bits(map.vacant_entry().key().to_bits()).unwrap();
    assert!(!map.contains_key(future));
}

#[test]
fn an_option_of_a_key_is_as_small_as_the_key() {
    assert_eq!((size_of::<Key32>(), size_of::<Option<Key32>>()), (4, 4));
    assert_eq!((size_of::<Key64>(), size_of::<Option<Key64>>()), (8, 8));
    assert_eq!(size_of::<TinyKey>(), 4);
    let key = Key32::from_bits(3 << 20 | 12).unwrap();
    assert_eq!(format!("{key:?}"), "Key32(12v3)");
    assert_eq!((key.index(), key.generation(), key.to_bits()), (12, 3, 3 << 20 | 12));
    assert!(key > Key32::from_bits(2 << 20 | 13).unwrap());
    assert_eq!(Key64::default(), Key64::null());
}

#[test]
fn a_slot_with_no_generation_left_is_retired() {
    let mut map = SlotMap::<TinyKey, u32>::new(); // 7 slots, and 7 generations of each
    let mut seen = HashSet::new();
    let mut count = 0;
    while let Ok(key) = map.try_insert(count) {
        assert!(seen.insert(key), "{key:?} was given twice");
        assert_eq!(map.remove(key), Some(count));
        count += 1;
    }
    assert_eq!((count, map.retired(), map.len(), map.capacity()), (49, 7, 0, 0));
    assert!(seen.iter().all(|&key| !map.contains_key(key)));
    assert_eq!(map.try_insert(5).unwrap_err().into_inner(), 5);
    let message = catch_unwind(AssertUnwindSafe(|| map.insert(6))).unwrap_err();
    assert!(message.downcast_ref::<&str>().unwrap().contains("in use or retired"));
    assert_eq!(map.iter().count(), 0);
}

#[test]
fn the_generations_of_a_wrapping_key_restart_at_the_first() {
    let mut map = SlotMap::<RoundKey, u32>::new();
    let first = map.insert(0);
    let mut key = first;
    for i in 1..=300 {
        assert_eq!(map.remove(key), Some(i - 1));
        key = map.insert(i);
        assert_eq!(map.iter().map(|(_, &v)| v).collect::<Vec<_>>(), [i]);
    }
    assert_eq!((key, map.retired()), (first, 0));
}

#[test]
fn a_full_map_returns_the_value_and_changes_nothing() {
    let mut map = SlotMap::<TinyKey, String>::new();
    let keys: Vec<_> = (0..7).map(|i| map.insert(i.to_string())).collect();
    assert_eq!(map.try_insert("no".into()).unwrap_err().into_inner(), "no");
    assert_eq!(map.len(), 7);
    map.remove(keys[3]);
    assert!(map.try_insert("yes".into()).is_ok());
}

#[test]
fn a_failed_allocation_at_any_call_changes_nothing() {
    for successes in 0..8 {
        let source = Flaky::new();
        let mut map = SlotMap::<Key32, [u64; 40], _>::new_in(source.clone());
        source.fail_after(successes);
        let mut keys = Vec::new();
        while let Ok(key) = map.try_insert([keys.len() as u64; 40]) {
            keys.push(key);
        }
        assert!(!map.try_reserve(1000));
        for (i, &key) in keys.iter().enumerate() {
            assert_eq!(map[key][39], i as u64);
        }
        assert_eq!(map.len(), keys.len());
        // Removing an element never needs memory.
        keys.drain(..).for_each(|key| assert!(map.remove(key).is_some()));
        assert_eq!((map.len(), map.iter().count()), (0, 0));
        source.recover();
        let key = map.insert([9; 40]);
        assert_eq!(map[key][0], 9);
    }
}

#[test]
fn removing_many_elements_without_memory_for_their_keys_loses_no_key() {
    let source = Flaky::new();
    let mut map = SlotMap::<Key32, u64, _>::new_in(source.clone());
    let mut all = HashSet::new();
    for round in 0..3 {
        let keys: Vec<_> = (0..MANY as u64).map(|i| map.insert(i)).collect();
        source.fail_after(round);
        keys.iter().for_each(|&key| assert!(map.remove(key).is_some()));
        let before = map.capacity();
        source.recover();
        for i in 0..MANY as u64 {
            all.insert(map.insert(i));
        }
        assert_eq!((map.capacity(), map.len(), map.iter().count()), (before, MANY, MANY));
        map.clear();
    }
    assert_eq!(all.len(), 3 * MANY);
}

#[test]
fn a_limit_bounds_all_memory_that_a_map_allocates() {
    let source = Flaky::new();
    let growth = Growth::fixed(1).limit(100_000);
    let mut map = SlotMap::<Key32, u64, _>::with_growth_in(growth, source.clone());
    while map.try_insert(1).is_ok() {}
    assert!(source.taken() <= 100_000 && map.len() > 5_000, "{} {}", source.taken(), map.len());
    assert_eq!(map.statistics().bytes_taken, source.taken());
}

#[test]
fn a_map_can_grow_by_several_chunks_in_one_request() {
    let source = Flaky::new();
    let mut map = SlotMap::<Key32, u64, _>::with_growth_in(Growth::fixed(1 << 18), source.clone());
    (0..MANY as u64).for_each(|i| {
        map.insert(i);
    });
    assert!(source.chunks() < 10);
    assert_eq!(map.values().sum::<u64>(), (MANY as u64 - 1) * MANY as u64 / 2);
}

#[test]
fn a_map_can_use_the_memory_of_a_buffer_or_of_another_allocator() {
    let mut bytes = vec![MaybeUninit::<u8>::uninit(); 1 << 16];
    let buffer = Buffer::new(&mut bytes);
    let mut map = SlotMap::<MidKey, u32, _>::new_in(buffer);
    let mut count = 0;
    while map.try_insert(count).is_ok() {
        count += 1;
    }
    assert!(count > 3_000, "{count} {:?}", map.statistics());
    assert_eq!(map.values().copied().max(), Some(count - 1));
}

#[test]
fn zero_sized_and_over_aligned_values_work() {
    let mut units = SlotMap::<Key32, ()>::new();
    let keys: Vec<_> = (0..MANY).map(|_| units.insert(())).collect();
    assert_eq!(keys.iter().collect::<HashSet<_>>().len(), MANY);
    assert!(keys.iter().all(|&key| units.remove(key).is_some()));

    #[repr(align(4096))]
    struct Page(u8);
    let mut pages = SlotMap::<Key64, Page>::new();
    let keys: Vec<_> = (0..20).map(|i| pages.insert(Page(i))).collect();
    for (i, &key) in keys.iter().enumerate() {
        assert_eq!(&pages[key] as *const Page as usize % 4096, 0);
        assert_eq!(pages[key].0 as usize, i);
    }
}

#[test]
fn a_key_is_known_before_its_element_in_insert_with_key_and_vacant_entry() {
    let mut map = SlotMap::<Key32, (Key32, u8)>::new();
    let key = map.insert_with_key(|key| (key, 1));
    assert_eq!(map[key], (key, 1));
    let entry = map.vacant_entry();
    let key = entry.key();
    entry.insert((key, 2)).1 += 1;
    assert_eq!(map[key], (key, 3));
    let refused = catch_unwind(AssertUnwindSafe(|| map.insert_with_key(|_| panic!("no"))));
    assert!(refused.is_err());
    assert_eq!((map.len(), map.iter().count()), (2, 2));
    let next = map.vacant_entry().key();
    assert_eq!(map.insert((key, 4)), next);
}

#[test]
fn several_distinct_elements_can_be_borrowed_mutably_together() {
    let mut map = SlotMap::<Key32, u32>::new();
    let keys: [Key32; 3] = std::array::from_fn(|i| map.insert(i as u32));
    let [a, b, c] = map.get_disjoint_mut(keys).unwrap();
    (*a, *b, *c) = (*c, *a, *b);
    assert_eq!(keys.map(|k| map[k]), [2, 0, 1]);
    assert!(map.get_disjoint_mut([keys[0], keys[1], keys[0]]).is_none());
    map.remove(keys[1]);
    assert!(map.get_disjoint_mut([keys[0], keys[1]]).is_none());
    assert!(map.get_disjoint_mut([]).is_some());
}

#[test]
fn a_detached_key_is_reserved_until_its_element_is_reattached() {
    let mut map = SlotMap::<Key32, String>::new();
    let key = map.insert("away".into());
    let other = map.insert("here".into());
    let value = map.detach(key).unwrap();
    assert_eq!((map.len(), map.detached(), map.contains_key(key)), (1, 1, false));
    assert_eq!((map.detach(key), map.iter().count()), (None, 1));
    assert!(map.insert("new".into()).index() != key.index());
    assert_eq!(map.reattach(other, value).unwrap_err().into_inner(), "away");
    map.reattach(key, "back".into()).unwrap();
    assert_eq!((map[key].as_str(), map.detached(), map.iter().count()), ("back", 0, 3));
    // A detached key that is removed becomes invalid, so no element can be put back under this key.
    assert!(map.detach(key).is_some() && map.remove(key).is_none());
    assert_eq!((map.detached(), map.reattach(key, String::new()).is_err()), (0, true));
    let again = map.insert("again".into());
    assert_eq!((again.index(), again.generation()), (key.index(), key.generation() + 1));
    assert!(map.detach(again).is_some());
    map.clear();
    assert_eq!(
        (map.detached(), map.len(), map.reattach(again, String::new()).is_err()),
        (0, 0, true)
    );
}

#[test]
fn indexing_with_a_stale_key_panics_with_a_message() {
    let mut map = SlotMap::<Key32, u8>::new();
    let key = map.insert(1);
    map.remove(key);
    let message = catch_unwind(AssertUnwindSafe(|| map[key])).unwrap_err();
    let message = message.downcast_ref::<String>().unwrap();
    assert!(message.contains("no element has the key Key32(1v1)") && message.contains("help: "));
}

#[test]
fn maps_are_send_and_sync_if_their_values_are() {
    fn both<T: Send + Sync>() {}
    both::<SlotMap<Key32, u64>>();
    both::<mallard::slot_map::Iter<'_, Key32, u64>>();
    both::<mallard::slot_map::IntoIter<Key32, u64>>();
    fn send<T: Send>() {}
    send::<SlotMap<Key32, RefCell<u64>>>();
    send::<mallard::slot_map::IterMut<'_, Key32, RefCell<u64>>>();
}

#[test]
fn removing_from_an_empty_map_allocates_no_memory() {
    let source = Flaky::new();
    source.fail_after(0);
    let mut map: SlotMap<Key32, u8, Flaky> = SlotMap::new_in(source.clone());
    assert_eq!(map.remove(Key32::null()), None);
    assert_eq!(map.remove(Key32::from_bits(1 << 20 | 7).unwrap()), None);
    map.retain(|_, _| false);
    map.clear();
    assert_eq!(map.drain().count(), 0);
    assert_eq!((map.statistics().bytes_taken, source.calls()), (0, 0));
}

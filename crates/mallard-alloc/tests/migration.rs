//! Uses every function that docs/guide/rust.md names as a replacement for a function of another
//! crate, so that the guide names only functions that exist. Most of the code is only compiled.
#![allow(dead_code, clippy::type_complexity, clippy::arc_with_non_send_sync)]

use mallard::handles::{Arc, OwnedBox, Rc, Weak};
use mallard::shared_slot_map::Copied;
use mallard::*;
use std::alloc::Layout;

fn from_bumpalo(arena: &mut Arena) {
    let _ = (Arena::new(), Arena::with_capacity(9), Arena::<_, 8>::with_min_align());
    let _ = (arena.alloc(1), arena.try_alloc(1));
    let _ = (arena.alloc_with(|| 1), arena.try_alloc_with(|| 1).is_ok());
    let _ = (
        arena.alloc_try_with(|| "1".parse::<u8>()),
        arena.try_alloc_try_with(|| Ok::<_, ()>(1)).is_ok(),
    );
    let _ = (arena.alloc_str("a"), arena.try_alloc_str("a"));
    let layout = Layout::new::<u64>();
    let _ = (arena.alloc_layout(layout), arena.try_alloc_layout(layout));
    let _ = (arena.alloc_slice_copy(&[1]), arena.try_alloc_slice_copy(&[1]));
    let _ = (arena.alloc_slice_clone(&[1]), arena.try_alloc_slice_clone(&[1]));
    let _ = (arena.alloc_slice_fill_with(1, |_| 1), arena.try_alloc_slice_fill_with(1, |_| 1));
    let _ = (arena.alloc_iter(0..9), arena.alloc_fmt(format_args!("a")));
    let _: arena::Box<'_, u8> = arena.alloc_box(1);
    let _ = Arena::with_growth(Growth::new().limit(9));
    let _ = (arena.statistics().bytes_live, arena.allocated_chunks().count());
    arena.reset();
    arena.release();
    arena.trim(9);
    let _ = SharedArena::new().alloc(1);
}

fn from_typed_arena(mut arena: TypedArena<u8>) {
    let _ = (TypedArena::<u8>::new(), TypedArena::<u8>::with_capacity(9));
    let _ =
        (arena.alloc(1), arena.try_alloc(1), arena.alloc_extend([1]), arena.try_alloc_extend([1]));
    arena.reserve(9);
    let _ = (arena.try_reserve(9), Arena::new().alloc_uninit_slice::<u8>(9));
    let _ = (arena.len(), arena.iter_mut().count());
    arena.reset();
    arena.release();
    arena.trim(9);
    let _ =
        (TypedArena::<u8>::with_growth(Growth::new()), TypedArena::<u8, _>::new_in(DefaultHeap));
    let _ = (arena.statistics(), arena.into_vec());
}

key_type! { struct Own(20, 12); struct Long(32, 32); struct Again(24, 8, wrapping); }

fn from_slotmap(mut map: SlotMap<Own, u8>, key: Own) {
    let _ = (key.to_bits(), Own::from_bits(7), Own::null().is_null(), Key32::null(), Key64::null());
    let _ = (SlotMap::<Long, u8>::new(), SlotMap::<Again, u8>::with_capacity(9));
    let _ = (map.insert(1), map.insert_with_key(|_| 1), map.remove(key), map.contains_key(key));
    let _ =
        (map.get(key).is_some(), map.get_mut(key).is_some(), map.get_disjoint_mut([key]).is_some());
    map.retain(|_, _| true);
    let _ = (map.drain().count(), map.keys().count(), map.values().count(), map.iter().count());
    map.clear();
    map.reserve(9);
    let _ = map.vacant_entry().key();
    let _ = (map.detach(key), map.reattach(key, 1));
    let mut speeds: SecondaryMap<Own, u8> = SecondaryMap::new();
    map.for_each_with(&mut speeds, |_, _, _| ());
    macro_rules! secondary {
        ($type:ident) => {{
            let mut map: $type<Own, u8> = $type::new();
            let _ = (map.insert(key, 1), map.try_insert(key, 1), map.get_or_insert_with(key, || 1));
            let _ = (map.get(key).is_some(), map.get_mut(key).is_some(), map.contains_key(key));
            let _ =
                (map.get_disjoint_mut([key]).is_some(), map.remove(key), map.len(), map.is_empty());
            let _ = (map.keys().count(), map.values().count(), map.values_mut().count());
            let _ = (map.iter().count(), map.iter_mut().count(), map.drain().count());
            map.retain(|_, _| true);
            map.clear();
        }};
    }
    secondary!(SecondaryMap);
    secondary!(SparseSecondaryMap);
}

fn from_sharded_slab(map: &SharedSlotMap<Key64, u64>, key: Key64) {
    const _: fn() -> SharedSlotMap<Key64, u64> = SharedSlotMap::new;
    let _ = (map.insert(1), map.try_insert(1), map.insert_with_key(|_| 1));
    let _ = (map.get(key), map.with(key, |value| *value), map.remove(key), map.take(key));
    let _ = SharedSlotMap::<Key64, u64, Copied>::new().read(key);
    map.for_each(|_, _| ());
    let pool = std::sync::Arc::new(ObjectPool::new());
    let _: OwnedBox<u8> = pool.make_owned(1);
    let _ = ObjectPool::<u8>::with_hooks(NoHooks);
}

fn from_fastalloc(pool: &ObjectPool<u8>) {
    let _ = (
        ObjectPool::<u8>::fixed(9),
        ObjectPool::<u8>::new(),
        ObjectPool::<u8>::with_growth(Growth::new()),
    );
    let _ = (
        Growth::none(9),
        Growth::linear(9, 9),
        Growth::exponential(9, 2, 1),
        Growth::custom(|a, _| a),
    );
    let _: [fn(); 3] = [
        || drop(ObjectPool::<u8, sync::Mutex>::with_mode()),
        || drop(ObjectPool::<u8, sync::ThreadCached>::with_mode()),
        || drop(ObjectPool::<u8, sync::LockFree>::fixed(8)),
    ];
    let _ = (pool.try_make(1).is_ok(), pool.make_with(|| 1));
    let _ = (pool.make_batch([1]), pool.try_make_batch([1]).is_ok());
    let _ = (pool.available(), pool.is_full(), pool.capacity(), pool.statistics());
    let (rcs, arcs) = (RcPool::new(), ArcPool::<_, sync::Mutex>::new());
    let (rc, arc) = (rcs.make(1), arcs.make(1));
    let _ = Counted::new(DefaultHeap).counts();
    let _: (Weak<u8>, _) = (Rc::downgrade(&rc), Arc::downgrade(&arc));
}

/// Checks that each function in the right column of a table of the guide occurs in this file.
#[test]
fn this_file_uses_each_name_in_the_migration_tables_of_the_guide() {
    let (guide, here) = (include_str!("../docs/rust.md"), include_str!("migration.rs"));
    let rows =
        guide.lines().filter(|line| line.starts_with("| ") && line.matches(" | ").count() == 1);
    let mut found = 0;
    for row in rows {
        let (left, right) = row.split_once(" | ").unwrap();
        // In the guide, "the same" stands for the name on the left.
        let cells = if right.starts_with("the same") { [left, right] } else { ["", right] };
        for code in cells.iter().flat_map(|cell| cell.split('`').skip(1).step_by(2)) {
            for word in code.split(|c: char| !c.is_alphanumeric() && c != '_') {
                let is_name =
                    word.len() > 2 && (word.contains('_') || word.starts_with(char::is_uppercase));
                if is_name && !NOT_OURS.contains(&word) {
                    found += 1;
                    assert!(here.contains(word), "`{word}` of: {row}");
                }
            }
        }
    }
    assert!(found > 80, "{found}");
}

/// Words in examples, traits of the standard library, and features of Cargo.
const NOT_OURS: [&str; 9] =
    ["Some", "None", "Vec", "allocator_api", "Option", "EnemyKey", "try_", "Hooks", "Deref"];

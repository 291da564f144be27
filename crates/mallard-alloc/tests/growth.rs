//! Tests of sources, growth, errors and statistics.

use mallard::{
    Arena, Buffer, Cause, DefaultHeap, Full, Growth, Key, Key32, Null, ObjectPool, SecondaryMap,
    SlotMap, Source, Statistics,
};
use std::alloc::Layout;
use std::mem::MaybeUninit;

#[test]
fn a_buffer_aligns_its_chunks_and_reuses_only_the_last() {
    let mut bytes = [MaybeUninit::uninit(); 256];
    let buffer = Buffer::new(&mut bytes);
    let layout = Layout::from_size_align(40, 32).unwrap();
    let first = buffer.try_take(layout).unwrap();
    let second = buffer.try_take(layout).unwrap();
    assert_eq!(second.data.addr().get() % 32, 0);
    assert!(second.data.addr().get() >= first.data.addr().get() + 40);
    // SAFETY: both chunks are from the buffer.
    unsafe { buffer.give(second) };
    assert_eq!(buffer.try_take(layout).unwrap().data, second.data);
    assert!(buffer.try_take(Layout::from_size_align(300, 1).unwrap()).is_none());
}

#[test]
fn a_null_source_has_no_memory() {
    assert!(Null.try_take(Layout::new::<u8>()).is_none());
}

#[test]
fn a_growth_rule_has_a_single_step_if_its_limit_equals_the_first_step() {
    assert!(Growth::none(100).is_single());
    assert!(!Growth::fixed(100).is_single());
    assert!(Growth::fixed(100).limit(100).is_single());
}

#[test]
fn an_error_explains_itself_in_one_line_and_contains_the_value() {
    fn is<T>(full: Full<T>, cause: Cause, begin: &str) -> T {
        assert_eq!(full.cause(), cause);
        let text = full.to_string();
        assert!(text.starts_with(begin) && !text.contains('\n'), "{text}");
        full.into_inner()
    }
    let pool = ObjectPool::<String>::fixed(0);
    let full = pool.try_make("mine".into()).unwrap_err();
    assert_eq!(is(full, Cause::NoMemory, "no memory"), "mine");

    mallard::key_type! { struct Few(3, 29); }
    let mut map: SlotMap<Few, u8> = (0..7).fold(SlotMap::new(), |mut map, i| {
        map.insert(i);
        map
    });
    assert_eq!(is(map.try_insert(7).unwrap_err(), Cause::NoSlot, "no slot"), 7);
    let key = map.keys().next().unwrap();
    assert_eq!(is(map.reattach(key, 8).unwrap_err(), Cause::NotDetached, "not detached"), 8);

    let mut more: SecondaryMap<Key32, u8> = SecondaryMap::new();
    let stale = more.try_insert(Key32::null(), 9).unwrap_err();
    assert_eq!(is(stale, Cause::StaleKey, "stale key"), 9);

    struct Unprintable;
    impl std::fmt::Display for Unprintable {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            Err(std::fmt::Error)
        }
    }
    let arena = Arena::new();
    let refused = arena.try_alloc_fmt(format_args!("{Unprintable}")).unwrap_err();
    is(refused, Cause::Format, "not written");
}

#[test]
fn the_heap_rejects_a_request_for_a_chunk_of_0_bytes() {
    assert!(DefaultHeap.try_take(Layout::new::<()>()).is_none()); // Miri would reject a call of the heap
}

#[test]
fn allocators_implement_default_for_every_type_parameter() {
    #[derive(Default)]
    struct Parts {
        words: Arena<DefaultHeap, 8>,
        shared: mallard::SharedArena<DefaultHeap, 16>,
        nothing: Arena<Null, 2>,
        pool: ObjectPool<u8, mallard::sync::Mutex>,
    }
    let parts = Parts::default();
    let address = |p: &u8| std::ptr::from_ref(p).addr();
    assert_eq!(address(parts.words.alloc(1)) % 8, 0);
    assert_eq!(address(parts.shared.alloc(1)) % 16, 0);
    assert_eq!(*parts.pool.make(1), 1);
    assert!(parts.nothing.try_alloc(1).is_err());
}

#[test]
fn a_glob_import_of_the_threading_modes_hides_no_name_of_the_prelude() {
    #[allow(unused_imports)]
    use mallard::sync::*;
    let none: Option<u8> = None;
    assert!(none.is_none());
}

#[test]
fn statistics_are_one_json_object() {
    let mut text = String::new();
    Statistics { chunks: 3, ..Default::default() }.write_json(&mut text).unwrap();
    assert!(text.starts_with("{\"blocks_live\":0,"));
    assert!(text.contains("\"chunks\":3"));
    assert!(text.ends_with('}'));
}

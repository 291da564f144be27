//! Compiles and runs the Rust of the cards of `mallard advise`. A test of mallard-cli compares the
//! files in `advice/` with what the command writes.

extern crate allocator_api2_02 as allocator_api2;

#[path = "advice/arena.rs"]
mod arena;
#[path = "advice/arena_hash_map.rs"]
mod arena_hash_map;
#[path = "advice/multipool.rs"]
mod multipool;
#[path = "advice/multipool_hash_map.rs"]
mod multipool_hash_map;
#[path = "advice/multipool_over_arena.rs"]
mod multipool_over_arena;
#[path = "advice/multipool_over_arena_hash_map.rs"]
mod multipool_over_arena_hash_map;
#[path = "advice/object_pool.rs"]
mod object_pool;
#[path = "advice/wink_out_arena.rs"]
mod wink_out_arena;
#[path = "advice/wink_out_arena_hash_map.rs"]
mod wink_out_arena_hash_map;
#[path = "advice/wink_out_multipool_over_arena.rs"]
mod wink_out_multipool_over_arena;
#[path = "advice/wink_out_multipool_over_arena_hash_map.rs"]
mod wink_out_multipool_over_arena_hash_map;

#[test]
fn parts_of_a_call_are_in_its_allocator() {
    assert_eq!(wink_out_arena::render_document("a b c"), "3 parts".len());
    assert_eq!(arena::render_document("a b"), 2 + "dropped at the end of the arena".len());
    assert_eq!(wink_out_multipool_over_arena::render_document("a b c d"), 4);
    assert_eq!(multipool_over_arena::render_document("kept b"), "kept");
}

#[test]
fn a_structure_is_in_a_multipool_and_objects_are_in_an_object_pool() {
    let memory = mallard::Multipool::new();
    let mut structure = multipool::Structure::new(&memory);
    structure.render_document(b"value");
    assert_eq!(structure.len(), 1);
    let objects = mallard::ObjectPool::new();
    let object = object_pool::render_document(&objects, 7);
    assert_eq!((object.id, object.value), (7, 0.0));
}

#[test]
fn a_hash_map_is_in_the_allocator_of_a_call_or_in_a_multipool() {
    let maps: [fn(&str) -> usize; 4] = [
        arena_hash_map::render_document,
        wink_out_arena_hash_map::render_document,
        multipool_over_arena_hash_map::render_document,
        wink_out_multipool_over_arena_hash_map::render_document,
    ];
    assert!(maps.into_iter().all(|render| render("a b cc") == 2));
    let memory = mallard::Multipool::new();
    let mut structure = multipool_hash_map::Structure::new(&memory);
    structure.render_document(7, b"value");
    assert_eq!(structure.len(), 1);
}

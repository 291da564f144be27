//! Compiles and runs the Rust code that `mallard advise` recommends. A test of mallard-cli compares
//! the files in `advice/` with what the command writes.

extern crate allocator_api2_02 as allocator_api2;

mod arena;
mod arena_hash_map;
mod multipool;
mod multipool_hash_map;
mod multipool_over_arena;
mod multipool_over_arena_hash_map;
mod object_pool;
mod wink_out_arena;
mod wink_out_arena_hash_map;
mod wink_out_multipool_over_arena;
mod wink_out_multipool_over_arena_hash_map;

#[test]
fn advised_code_allocates_the_parts_of_a_call_from_one_allocator() {
    assert_eq!(wink_out_arena::render_document("a b c"), "3 parts".len());
    assert_eq!(arena::render_document("a b"), 2 + "dropped at the end of the arena".len());
    assert_eq!(wink_out_multipool_over_arena::render_document("a b c d"), 4);
    assert_eq!(multipool_over_arena::render_document("kept b"), "kept");
}

#[test]
fn advised_code_puts_a_structure_in_a_multipool_and_objects_in_an_object_pool() {
    let memory = mallard::Multipool::new();
    let mut structure = multipool::Structure::new(&memory);
    structure.render_document(b"value");
    assert_eq!(structure.len(), 1);
    let objects = mallard::ObjectPool::new();
    let object = object_pool::render_document(&objects, 7);
    assert_eq!((object.id, object.value), (7, 0.0));
}

#[test]
fn advised_code_puts_a_hash_map_in_an_arena_for_one_call_or_in_a_multipool() {
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

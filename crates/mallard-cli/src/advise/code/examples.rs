//! The files with the example code for cards.

macro_rules! examples {
    ($($folder:literal: $($file:literal)*;)*) => {
        &[$($(($file, include_str!(concat!("../../../../../", $folder, "/", $file)))),*),*]
    };
}

/// The examples as pairs of file name and text. A file name consists of a rule, a word for the
/// purpose of the blocks or for the code that allocates them, and the file extension of the
/// language.
pub const EXAMPLES: &[(&str, &str)] = examples! {
    "tests/compile/advice":
        "arena.c" "arena.cpp" "arena_hash_map.cpp" "arena_hash_map_pmr.cpp" "arena_library.c"
        "arena_map.cpp" "arena_map_pmr.cpp" "arena_objects.cpp" "arena_objects_pmr.cpp" "arena_pmr.cpp"
        "multipool.c" "multipool.cpp" "multipool_hash_map.cpp" "multipool_hash_map_pmr.cpp"
        "multipool_objects.cpp" "multipool_objects_pmr.cpp" "multipool_over_arena.c"
        "multipool_over_arena.cpp" "multipool_over_arena_hash_map.cpp"
        "multipool_over_arena_hash_map_pmr.cpp" "multipool_over_arena_library.c"
        "multipool_over_arena_pmr.cpp" "multipool_over_arena_vector.cpp"
        "multipool_over_arena_vector_pmr.cpp" "multipool_pmr.cpp" "multipool_vector.cpp"
        "multipool_vector_pmr.cpp" "object_pool.c" "object_pool.cpp" "object_pool_pmr.cpp"
        "wink_out_arena.c" "wink_out_arena.cpp" "wink_out_arena_hash_map.cpp"
        "wink_out_arena_hash_map_pmr.cpp" "wink_out_arena_map.cpp" "wink_out_arena_map_pmr.cpp"
        "wink_out_arena_objects.cpp" "wink_out_arena_objects_pmr.cpp" "wink_out_arena_pmr.cpp"
        "wink_out_multipool_over_arena.c" "wink_out_multipool_over_arena.cpp"
        "wink_out_multipool_over_arena_hash_map.cpp" "wink_out_multipool_over_arena_hash_map_pmr.cpp"
        "wink_out_multipool_over_arena_pmr.cpp" "wink_out_multipool_over_arena_vector.cpp"
        "wink_out_multipool_over_arena_vector_pmr.cpp"
    ;
    "crates/mallard-alloc/tests/advice":
        "arena.rs" "arena_hash_map.rs" "multipool.rs" "multipool_hash_map.rs" "multipool_over_arena.rs"
        "multipool_over_arena_hash_map.rs" "object_pool.rs" "wink_out_arena.rs"
        "wink_out_arena_hash_map.rs" "wink_out_multipool_over_arena.rs"
        "wink_out_multipool_over_arena_hash_map.rs"
    ;
};

// In render_document (render.cpp:40)
// On stable Rust, the HashMap and the String of std take no allocator. These do:
use allocator_api2::vec::Vec; // with the feature allocator-api2-02 of mallard-alloc
use hashbrown::HashMap; // of the crate hashbrown 0.15, which uses the same allocator-api2
use mallard::Arena;
use std::mem::ManuallyDrop;

pub fn render_document(input: &str) -> usize {
    let memory = Arena::new(); // one for each call
    let mut parts = ManuallyDrop::new(HashMap::new_in(&memory)); // never dropped
    for part in input.split(' ') {
        let text = parts.entry(part.len()).or_insert_with(|| Vec::new_in(&memory));
        text.extend_from_slice(part.as_bytes());
    }
    parts.len()
}

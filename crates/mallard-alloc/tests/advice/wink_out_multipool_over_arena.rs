// In render_document (render.cpp:40)
use allocator_api2::vec::Vec; // with the feature allocator-api2-02 of mallard-alloc
use mallard::{Arena, Multipool};
use std::mem::ManuallyDrop;

pub fn render_document(input: &str) -> usize {
    let memory = Multipool::new_in(Arena::new()); // one for each call

    // Never dropped: the end of `memory` frees everything.
    let mut parts = ManuallyDrop::new(Vec::new_in(&memory));
    parts.extend(input.split(' '));
    parts.len()
}

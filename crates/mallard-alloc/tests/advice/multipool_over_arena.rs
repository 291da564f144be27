// In render_document (render.cpp:40)
use allocator_api2::vec::Vec; // with the feature allocator-api2-02 of mallard-alloc
use mallard::{Arena, Multipool};

pub fn render_document(input: &str) -> String {
    let memory = Multipool::new_in(Arena::new()); // one for each call
    let mut parts = Vec::new_in(&memory); // and each other collection of the call
    parts.extend(input.split(' '));
    parts.first().copied().unwrap_or_default().to_string() // what outlives the call is on the heap
}

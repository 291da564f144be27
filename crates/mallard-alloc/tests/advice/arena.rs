// In render_document (render.cpp:40)
use allocator_api2::vec::Vec; // with the feature allocator-api2-02 of mallard-alloc
use mallard::Arena;

pub fn render_document(input: &str) -> usize {
    let memory = Arena::new(); // one for each call
    let mut parts = Vec::new_in(&memory); // and each other collection of the call
    parts.extend(input.split(' '));
    let owner = memory.own(String::from("dropped at the end of the arena"));
    parts.len() + owner.len()
}

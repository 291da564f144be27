// In render_document (render.cpp:40)
// On stable Rust, the HashMap and the String of std take no allocator. These do:
use allocator_api2::vec::Vec; // with the feature allocator-api2-02 of mallard-alloc
use hashbrown::{DefaultHashBuilder, HashMap}; // of hashbrown 0.15, with the same allocator-api2
use mallard::Multipool;

/// `memory` is made once, where the program starts: one for each call saves much less.
pub struct Structure<'m> {
    entries: HashMap<u32, Vec<u8, &'m Multipool>, DefaultHashBuilder, &'m Multipool>,
}

impl<'m> Structure<'m> {
    pub fn new(memory: &'m Multipool) -> Self {
        Structure { entries: HashMap::new_in(memory) }
    }

    pub fn render_document(&mut self, key: u32, value: &[u8]) {
        let memory = *self.entries.allocator();
        let entry = self.entries.entry(key).or_insert_with(|| Vec::new_in(memory));
        entry.extend_from_slice(value);
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }
}

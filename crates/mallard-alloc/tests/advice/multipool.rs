// In render_document (render.cpp:40)
use allocator_api2::vec::Vec; // with the feature allocator-api2-02 of mallard-alloc
use mallard::Multipool;

/// `memory` is made once, where the program starts: one for each call saves much less.
pub struct Structure<'m> {
    entries: Vec<Vec<u8, &'m Multipool>, &'m Multipool>,
}

impl<'m> Structure<'m> {
    pub fn new(memory: &'m Multipool) -> Self {
        Structure { entries: Vec::new_in(memory) }
    }

    pub fn render_document(&mut self, value: &[u8]) {
        let mut entry = Vec::new_in(*self.entries.allocator());
        entry.extend_from_slice(value);
        self.entries.push(entry);
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }
}

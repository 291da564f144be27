//! Tests of arenas.

mod blocks;
mod freeing;
mod objects;

use std::alloc::Layout;
use std::sync::{Arc, Mutex};

fn layout(bytes: usize, align: usize) -> Layout {
    Layout::from_size_align(bytes, align).unwrap()
}

/// A value that records its drop in a shared list.
struct Noted(usize, Arc<Mutex<Vec<usize>>>);

impl Drop for Noted {
    fn drop(&mut self) {
        self.1.lock().unwrap().push(self.0);
    }
}

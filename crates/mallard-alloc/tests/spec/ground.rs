//! The source of chunks for the allocators in the test programs of `spec/`.

use mallard::{Chunk, DefaultHeap, Source};
use std::alloc::Layout;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// A source over the heap that records its chunks, fails on demand, and never returns more than 4
/// GiB. Clones share the records.
#[derive(Clone, Default)]
pub struct Ground(Rc<Books>);

#[derive(Default)]
struct Books {
    calls: Cell<usize>,
    /// The allocated chunks that were not returned, by address.
    out: RefCell<BTreeMap<usize, Layout>>,
    refuse_from: Cell<Option<usize>>,
    refuse_above: Cell<Option<usize>>,
}

impl Ground {
    /// Makes the source fail after this number of further requests.
    pub fn fail_after(&self, requests: usize) {
        self.0.refuse_from.set(Some(self.calls() + requests));
    }
    /// Makes the source fail for chunks of more than `bytes` bytes.
    pub fn fail_above(&self, bytes: usize) {
        self.0.refuse_above.set(Some(bytes));
    }
    pub fn fail_never(&self) {
        self.0.refuse_from.set(None);
        self.0.refuse_above.set(None);
    }

    /// Returns the number of bytes of allocated chunks that were not returned.
    pub fn taken(&self) -> usize {
        self.0.out.borrow().values().map(Layout::size).sum()
    }
    /// Returns the number of allocated chunks that were not returned.
    pub fn chunks(&self) -> usize {
        self.0.out.borrow().len()
    }
    /// Returns the number of calls that requested a chunk.
    pub fn calls(&self) -> usize {
        self.0.calls.get()
    }
    /// Returns whether the `bytes` bytes from address `at` on are in one chunk.
    pub fn holds(&self, at: usize, bytes: usize) -> bool {
        let out = self.0.out.borrow();
        let chunk = out.range(..=at).next_back();
        chunk.is_some_and(|(begin, layout)| at + bytes <= begin + layout.size())
    }
}

// SAFETY: every call is passed to the heap.
unsafe impl Source for Ground {
    fn try_take(&self, layout: Layout) -> Option<Chunk> {
        let call = self.calls();
        self.0.calls.set(call + 1);
        let too_late = self.0.refuse_from.get().is_some_and(|first| call >= first);
        let too_large = layout.size() > self.0.refuse_above.get().unwrap_or(4 << 30);
        if too_late || too_large {
            return None;
        }
        let chunk = DefaultHeap.try_take(layout)?;
        self.0.out.borrow_mut().insert(chunk.data.as_ptr().addr(), chunk.layout);
        Some(chunk)
    }
    unsafe fn give(&self, chunk: Chunk) {
        let found = self.0.out.borrow_mut().remove(&chunk.data.as_ptr().addr());
        assert_eq!(found, Some(chunk.layout), "a chunk comes back as it was given, and once");
        // SAFETY: the chunk is from the heap, as `try_take` returned it.
        unsafe { DefaultHeap.give(chunk) }
    }
}

//! Helpers that several tests use.

use mallard::{Chunk, DefaultHeap, Source};
use std::alloc::Layout;
use std::cell::Cell;
use std::rc::Rc;

/// A source over the heap that counts its chunks and fails on demand. Clones share the counts.
/// Dropping the last clone panics if a chunk was not returned to the source.
#[derive(Clone, Default)]
pub struct Flaky(Rc<Books>);

#[derive(Default)]
struct Books {
    taken: Cell<usize>,
    chunks: Cell<usize>,
    calls: Cell<usize>,
    successes_left: Cell<Option<usize>>,
}

impl Flaky {
    pub fn new() -> Self {
        Self::default()
    }
    /// Makes the source fail after `successes` more chunks.
    pub fn fail_after(&self, successes: usize) {
        self.0.successes_left.set(Some(successes));
    }
    /// Lets the source succeed again.
    pub fn recover(&self) {
        self.0.successes_left.set(None);
    }
    /// Returns the number of bytes of allocated chunks that were not returned.
    pub fn taken(&self) -> usize {
        self.0.taken.get()
    }
    /// Returns the number of allocated chunks that were not returned.
    pub fn chunks(&self) -> usize {
        self.0.chunks.get()
    }
    /// Returns the number of calls that requested a chunk.
    pub fn calls(&self) -> usize {
        self.0.calls.get()
    }
}

// SAFETY: every call is passed to the heap.
unsafe impl Source for Flaky {
    fn try_take(&self, layout: Layout) -> Option<Chunk> {
        let books = &*self.0;
        books.calls.set(books.calls.get() + 1);
        match books.successes_left.get() {
            Some(0) => return None,
            Some(n) => books.successes_left.set(Some(n - 1)),
            None => {}
        }
        let chunk = DefaultHeap.try_take(layout)?;
        books.taken.set(books.taken.get() + chunk.layout.size());
        books.chunks.set(books.chunks.get() + 1);
        Some(chunk)
    }
    unsafe fn give(&self, chunk: Chunk) {
        self.0.taken.set(self.0.taken.get() - chunk.layout.size());
        self.0.chunks.set(self.0.chunks.get() - 1);
        // SAFETY: the chunk is from the heap, as `try_take` returned it.
        unsafe { DefaultHeap.give(chunk) }
    }
}

impl Drop for Books {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.taken.get(), 0, "bytes were not given back to the source");
            assert_eq!(self.chunks.get(), 0, "chunks were not given back to the source");
        }
    }
}

/// A generator of random numbers that are the same in every run.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    /// Returns a random number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

/// A public type, found in the sources.
pub struct PublicType {
    pub name: String,
    /// The public module that contains the type.
    pub module: Option<&'static str>,
    /// Whether the type has a lifetime or a type parameter.
    pub is_generic: bool,
    pub file: String,
}

/// Returns all types declared with `pub struct` or `pub enum`, except types hidden from the
/// documentation.
pub fn public_types() -> Vec<PublicType> {
    const MODULES: [&str; 8] = [
        "arena",
        "handles",
        "object_pool",
        "secondary_map",
        "shared_slot_map",
        "slot_map",
        "sync",
        "typed_arena",
    ];
    /// Types that occur in public functions, but are hidden from the documentation.
    const HIDDEN: [&str; 9] = [
        "CachedCore",
        "InArena",
        "LiveCursor",
        "LockFreeCore",
        "LockedCore",
        "PlainCore",
        "Slot",
        "SlotShape",
        "Width",
    ];
    /// Types that the crate root re-exports.
    const AT_THE_ROOT: [&str; 9] = [
        "Arena",
        "Key32",
        "Key64",
        "ObjectPool",
        "SecondaryMap",
        "SharedSlotMap",
        "SlotMap",
        "SparseSecondaryMap",
        "TypedArena",
    ];
    let src = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![src.clone()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let file = path.strip_prefix(&src).unwrap().to_str().unwrap().to_owned();
            let top = file.split(['/', '.']).next().unwrap();
            for line in std::fs::read_to_string(&path).unwrap().lines() {
                let line = line.trim_start();
                let Some(rest) =
                    ["pub struct ", "pub enum "].iter().find_map(|p| line.strip_prefix(p))
                else {
                    continue;
                };
                let name: String = rest.chars().take_while(|c| c.is_alphanumeric()).collect();
                if HIDDEN.contains(&&*name) {
                    continue;
                }
                // `OwnedBox` is declared in the file of the pool that the box keeps alive, but is
                // documented with the handles.
                let top = if name == "OwnedBox" { "handles" } else { top };
                let module = MODULES.into_iter().find(|m| *m == top);
                let module = module.filter(|_| !AT_THE_ROOT.contains(&&*name));
                let after = &rest[name.len()..];
                let is_generic = after.starts_with('<') && !after.starts_with("<const CHUNK");
                found.push(PublicType { name, module, is_generic, file: file.clone() });
            }
        }
    }
    assert!(found.len() > 80, "{}", found.len());
    found
}

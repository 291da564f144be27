//! The code of cards in Rust.

use super::Made;

/// The text with the crate mallard-alloc.
pub fn mallard(rule: &str, made: Option<Made>) -> Option<String> {
    let is_hash = made == Some(Made::HashMap);
    let text = match rule {
        "wink-out-arena" if is_hash => &winked_out(&in_arena(HASH_MAP)),
        "arena" if is_hash => &in_arena(HASH_MAP),
        "wink-out-multipool-over-arena" if is_hash => &winked_out(&in_multipool(HASH_MAP)),
        "multipool-over-arena" if is_hash => &in_multipool(HASH_MAP),
        "multipool" if is_hash => HASH_MAP_IN_MULTIPOOL,
        "wink-out-arena" => WINK_OUT_ARENA,
        "arena" => ARENA,
        "wink-out-multipool-over-arena" => WINK_OUT_MULTIPOOL_OVER_ARENA,
        "multipool-over-arena" => MULTIPOOL_OVER_ARENA,
        "multipool" => MULTIPOOL,
        "object-pool" => OBJECT_POOL,
        _ => return None,
    };
    Some(text.to_string())
}

fn in_arena(text: &str) -> String {
    text.replace("@use@", "Arena").replace("@new@", "Arena::new()")
}

fn in_multipool(text: &str) -> String {
    text.replace("@use@", "{Arena, Multipool}").replace("@new@", "Multipool::new_in(Arena::new())")
}

/// The text with a map that is never dropped.
fn winked_out(text: &str) -> String {
    text.replace("HashMap::new_in(&memory);", "ManuallyDrop::new(HashMap::new_in(&memory));")
        .replace("// and each other collection of the call", "// never dropped")
        .replace("\n\npub fn", "\nuse std::mem::ManuallyDrop;\n\npub fn")
}

/// A hash map in an allocator of a call: `@new@`, which needs `@use@`.
const HASH_MAP: &str = r#"
// In @where@
// On stable Rust, the HashMap and the String of std take no allocator. These do:
use allocator_api2::vec::Vec; // with the feature allocator-api2-02 of mallard-alloc
use hashbrown::HashMap; // of the crate hashbrown 0.15, which uses the same allocator-api2
use mallard::@use@;

pub fn @name@(input: &str) -> usize {
    let memory = @new@; // one for each call
    let mut parts = HashMap::new_in(&memory); // and each other collection of the call
    for part in input.split(' ') {
        let text = parts.entry(part.len()).or_insert_with(|| Vec::new_in(&memory));
        text.extend_from_slice(part.as_bytes());
    }
    parts.len()
}
"#;

const HASH_MAP_IN_MULTIPOOL: &str = r#"
// In @where@
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

    pub fn @name@(&mut self, key: u32, value: &[u8]) {
        let memory = *self.entries.allocator();
        let entry = self.entries.entry(key).or_insert_with(|| Vec::new_in(memory));
        entry.extend_from_slice(value);
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }
}
"#;

const WINK_OUT_ARENA: &str = r#"
// In @where@
use mallard::Arena;

pub fn @name@(input: &str) -> usize {
    // One for each call. Values that `alloc` functions put into an arena are never dropped: its end
    // frees the memory.
    let memory = Arena::new();
    let parts: &mut [&str] = memory.alloc_iter(input.split(' '));
    let title = memory.alloc_fmt(format_args!("{} parts", parts.len()));
    title.len()
}
"#;

const ARENA: &str = r#"
// In @where@
use allocator_api2::vec::Vec; // with the feature allocator-api2-02 of mallard-alloc
use mallard::Arena;

pub fn @name@(input: &str) -> usize {
    let memory = Arena::new(); // one for each call
    let mut parts = Vec::new_in(&memory); // and each other collection of the call
    parts.extend(input.split(' '));
    let owner = memory.own(String::from("dropped at the end of the arena"));
    parts.len() + owner.len()
}
"#;

const WINK_OUT_MULTIPOOL_OVER_ARENA: &str = r#"
// In @where@
use allocator_api2::vec::Vec; // with the feature allocator-api2-02 of mallard-alloc
use mallard::{Arena, Multipool};
use std::mem::ManuallyDrop;

pub fn @name@(input: &str) -> usize {
    let memory = Multipool::new_in(Arena::new()); // one for each call

    // Never dropped: the end of `memory` frees everything.
    let mut parts = ManuallyDrop::new(Vec::new_in(&memory));
    parts.extend(input.split(' '));
    parts.len()
}
"#;

const MULTIPOOL_OVER_ARENA: &str = r#"
// In @where@
use allocator_api2::vec::Vec; // with the feature allocator-api2-02 of mallard-alloc
use mallard::{Arena, Multipool};

pub fn @name@(input: &str) -> String {
    let memory = Multipool::new_in(Arena::new()); // one for each call
    let mut parts = Vec::new_in(&memory); // and each other collection of the call
    parts.extend(input.split(' '));
    parts.first().copied().unwrap_or_default().to_string() // what outlives the call is on the heap
}
"#;

const MULTIPOOL: &str = r#"
// In @where@
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

    pub fn @name@(&mut self, value: &[u8]) {
        let mut entry = Vec::new_in(*self.entries.allocator());
        entry.extend_from_slice(value);
        self.entries.push(entry);
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }
}
"#;

const OBJECT_POOL: &str = r#"
// In @where@
use mallard::handles::Box;
use mallard::ObjectPool;

pub struct Object {
    // the type that is made there
    pub id: u64,
    pub value: f64,
}

/// `objects` is made once, where the program starts: one for each call saves much less.
pub fn @name@(objects: &ObjectPool<Object>, id: u64) -> Box<'_, Object> {
    objects.make(Object { id, value: 0.0 }) // the box drops the object at its end
}
"#;

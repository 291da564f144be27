//! Uses both crates as a user's program does.
use mallard::{Arena, Key32, SlotMap};

#[global_allocator]
static GLOBAL: mallard_malloc::Mallard = mallard_malloc::Mallard;

fn main() {
    let scratch = Arena::new();
    let seven = scratch.alloc(7);
    let mut numbers = SlotMap::<Key32, i32>::new();
    let key = numbers.insert(*seven);
    assert_eq!(numbers.remove(key), Some(7));
    assert_eq!(numbers.get(key), None);
    assert!(mallard_malloc::statistics().bytes_live > 0);
}

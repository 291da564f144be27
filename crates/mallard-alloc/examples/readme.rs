//! The Rust example of README.md.
use mallard::{Arena, Key32, SlotMap};

fn main() {
    let mut request = Arena::new();
    let numbers = request.own(vec![1, 2, 3]); // dropped at the reset
    assert_eq!(numbers.len(), 3);
    request.reset(); // frees everything, and keeps the memory

    let mut players: SlotMap<Key32, &str> = SlotMap::new();
    let key = players.insert("duck");
    players.remove(key);
    assert_eq!(players.get(key), None); // a stale key finds nothing
}

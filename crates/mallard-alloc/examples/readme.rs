//! The Rust example of README.md.
use mallard::Arena;

fn main() {
    let mut request = Arena::new();
    let numbers = request.own(vec![1, 2, 3]); // dropped at the reset
    assert_eq!(numbers.len(), 3);
    request.reset(); // frees everything, and keeps the memory
}

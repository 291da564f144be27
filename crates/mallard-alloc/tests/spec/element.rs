//! Objects that record when they are dropped.

use std::cell::Cell;

/// Counts the elements of this thread since the allocator was made.
#[derive(Clone, Copy, Default)]
pub struct Book {
    pub dropped: usize,
    /// The value of the element that was dropped last.
    pub last: usize,
}

thread_local! {
    static BOOK: Cell<Book> = const { Cell::new(Book { dropped: 0, last: 0 }) };
}

pub fn book() -> Book {
    BOOK.get()
}
pub fn set_book(book: Book) {
    BOOK.set(book);
}
fn note_end(value: usize) {
    BOOK.set(Book { dropped: book().dropped + 1, last: value });
}

pub trait Element: Send + 'static {
    fn new(value: usize) -> Self;
    fn value(&self) -> usize;
}

pub struct Plain(usize);
/// A zero-sized element.
pub struct Empty;
#[repr(align(4096))]
pub struct Aligned(usize);

impl Element for Plain {
    fn new(value: usize) -> Self {
        Self(value)
    }
    fn value(&self) -> usize {
        self.0
    }
}
impl Element for Empty {
    fn new(_: usize) -> Self {
        Self
    }
    fn value(&self) -> usize {
        0
    }
}
impl Element for Aligned {
    fn new(value: usize) -> Self {
        Self(value)
    }
    fn value(&self) -> usize {
        self.0
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        note_end(self.0);
        self.0 = !self.0;
    }
}
impl Drop for Empty {
    fn drop(&mut self) {
        note_end(0);
    }
}
impl Drop for Aligned {
    fn drop(&mut self) {
        note_end(self.0);
    }
}

/// The payload of the panics that the tests cause on purpose.
pub struct Thrown;

pub fn throw<T>() -> T {
    std::panic::resume_unwind(Box::new(Thrown)) // panics without printing a message
}
/// Runs `f`, and returns whether `f` panics with the payload `Thrown`.
pub fn catches_thrown(f: impl FnOnce()) -> bool {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)) {
        Ok(()) => false,
        Err(what) => what.is::<Thrown>(),
    }
}

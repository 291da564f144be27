//! Linked lists whose links are stored in their elements, which are free blocks or chunks.

use core::cell::Cell;
use core::ptr::{null_mut, NonNull};

/// The beginning of every element of a list.
#[repr(C)]
pub(super) struct Link {
    pub(super) next: *mut Link,
}

/// A list of equally large free blocks. The block that was freed last is on top. The list needs no
/// separate memory, but a pop reads the block, which causes a cache miss if the block was not used
/// lately.
pub(super) struct FreeList {
    head: Cell<*mut Link>,
}

impl FreeList {
    pub(super) const fn new() -> Self {
        Self { head: Cell::new(null_mut()) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.head.get().is_null()
    }
    pub(super) fn clear(&self) {
        self.head.set(null_mut());
    }

    #[inline(always)]
    pub(super) fn pop(&self) -> Option<NonNull<u8>> {
        let block = NonNull::new(self.head.get())?;
        // SAFETY: blocks of the list are free, and begin with a link.
        self.head.set(unsafe { (*block.as_ptr()).next });
        Some(block.cast())
    }

    /// Pushes a block.
    ///
    /// # Safety
    /// Nobody uses `block`, and the block is at least as large as a link.
    #[inline(always)]
    pub(super) unsafe fn push(&self, block: NonNull<u8>) {
        let link = block.cast::<Link>();
        // SAFETY: the caller guarantees that nobody uses the block, and that a link fits in it.
        unsafe { link.write(Link { next: self.head.get() }) };
        self.head.set(link.as_ptr());
    }

    /// Iterates over the blocks, from the top.
    pub(super) fn iter(&self) -> Elements {
        Elements { at: self.head.get() }
    }

    pub(super) fn has(&self, p: *const u8) -> bool {
        self.iter().any(|block| block.as_ptr().cast_const() == p)
    }

    /// Sorts the blocks by address.
    pub(super) fn sort(&self) {
        // SAFETY: `head` is the start of a list of free blocks, which only this list uses.
        self.head.set(unsafe { sorted(self.head.get()) });
    }

    /// Removes the blocks for which `gone` returns `true`. The other blocks keep their order.
    pub(super) fn remove(&self, mut gone: impl FnMut(NonNull<u8>) -> bool) {
        let mut end = self.head.as_ptr();
        for block in self.iter().filter(|&block| !gone(block)) {
            // SAFETY: `end` is the head of the list, or the link of a block in the list that the
            // iterator has passed.
            unsafe {
                *end = block.cast::<Link>().as_ptr();
                end = &raw mut (**end).next;
            }
        }
        // SAFETY: `end` is the head of the list, or the link of the last block that stays.
        unsafe { *end = null_mut() };
    }
}

/// Iterates over a list. An element that the iterator has passed may be removed.
#[derive(Clone)]
pub(super) struct Elements {
    at: *mut Link,
}

impl Elements {
    /// Makes an iterator over the list that begins with `first`.
    ///
    /// # Safety
    /// `first` is the start of a list. While the iterator is used, elements that the iterator has
    /// not passed yet do not change.
    pub(super) unsafe fn from(first: *mut Link) -> Self {
        Self { at: first }
    }
}

impl Iterator for Elements {
    type Item = NonNull<u8>;
    #[inline]
    fn next(&mut self) -> Option<NonNull<u8>> {
        let element = NonNull::new(self.at)?;
        // SAFETY: the caller of `from` guaranteed that `element` is an element of a list.
        self.at = unsafe { (*element.as_ptr()).next };
        Some(element.cast())
    }
}

/// Sorts a list by address, and returns its new start. Merges runs of 1, 2, 4, ... elements, and so
/// needs neither memory nor recursion.
///
/// # Safety
/// `first` is the start of a list that nobody else uses.
unsafe fn sorted(first: *mut Link) -> *mut Link {
    // `runs[i]` is empty or has 2^i elements.
    let mut runs = [null_mut::<Link>(); usize::BITS as usize];
    let mut rest = first;
    while !rest.is_null() {
        let mut run = rest;
        // SAFETY: the pointers point to elements of the list.
        unsafe {
            rest = (*run).next;
            (*run).next = null_mut();
        }
        let mut i = 0;
        while !runs[i].is_null() {
            // SAFETY: both lists are sorted, and only this function uses them.
            run = unsafe { merged(core::mem::replace(&mut runs[i], null_mut()), run) };
            i += 1;
        }
        runs[i] = run;
    }
    // SAFETY: both lists are sorted, and only this function uses them.
    runs.into_iter().fold(null_mut(), |all, run| unsafe { merged(run, all) })
}

/// Merges two sorted lists, and returns the start of the result.
///
/// # Safety
/// `a` and `b` are the starts of two sorted lists that nobody else uses.
unsafe fn merged(mut a: *mut Link, mut b: *mut Link) -> *mut Link {
    let mut first = null_mut::<Link>();
    let mut last = &mut first as *mut *mut Link;
    // SAFETY: `last` points to `first`, or to the link of the last element of the merged list.
    unsafe {
        while !a.is_null() && !b.is_null() {
            let smaller = if a.addr() < b.addr() { &mut a } else { &mut b };
            *last = *smaller;
            last = &raw mut (**smaller).next;
            *smaller = *last;
        }
        *last = if a.is_null() { b } else { a };
    }
    first
}

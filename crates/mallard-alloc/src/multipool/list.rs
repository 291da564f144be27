//! Linked lists in the memory of their elements: free blocks, and chunks.

use core::cell::Cell;
use core::ptr::{null_mut, NonNull};

/// The beginning of every element of a list.
#[repr(C)]
pub(super) struct Link {
    pub(super) next: *mut Link,
}

/// Free blocks of one size, the one that was freed last on top. Needs no memory, but a pop reads the
/// block, which misses the cache if the block was not used lately.
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

    /// # Safety
    /// Nobody uses `block`, and it has room for a link.
    #[inline(always)]
    pub(super) unsafe fn push(&self, block: NonNull<u8>) {
        let link = block.cast::<Link>();
        // SAFETY: the caller promises it.
        unsafe { link.write(Link { next: self.head.get() }) };
        self.head.set(link.as_ptr());
    }

    /// The blocks, from the top.
    pub(super) fn iter(&self) -> Elements {
        Elements { at: self.head.get() }
    }

    pub(super) fn has(&self, p: *const u8) -> bool {
        self.iter().any(|block| block.as_ptr().cast_const() == p)
    }

    /// Sorts the blocks by address.
    pub(super) fn sort(&self) {
        // SAFETY: it is a list of free blocks.
        self.head.set(unsafe { sorted(self.head.get()) });
    }

    /// Removes the blocks for which `gone`. The others keep their order.
    pub(super) fn remove(&self, mut gone: impl FnMut(NonNull<u8>) -> bool) {
        let mut end = self.head.as_ptr();
        for block in self.iter().filter(|&block| !gone(block)) {
            // SAFETY: the head of the list, or the link of a block in it, which the iterator has
            // passed.
            unsafe {
                *end = block.cast::<Link>().as_ptr();
                end = &raw mut (**end).next;
            }
        }
        // SAFETY: the same.
        unsafe { *end = null_mut() };
    }
}

/// Iterates over a list. An element that the iterator has passed may be taken away.
#[derive(Clone)]
pub(super) struct Elements {
    at: *mut Link,
}

impl Elements {
    /// # Safety
    /// `first` is a list, of which no element at or behind the iterator changes while it is used.
    pub(super) unsafe fn from(first: *mut Link) -> Self {
        Self { at: first }
    }
}

impl Iterator for Elements {
    type Item = NonNull<u8>;
    #[inline]
    fn next(&mut self) -> Option<NonNull<u8>> {
        let element = NonNull::new(self.at)?;
        // SAFETY: the caller of `from` promised that it is an element of a list.
        self.at = unsafe { (*element.as_ptr()).next };
        Some(element.cast())
    }
}

/// Sorts a list by address. Merges runs of 1, 2, 4, ... elements, so it needs neither memory nor
/// recursion.
///
/// # Safety
/// `first` is a list that nobody else uses.
unsafe fn sorted(first: *mut Link) -> *mut Link {
    // runs[i] is empty or has 2^i elements.
    let mut runs = [null_mut::<Link>(); usize::BITS as usize];
    let mut rest = first;
    while !rest.is_null() {
        let mut run = rest;
        // SAFETY: elements of the list.
        unsafe {
            rest = (*run).next;
            (*run).next = null_mut();
        }
        let mut i = 0;
        while !runs[i].is_null() {
            // SAFETY: lists that only this function uses.
            run = unsafe { merged(core::mem::replace(&mut runs[i], null_mut()), run) };
            i += 1;
        }
        runs[i] = run;
    }
    // SAFETY: lists that only this function uses.
    runs.into_iter().fold(null_mut(), |all, run| unsafe { merged(run, all) })
}

/// # Safety
/// Two sorted lists that nobody else uses.
unsafe fn merged(mut a: *mut Link, mut b: *mut Link) -> *mut Link {
    let mut first = null_mut::<Link>();
    let mut last = &mut first as *mut *mut Link;
    // SAFETY: `last` is the end of the merged list: `first`, or the link of an element.
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

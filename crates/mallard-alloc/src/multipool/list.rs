//! Lists through the memory that they are of: free blocks, and chunks.

use core::cell::Cell;
use core::ptr::{null_mut, NonNull};

/// What every element of a list begins with.
#[repr(C)]
pub(super) struct Link {
    pub(super) next: *mut Link,
}

/// Free blocks of one size, the one freed last on top. Costs no memory; but a pop reads the
/// block, and misses when it has gone cold.
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
        // SAFETY: what is in the list is free memory, and begins with a link.
        self.head.set(unsafe { (*block.as_ptr()).next });
        Some(block.cast())
    }

    /// # Safety
    /// `block` is nobody's, has room for a link, and stays as it is while it is here.
    #[inline(always)]
    pub(super) unsafe fn push(&self, block: NonNull<u8>) {
        let link = block.cast::<Link>();
        // SAFETY: as the caller says.
        unsafe { link.write(Link { next: self.head.get() }) };
        self.head.set(link.as_ptr());
    }

    /// From the top.
    pub(super) fn iter(&self) -> Elements {
        Elements { at: self.head.get() }
    }

    pub(super) fn has(&self, p: *const u8) -> bool {
        self.iter().any(|block| block.as_ptr().cast_const() == p)
    }

    /// By address.
    pub(super) fn sort(&self) {
        // SAFETY: it is a list of free blocks.
        self.head.set(unsafe { sorted(self.head.get()) });
    }

    /// Takes out what is `wanted(block)`, as a list; the order of both stays.
    pub(super) fn take_out(&self, mut wanted: impl FnMut(NonNull<u8>) -> bool) -> FreeList {
        let (out, all) = (Self::new(), self.iter());
        let mut ends = [self.head.as_ptr(), out.head.as_ptr()];
        for block in all {
            let end = &mut ends[usize::from(wanted(block))];
            // SAFETY: the end of either list: its head, or a link of a block that is in it. The
            // iterator is beyond that block.
            unsafe {
                **end = block.cast::<Link>().as_ptr();
                *end = &raw mut (***end).next;
            }
        }
        for end in ends {
            // SAFETY: the same.
            unsafe { *end = null_mut() };
        }
        out
    }

    /// All of `others` behind what is here.
    pub(super) fn append(&self, others: FreeList) {
        let mut end = self.head.as_ptr();
        // SAFETY: the head of this list, then the links of its blocks.
        unsafe {
            while !(*end).is_null() {
                end = &raw mut (**end).next;
            }
            *end = others.head.get();
        }
    }
}

/// The elements of a list. Each may be taken away while the iterator is beyond it.
#[derive(Clone)]
pub(super) struct Elements {
    at: *mut Link,
}

impl Elements {
    /// # Safety
    /// A list of links, which is not changed at or behind the iterator while that is used.
    pub(super) unsafe fn from(first: *mut Link) -> Self {
        Self { at: first }
    }
}

impl Iterator for Elements {
    type Item = NonNull<u8>;
    #[inline]
    fn next(&mut self) -> Option<NonNull<u8>> {
        let element = NonNull::new(self.at)?;
        // SAFETY: it is of a list, which is a promise of who made the iterator.
        self.at = unsafe { (*element.as_ptr()).next };
        Some(element.cast())
    }
}

/// The list in ascending order of address: runs of 1, 2, 4, ... are merged, so it needs no
/// memory and no recursion.
///
/// # Safety
/// `first` is a list, nobody else uses it.
pub(super) unsafe fn sorted(first: *mut Link) -> *mut Link {
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
            // SAFETY: lists of our own.
            run = unsafe { merged(core::mem::replace(&mut runs[i], null_mut()), run) };
            i += 1;
        }
        runs[i] = run;
    }
    // SAFETY: lists of our own.
    runs.into_iter().fold(null_mut(), |all, run| unsafe { merged(run, all) })
}

/// # Safety
/// Two sorted lists that nobody else uses.
unsafe fn merged(mut a: *mut Link, mut b: *mut Link) -> *mut Link {
    let mut first = null_mut::<Link>();
    let mut last = &mut first as *mut *mut Link;
    // SAFETY: `last` is the end of what is merged so far: `first`, or a link of an element.
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

//! What an arena runs before it forgets: destructors registered on request.

use core::cell::Cell;
use core::mem;
use core::ptr;
#[cfg(feature = "std")]
use core::sync::atomic::{AtomicPtr, Ordering};

/// Stands before an owned value, in one block with it.
#[repr(C)]
pub(crate) struct Entry {
    next: *mut Entry,
    run: unsafe fn(*mut Entry),
}

/// A value that is dropped when its arena forgets it.
#[repr(C)]
pub(crate) struct Owned<T> {
    entry: Entry,
    pub(crate) value: T,
}

impl<T> Owned<T> {
    #[inline(always)]
    pub(crate) fn new(value: T) -> Self {
        /// # Safety
        /// `entry` begins an `Owned<T>` that is alive and dies with this.
        unsafe fn run<T>(entry: *mut Entry) {
            // SAFETY: as was promised.
            unsafe { ptr::drop_in_place(&raw mut (*entry.cast::<Owned<T>>()).value) }
        }
        Self { entry: Entry { next: ptr::null_mut(), run: run::<T> }, value }
    }

    pub(crate) fn into_inner(self) -> T {
        self.value
    }
}

/// A list, newest first, whose entries live in the arena.
pub(crate) struct Finalizers(Cell<*mut Entry>);

impl Finalizers {
    pub(crate) const fn new() -> Self {
        Self(Cell::new(ptr::null_mut()))
    }

    /// A list that was made elsewhere.
    #[cfg(feature = "std")]
    pub(crate) const fn with_newest(newest: *mut Entry) -> Self {
        Self(Cell::new(newest))
    }

    #[inline(always)]
    pub(crate) fn newest(&self) -> *mut Entry {
        self.0.get()
    }

    /// # Safety
    /// `owned` stays where it is, unless its arena runs this list first.
    #[inline(always)]
    pub(crate) unsafe fn push<T>(&self, owned: *mut Owned<T>) {
        let entry = owned.cast::<Entry>();
        // SAFETY: it is the first field of what the caller has.
        unsafe { (*entry).next = self.0.replace(entry) };
    }

    /// Runs all that is newer than `last`, the newest first. When one panics, the others run
    /// before the panic goes on.
    ///
    /// # Safety
    /// `last` is in the list, or null; nobody uses the values that are newer.
    #[inline(always)]
    pub(crate) unsafe fn run_until(&self, last: *mut Entry) {
        if self.newest() != last {
            // SAFETY: passed on.
            unsafe { self.run_some(last) }
        }
    }

    #[cold]
    #[inline(never)]
    unsafe fn run_some(&self, last: *mut Entry) {
        struct Others<'a>(&'a Finalizers, *mut Entry);
        impl Drop for Others<'_> {
            fn drop(&mut self) {
                // SAFETY: as for the function they are the rest of.
                unsafe { self.0.run_until(self.1) }
            }
        }
        while self.newest() != last {
            let due = self.newest();
            // SAFETY: an entry in the list is alive; it leaves the list before it runs.
            unsafe {
                self.0.set((*due).next);
                let others = Others(self, last);
                ((*due).run)(due);
                mem::forget(others);
            }
        }
    }
}

/// The same, pushed to by several threads.
#[cfg(feature = "std")]
pub(crate) struct SharedFinalizers(AtomicPtr<Entry>);

#[cfg(feature = "std")]
impl SharedFinalizers {
    pub(crate) const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// # Safety
    /// As for `Finalizers::push`.
    pub(crate) unsafe fn push<T>(&self, owned: *mut Owned<T>) {
        let entry = owned.cast::<Entry>();
        let mut newest = self.0.load(Ordering::Relaxed);
        loop {
            // SAFETY: it is the first field of what the caller has.
            unsafe { (*entry).next = newest };
            // Release, so that who takes the list sees the entries. Nothing is taken out of it
            // while others push, so an entry cannot come back to be mistaken for itself.
            match self.0.compare_exchange_weak(newest, entry, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(newer) => newest = newer,
            }
        }
    }

    /// # Safety
    /// As for `Finalizers::run_until`, of all.
    pub(crate) unsafe fn run(&mut self) {
        let all = Finalizers::with_newest(mem::replace(self.0.get_mut(), ptr::null_mut()));
        // SAFETY: passed on.
        unsafe { all.run_until(ptr::null_mut()) }
    }
}

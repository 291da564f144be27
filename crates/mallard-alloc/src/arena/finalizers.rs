//! Owned values of an arena: a list of destructors that run before the arena frees the values.

use core::cell::Cell;
use core::mem;
use core::ptr;
#[cfg(feature = "std")]
use core::sync::atomic::{AtomicPtr, Ordering};

/// The list entry in front of an owned value, in the same block.
#[repr(C)]
pub(crate) struct Entry {
    next: *mut Entry,
    run: unsafe fn(*mut Entry),
}

/// A value that is dropped when its arena frees it.
#[repr(C)]
pub(crate) struct Owned<T> {
    entry: Entry,
    pub(crate) value: T,
}

impl<T> Owned<T> {
    #[inline(always)]
    pub(crate) fn new(value: T) -> Self {
        /// # Safety
        /// `entry` is the start of an `Owned<T>` whose value is alive and not used after this call.
        unsafe fn run<T>(entry: *mut Entry) {
            // SAFETY: the caller guarantees that the value is alive and not used after this.
            unsafe { ptr::drop_in_place(&raw mut (*entry.cast::<Owned<T>>()).value) }
        }
        Self { entry: Entry { next: ptr::null_mut(), run: run::<T> }, value }
    }

    pub(crate) fn into_inner(self) -> T {
        self.value
    }
}

/// A list of owned values, newest first. The entries are in the arena.
pub(crate) struct Finalizers(Cell<*mut Entry>);

impl Finalizers {
    pub(crate) const fn new() -> Self {
        Self(Cell::new(ptr::null_mut()))
    }

    /// Makes a list from entries that are linked already. `newest` is the first entry.
    #[cfg(feature = "std")]
    pub(crate) const fn with_newest(newest: *mut Entry) -> Self {
        Self(Cell::new(newest))
    }

    #[inline(always)]
    pub(crate) fn newest(&self) -> *mut Entry {
        self.0.get()
    }

    /// Adds an owned value.
    ///
    /// # Safety
    /// `owned` keeps its address until its value is dropped.
    #[inline(always)]
    pub(crate) unsafe fn push<T>(&self, owned: *mut Owned<T>) {
        let entry = owned.cast::<Entry>();
        // SAFETY: the entry is the first field of `owned`.
        unsafe { (*entry).next = self.0.replace(entry) };
    }

    /// Drops all values that are newer than `last`, the newest first. If a destructor panics, the
    /// other values are dropped before the panic continues.
    ///
    /// # Safety
    /// `last` is in the list, or null. No newer value is used any more.
    #[inline(always)]
    pub(crate) unsafe fn run_until(&self, last: *mut Entry) {
        if self.newest() != last {
            // SAFETY: the caller's guarantee is passed on unchanged.
            unsafe { self.run_some(last) }
        }
    }

    #[cold]
    #[inline(never)]
    unsafe fn run_some(&self, last: *mut Entry) {
        struct Others<'a>(&'a Finalizers, *mut Entry);
        impl Drop for Others<'_> {
            fn drop(&mut self) {
                // SAFETY: the guarantee that the caller of `run_some` made holds for the rest of
                // the list.
                unsafe { self.0.run_until(self.1) }
            }
        }
        while self.newest() != last {
            let due = self.newest();
            // SAFETY: an entry in the list is alive, and leaves the list before its value is dropped.
            unsafe {
                self.0.set((*due).next);
                let others = Others(self, last);
                ((*due).run)(due);
                mem::forget(others);
            }
        }
    }
}

/// A list of owned values that several threads may add to.
#[cfg(feature = "std")]
pub(crate) struct SharedFinalizers(AtomicPtr<Entry>);

#[cfg(feature = "std")]
impl SharedFinalizers {
    pub(crate) const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Adds an owned value.
    ///
    /// # Safety
    /// The same as for `Finalizers::push`.
    pub(crate) unsafe fn push<T>(&self, owned: *mut Owned<T>) {
        // SAFETY: the entry is the first field of `owned`, which the caller owns.
        unsafe { push(&self.0, owned.cast()) }
    }

    /// Drops all values.
    ///
    /// # Safety
    /// The same as for `Finalizers::run_until`, for every value.
    pub(crate) unsafe fn run(&mut self) {
        let all = Finalizers::with_newest(mem::replace(self.0.get_mut(), ptr::null_mut()));
        // SAFETY: the caller's guarantee is passed on unchanged.
        unsafe { all.run_until(ptr::null_mut()) }
    }
}

/// The head of the list: an `AtomicPtr` of `core`, or loom's `AtomicPtr` while a model is checked.
#[cfg(feature = "std")]
trait Newest {
    fn now(&self) -> *mut Entry;
    fn replace(&self, newest: *mut Entry, entry: *mut Entry) -> Result<*mut Entry, *mut Entry>;
}

#[cfg(feature = "std")]
macro_rules! newest {
    ($atomic:ty) => {
        impl Newest for $atomic {
            #[inline(always)]
            fn now(&self) -> *mut Entry {
                self.load(Ordering::Relaxed)
            }
            // The order is Release, so that the thread that takes the whole list sees the content
            // of the entries.
            #[inline(always)]
            fn replace(&self, a: *mut Entry, b: *mut Entry) -> Result<*mut Entry, *mut Entry> {
                self.compare_exchange_weak(a, b, Ordering::Release, Ordering::Relaxed)
            }
        }
    };
}
#[cfg(feature = "std")]
newest!(AtomicPtr<Entry>);

/// Pushes an entry. There is no ABA problem, because no entry leaves the list while threads push.
///
/// # Safety
/// The caller owns `entry`, which is in no list.
#[cfg(feature = "std")]
unsafe fn push(list: &impl Newest, entry: *mut Entry) {
    let mut newest = list.now();
    loop {
        // SAFETY: the caller owns the entry until it is in the list.
        unsafe { (*entry).next = newest };
        match list.replace(newest, entry) {
            Ok(_) => return,
            Err(newer) => newest = newer,
        }
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::loom::{model, sync::Arc, thread, TrackedCell};
    use core::mem::MaybeUninit;
    use loom::sync::atomic::AtomicPtr;
    use std::boxed::Box;
    use std::vec;
    use std::vec::Vec;

    newest!(AtomicPtr<Entry>);

    type Gone = TrackedCell<Vec<u32>>;

    /// A value that one thread writes and pushes, and that the thread that drops the list reads.
    struct Noted(TrackedCell<u32>, *const Gone);

    impl Drop for Noted {
        fn drop(&mut self) {
            // SAFETY: `gone` outlives the list. Loom reports a data race on either cell.
            unsafe { (*self.1).with_mut(|gone| (*gone).push(self.0.with(|n| *n))) }
        }
    }

    fn push_one(
        list: &AtomicPtr<Entry>,
        number: u32,
        gone: usize,
    ) -> Box<MaybeUninit<Owned<Noted>>> {
        let noted = Noted(TrackedCell::new(0), gone as *const Gone);
        // SAFETY: no other thread has the value yet.
        noted.0.with_mut(|n| unsafe { *n = number });
        let mut owned = Box::new(MaybeUninit::new(Owned::new(noted)));
        // SAFETY: the entry is in no list, and this thread owns it.
        unsafe { push(list, owned.as_mut_ptr().cast()) };
        owned
    }

    #[test]
    fn values_pushed_by_several_threads_are_dropped_once_newest_first_within_each_thread() {
        model(|| {
            let gone = Gone::new(Vec::new());
            let list = Arc::new(AtomicPtr::new(ptr::null_mut()));
            let at = &raw const gone as usize;
            let push_two = move |list: &AtomicPtr<Entry>, first| {
                [first, first + 1].map(|number| push_one(list, number, at))
            };
            let other = list.clone();
            let other = thread::spawn(move || push_two(&other, 10));
            let _mine = push_two(&list, 20);
            let _theirs = other.join().unwrap();
            let all = Finalizers::with_newest(list.load(Ordering::Relaxed));
            // SAFETY: all pushes have returned, and nothing uses the values.
            unsafe { all.run_until(ptr::null_mut()) };
            // SAFETY: the other thread has exited, so nothing else accesses the cell.
            let gone = gone.with(|gone| unsafe { (*gone).clone() });
            let some = |ten| gone.iter().copied().filter(|n| n / 10 == ten).collect::<Vec<_>>();
            assert_eq!((gone.len(), some(1), some(2)), (4, vec![11, 10], vec![21, 20]));
        });
    }
}

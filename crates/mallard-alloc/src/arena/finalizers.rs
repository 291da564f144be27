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
        // SAFETY: it is the first field of what the caller has.
        unsafe { push(&self.0, owned.cast()) }
    }

    /// # Safety
    /// As for `Finalizers::run_until`, of all.
    pub(crate) unsafe fn run(&mut self) {
        let all = Finalizers::with_newest(mem::replace(self.0.get_mut(), ptr::null_mut()));
        // SAFETY: passed on.
        unsafe { all.run_until(ptr::null_mut()) }
    }
}

/// An atomic pointer: one of `core`, which a constant may have, or one that loom watches.
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
            // Release, so that who takes the list sees the entries.
            #[inline(always)]
            fn replace(&self, a: *mut Entry, b: *mut Entry) -> Result<*mut Entry, *mut Entry> {
                self.compare_exchange_weak(a, b, Ordering::Release, Ordering::Relaxed)
            }
        }
    };
}
#[cfg(feature = "std")]
newest!(AtomicPtr<Entry>);

/// Nothing is taken out of the list while others push, so an entry cannot come back to be mistaken
/// for itself.
///
/// # Safety
/// `entry` is the caller's, and in no list.
#[cfg(feature = "std")]
unsafe fn push(list: &impl Newest, entry: *mut Entry) {
    let mut newest = list.now();
    loop {
        // SAFETY: as the caller says.
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

    /// Written before it is pushed, and dropped by who has the list.
    struct Noted(TrackedCell<u32>, *const Gone);

    impl Drop for Noted {
        fn drop(&mut self) {
            // SAFETY: the model is there to find out.
            unsafe { (*self.1).with_mut(|gone| (*gone).push(self.0.with(|n| *n))) }
        }
    }

    fn push_one(
        list: &AtomicPtr<Entry>,
        number: u32,
        gone: usize,
    ) -> Box<MaybeUninit<Owned<Noted>>> {
        let noted = Noted(TrackedCell::new(0), gone as *const Gone);
        // SAFETY: the same.
        noted.0.with_mut(|n| unsafe { *n = number });
        let mut owned = Box::new(MaybeUninit::new(Owned::new(noted)));
        // SAFETY: in no list, and of nobody else.
        unsafe { push(list, owned.as_mut_ptr().cast()) };
        owned
    }

    #[test]
    fn what_several_threads_push_is_dropped_once_each_newest_first() {
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
            // SAFETY: all pushes are over.
            unsafe { all.run_until(ptr::null_mut()) };
            // SAFETY: nobody else has it.
            let gone = gone.with(|gone| unsafe { (*gone).clone() });
            let some = |ten| gone.iter().copied().filter(|n| n / 10 == ten).collect::<Vec<_>>();
            assert_eq!((gone.len(), some(1), some(2)), (4, vec![11, 10], vec![21, 20]));
        });
    }
}

//! A slice of values under construction in a typed arena.

use super::store::Store;
use crate::arena::blocks::Run;
use crate::arena::growing::Len;
use crate::Source;
use core::alloc::Layout;
use core::mem;
use core::ptr::NonNull;

/// A slice of values under construction, in a run of memory that is not part of the arena until the
/// slice is finished. So the program may use the arena while the slice is made, and the arena never
/// contains a half-filled chunk. If the slice is dropped unfinished, its values are dropped.
pub(super) struct Series<'a, T, S: Source> {
    store: &'a Store<S>,
    run: Run,
    count: usize,
    capacity: usize,
    values: core::marker::PhantomData<T>,
}

impl<'a, T, S: Source> Series<'a, T, S> {
    pub(super) fn new(store: &'a Store<S>) -> Self {
        Self::of(store, store.blocks.open_run())
    }

    fn of(store: &'a Store<S>, run: Run) -> Self {
        let capacity = (run.end.addr() - run.start.addr()) / size_of::<T>();
        Self { store, run, count: 0, capacity, values: core::marker::PhantomData }
    }

    fn first(&self) -> *mut T {
        self.run.start.cast()
    }

    /// Makes room for `more` values in one run. Returns `None`, and changes nothing, if there is no
    /// memory.
    pub(super) fn reserve(&mut self, more: usize) -> Option<()> {
        if more > self.capacity - self.count {
            let count = self.count.checked_add(more)?;
            let twice = count.max(self.count.saturating_mul(2));
            let run = [twice, count].into_iter().find_map(|count| {
                let layout = Layout::array::<T>(count).ok()?;
                self.store.blocks.take_run(&self.store.source, layout)
            })?;
            // SAFETY: the new run has room for the values, and does not overlap the old run.
            unsafe { run.start.cast::<T>().copy_from_nonoverlapping(self.first(), self.count) };
            let mut larger = Self::of(self.store, run);
            larger.count = self.count;
            mem::forget(mem::replace(self, larger));
        }
        Some(())
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) -> Option<()> {
        self.reserve(1)
    }

    #[inline]
    pub(super) fn extend(&mut self, mut items: impl Iterator<Item = T>) -> Option<()> {
        loop {
            self.fill(&mut items);
            let Some(item) = items.next() else { return Some(()) };
            if self.count == self.capacity {
                self.grow()?;
            }
            // SAFETY: `count` is below `capacity`.
            unsafe { self.first().add(self.count).write(item) };
            self.count += 1;
        }
    }

    /// Appends the items that `items` yields, until the run is full.
    #[inline(always)]
    fn fill(&mut self, items: &mut impl Iterator<Item = T>) {
        let (first, capacity) = (self.first(), self.capacity);
        let mut count = Len::of(&mut self.count);
        while count.now < capacity {
            let Some(item) = items.next() else { return };
            // SAFETY: `count` is below `capacity`.
            unsafe { first.add(count.now).write(item) };
            count.now += 1;
        }
    }

    fn values(&self) -> NonNull<[T]> {
        // The start address of a run without memory is not aligned for every type.
        let first = NonNull::new(self.first()).filter(|_| self.count != 0);
        NonNull::slice_from_raw_parts(first.unwrap_or(NonNull::dangling()), self.count)
    }

    pub(super) fn finish(self) -> NonNull<[T]> {
        let end = self.first().wrapping_add(self.count);
        self.store.blocks.close_run(&self.run, end.cast());
        let values = self.values();
        mem::forget(self);
        values
    }
}

impl<T, S: Source> Drop for Series<'_, T, S> {
    fn drop(&mut self) {
        struct Close<'a, S: Source>(&'a Store<S>, &'a Run);
        impl<S: Source> Drop for Close<'_, S> {
            fn drop(&mut self) {
                self.0.blocks.close_run(self.1, self.1.start);
            }
        }
        // `_close` is dropped last, because a destructor of a value may use the arena.
        let _close = Close(self.store, &self.run);
        // SAFETY: `count` values are initialised, and nothing else refers to them.
        unsafe { self.values().drop_in_place() }
    }
}

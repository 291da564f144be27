//! The registry of threads. An allocator may keep some data for each thread, for example a thread
//! cache. These data are the thread's *part* of the allocator. The registry finds the part of the
//! calling thread, and marks a part as abandoned when its thread exits.
//!
//! Each allocator has a key, which contains an `id` that no other key ever has, and a `place` that
//! no other key has at the same time. Each thread has a table of {id, part}, indexed by place. Only
//! the thread itself reads or writes its table. The id of a destroyed allocator is never used
//! again. So the entries that threads still have for the allocator match no key, and need not be
//! removed.

#[cfg(feature = "std")]
pub(crate) use keys::{ThreadKey, ThreadPart};
#[cfg(target_has_atomic = "64")]
pub(crate) use numbers::{pause, thread_number, thread_share, NUMBERS, SHARES};

#[cfg(feature = "std")]
mod keys {
    use crate::loom::atomic::{AtomicBool, Ordering::*};
    use alloc::vec::Vec;
    use core::alloc::Layout;
    use core::cell::Cell;
    use core::ptr::NonNull;
    use core::sync::atomic::AtomicUsize;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    /// The first fields of a part. A part is the data that one thread has in one allocator, for
    /// example a thread cache.
    #[repr(C)]
    pub(crate) struct ThreadPart {
        /// Whether no thread owns the part. Any thread may then reclaim the part, under the lock of
        /// the allocator.
        abandoned: AtomicBool,
    }

    impl ThreadPart {
        pub(crate) fn new() -> Self {
            Self { abandoned: AtomicBool::new(true) }
        }
        /// Returns whether no thread owns the part. If the result is `true`, the caller sees
        /// everything that the last owner did with the part.
        pub(crate) fn is_abandoned(&self) -> bool {
            self.abandoned.load(Acquire)
        }
        /// Makes this thread the owner of the part. The caller holds the lock of the allocator, and
        /// `is_abandoned` returned true under that lock.
        pub(crate) fn reclaim(&self) {
            self.abandoned.store(false, Relaxed);
        }
        /// Gives up the ownership of the part. The owner does not use the part after this call.
        pub(super) fn abandon(&self) {
            self.abandoned.store(true, Release);
        }
    }

    #[derive(Clone, Copy)]
    struct Entry {
        id: usize,
        /// The thread's part of the allocator with this id. The pointer is dangling if `id` is 0.
        part: NonNull<ThreadPart>,
    }

    const EMPTY_ENTRY: Entry = Entry { id: 0, part: NonNull::dangling() };
    const ENTRY_BYTES: usize = size_of::<Entry>();

    /// The head of a table. The entries of the table follow in memory.
    #[repr(C)]
    struct Table {
        /// The size of all entries except one, in bytes. Offsets of entries are masked with this
        /// number. So a place beyond the end of the table is mapped to an entry within the table,
        /// whose id does not match.
        mask: usize,
    }

    #[repr(C)]
    struct EmptyTable(Table, Entry);
    // SAFETY: no thread writes to the empty table.
    unsafe impl Sync for EmptyTable {}

    /// The table of a thread without parts. Its entry has the id 0, which no key has.
    static EMPTY_TABLE: EmptyTable = EmptyTable(Table { mask: 0 }, EMPTY_ENTRY);
    const EMPTY: *const Table = &raw const EMPTY_TABLE as *const Table;

    std::thread_local! {
        /// The table of this thread. The variable has no destructor, so every destructor of the
        /// thread may still use the table.
        static TABLE: Cell<*const Table> = const { Cell::new(EMPTY) };
        static AT_EXIT: AtExit = const { AtExit };
    }

    /// Makes sure that the destructor of `AtExit` runs when this thread exits. Returns `false` if
    /// the destructor has run already.
    pub(super) fn watch_exit() -> bool {
        AT_EXIT.try_with(|_| ()).is_ok()
    }

    /// Returns the entry at an offset in a table.
    ///
    /// # Safety
    /// `table` is a table of this thread. `bytes` is a multiple of `ENTRY_BYTES`, and at most the
    /// mask of the table.
    #[inline(always)]
    unsafe fn entry(table: *const Table, bytes: usize) -> *const Entry {
        // SAFETY: the entries follow the head, and `bytes` is within them.
        unsafe { table.add(1).byte_add(bytes).cast() }
    }

    /// The key of an allocator. Each thread may have a part of the allocator, for example a thread
    /// cache.
    pub(crate) struct ThreadKey {
        id: AtomicUsize,
        /// The offset of the key's entry in the table of each thread, in bytes.
        place_bytes: AtomicUsize,
    }

    impl ThreadKey {
        /// The id of a key that has not been made yet. No entry has this id.
        const NO_ID: usize = usize::MAX;

        /// Returns a key without an id, which `make` has to assign. No thread has a part yet.
        pub(crate) const fn new() -> Self {
            Self { id: AtomicUsize::new(Self::NO_ID), place_bytes: AtomicUsize::new(0) }
        }

        /// Returns this thread's part of the allocator (for example its cache), if there is one.
        #[inline(always)]
        pub(crate) fn find(&self) -> Option<NonNull<ThreadPart>> {
            let table = TABLE.get();
            let place_bytes = self.place_bytes.load(Relaxed);
            // SAFETY: `table` is this thread's table, and the mask keeps the offset within it.
            let entry = unsafe { *entry(table, place_bytes & (*table).mask) };
            // Another thread may be making the key, so this thread may have read only one of the
            // two words that change. Then the id matches no entry.
            (entry.id == self.id.load(Relaxed)).then_some(entry.part)
        }

        /// Assigns an id and a place to the key, unless the key has them already. The caller holds
        /// the lock of the allocator. Returns `false` if there is no memory. Then no thread can get
        /// a part.
        fn make(&self) -> bool {
            if self.id.load(Relaxed) != Self::NO_ID {
                return true;
            }
            let mut all = registry();
            if all.last == Self::NO_ID - 1 {
                return false; // 32-bit machines run out of ids after 2^32 allocators
            }
            let place = match all.ids.iter().position(|&id| id == 0) {
                Some(place) => place,
                None if all.ids.try_reserve(1).is_ok() => {
                    all.ids.push(0);
                    all.ids.len() - 1
                }
                None => return false,
            };
            all.last += 1;
            all.ids[place] = all.last;
            self.place_bytes.store(place * ENTRY_BYTES, Relaxed);
            self.id.store(all.last, Relaxed);
            true
        }

        /// Deletes the key. After this call, no thread finds its part of the allocator. So a thread
        /// that exits later does not touch its part.
        pub(crate) fn end(&mut self) {
            let id = core::mem::replace(self.id.get_mut(), Self::NO_ID);
            if id != Self::NO_ID {
                registry().ids[*self.place_bytes.get_mut() / ENTRY_BYTES] = 0;
            }
        }

        /// Prepares this thread for `set`. The caller holds the lock of the allocator. Returns
        /// `false` if there is no memory, or the thread is exiting.
        pub(crate) fn prepare(&self) -> bool {
            if !watch_exit() || !self.make() {
                return false;
            }
            let place_bytes = self.place_bytes.load(Relaxed);
            let old = TABLE.get();
            // SAFETY: the pointer points to this thread's table.
            let old_bytes = unsafe { (*old).mask } + ENTRY_BYTES;
            if old != EMPTY && place_bytes < old_bytes {
                return true;
            }
            let bytes = (place_bytes + ENTRY_BYTES).next_power_of_two().max(8 * ENTRY_BYTES);
            // SAFETY: the layout has a size above 0.
            let memory = unsafe { alloc::alloc::alloc(table_layout(bytes)) };
            let Some(table) = NonNull::new(memory.cast::<Table>()) else { return false };
            let table = table.as_ptr();
            // SAFETY: the memory was just allocated with that layout, and is larger than the old
            // table, which has `old_bytes` bytes of entries.
            unsafe {
                table.write(Table { mask: bytes - ENTRY_BYTES });
                for at in (0..bytes).step_by(ENTRY_BYTES) {
                    let known = if at < old_bytes { *entry(old, at) } else { EMPTY_ENTRY };
                    entry(table, at).cast_mut().write(known);
                }
            }
            TABLE.set(table);
            if old != EMPTY {
                // SAFETY: `old` was this thread's table, and is no longer used.
                unsafe { free_table(old) }
            }
            true
        }

        /// Stores `part` as this thread's part of the allocator. The caller has called `prepare`.
        pub(crate) fn set(&self, part: NonNull<ThreadPart>) {
            let new = Entry { id: self.id.load(Relaxed), part };
            // SAFETY: the table belongs to this thread, and `prepare` has made the table large
            // enough for the place.
            unsafe { entry(TABLE.get(), self.place_bytes.load(Relaxed)).cast_mut().write(new) }
        }
    }

    /// Returns the layout of a table with `bytes` bytes of entries. `bytes` is a power of two.
    fn table_layout(bytes: usize) -> Layout {
        let head = Layout::new::<Table>();
        // SAFETY: the registry has an id in memory for each entry, so the size is far below
        // `isize::MAX`.
        unsafe { Layout::from_size_align_unchecked(head.size() + bytes, align_of::<Entry>()) }
    }

    /// Frees a table.
    ///
    /// # Safety
    /// `table` was allocated by `prepare`, and no thread uses the table any more.
    unsafe fn free_table(table: *const Table) {
        // SAFETY: `prepare` allocated the table with this layout.
        unsafe {
            let layout = table_layout((*table).mask + ENTRY_BYTES);
            alloc::alloc::dealloc(table.cast_mut().cast(), layout)
        }
    }

    /// The ids of all keys in use, indexed by place. A free place has the id 0.
    struct Registry {
        ids: Vec<usize>,
        last: usize,
    }

    /// The registry. A thread that holds this lock calls nothing outside this file.
    static REGISTRY: Mutex<Registry> = Mutex::new(Registry { ids: Vec::new(), last: 0 });

    fn registry() -> MutexGuard<'static, Registry> {
        REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A value whose destructor runs when a thread exits.
    struct AtExit;

    impl Drop for AtExit {
        /// Abandons all parts of this thread, and frees the thread's number for other threads.
        /// Destructors that run later on this thread use allocators without a part.
        fn drop(&mut self) {
            #[cfg(target_has_atomic = "64")]
            super::numbers::give_back();
            let table = TABLE.replace(EMPTY);
            if table == EMPTY {
                return;
            }
            let all = registry();
            // SAFETY: the pointer points to this thread's table.
            let bytes = unsafe { (*table).mask } + ENTRY_BYTES;
            for (place, at) in (0..bytes).step_by(ENTRY_BYTES).enumerate() {
                // SAFETY: `at` is the offset of an entry of the table.
                let entry = unsafe { *entry(table, at) };
                if entry.id != 0 && all.ids.get(place) == Some(&entry.id) {
                    // SAFETY: the allocator exists, because it cannot be destroyed without the lock
                    // of the registry. The parts exist until the allocator is destroyed, or until
                    // the parts are abandoned.
                    unsafe { entry.part.as_ref() }.abandon();
                }
            }
            drop(all);
            // SAFETY: the table was this thread's, and is no longer used.
            unsafe { free_table(table) }
        }
    }
}

/// Thread numbers. Each of the first 63 threads that run at the same time has a number that no
/// other thread has.
#[cfg(target_has_atomic = "64")]
mod numbers {
    /// How many thread numbers there are. Threads have the numbers from 1 to 63. Number 0 stands
    /// for all threads that have no separate number.
    pub(crate) const NUMBERS: usize = 64;

    /// The number of shared caches for threads without a number. With `std` there are several, so
    /// that these threads seldom contend.
    pub(crate) const SHARES: usize = if cfg!(feature = "std") { 8 } else { 1 };

    /// Returns the number of this thread.
    #[inline(always)]
    pub(crate) fn thread_number() -> usize {
        #[cfg(feature = "std")]
        return with_std::number();
        #[cfg(not(feature = "std"))]
        0
    }

    /// Returns which of the `SHARES` shared caches this thread uses while it has no number. Shared
    /// caches are assigned to threads round robin.
    pub(crate) fn thread_share() -> usize {
        #[cfg(feature = "std")]
        return with_std::share();
        #[cfg(not(feature = "std"))]
        0
    }

    /// Yields the processor, or spins once, while another thread makes progress.
    pub(crate) fn pause() {
        #[cfg(feature = "std")]
        std::thread::yield_now();
        #[cfg(not(feature = "std"))]
        core::hint::spin_loop();
    }

    #[cfg(feature = "std")]
    pub(super) use with_std::give_back;

    #[cfg(feature = "std")]
    mod with_std {
        use super::super::keys::watch_exit;
        use core::cell::Cell;
        use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};

        /// The thread numbers in use, one bit each. Bit 0 is always set, because number 0 belongs
        /// to no thread.
        static TAKEN: AtomicU64 = AtomicU64::new(1);
        const _: () = assert!(super::NUMBERS == u64::BITS as usize);

        const UNKNOWN: usize = usize::MAX;

        std::thread_local! {
            static SHARE: Cell<usize> = const { Cell::new(UNKNOWN) };
            static NUMBER: Cell<usize> = const { Cell::new(UNKNOWN) };
        }

        #[inline(always)]
        pub(in super::super) fn number() -> usize {
            match NUMBER.get() {
                UNKNOWN => take_number(),
                number => number,
            }
        }

        #[cold]
        #[inline(never)]
        fn take_number() -> usize {
            if !watch_exit() {
                NUMBER.set(0); // `AtExit` has run already, so nothing would free the number
                return 0;
            }
            let mut taken = TAKEN.load(Relaxed);
            while taken != u64::MAX {
                let number = taken.trailing_ones() as usize; // the lowest free number
                let with = taken | 1 << number;
                match TAKEN.compare_exchange_weak(taken, with, Acquire, Relaxed) {
                    Ok(_) => {
                        NUMBER.set(number);
                        return number;
                    }
                    Err(now) => taken = now,
                }
            }
            0 // 63 threads have numbers; the next call tries again
        }

        /// Frees the number of an exiting thread. Code that runs on the thread after this call has
        /// the number 0.
        pub(in super::super) fn give_back() {
            let number = NUMBER.replace(0);
            if number != 0 && number != UNKNOWN {
                // `Release`: the next owner of the number sees everything that this thread did.
                TAKEN.fetch_and(!(1 << number), Release);
            }
        }

        pub(in super::super) fn share() -> usize {
            static NEXT: AtomicUsize = AtomicUsize::new(0);
            if SHARE.get() == UNKNOWN {
                SHARE.set(NEXT.fetch_add(1, Relaxed) % super::SHARES);
            }
            SHARE.get()
        }
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::ThreadPart;
    use crate::loom::{model, sync, thread, TrackedCell};
    use std::vec::Vec;
    use sync::{Arc, Mutex};

    #[test]
    fn a_thread_that_reclaims_data_sees_all_writes_of_the_previous_owner() {
        model(|| {
            let part = Arc::new((ThreadPart::new(), TrackedCell::new(0), Mutex::new(())));
            let use_it = |part: Arc<(ThreadPart, TrackedCell<u32>, Mutex<()>)>| {
                let (thread, content, lock) = &*part;
                let held = lock.lock().unwrap();
                if !thread.is_abandoned() {
                    return false;
                }
                thread.reclaim();
                drop(held);
                // SAFETY: the loom model checks that no other thread writes at the same time.
                content.with_mut(|n| unsafe { *n += 1 });
                thread.abandon();
                true
            };
            let others: Vec<_> = (0..2)
                .map(|_| {
                    let part = part.clone();
                    thread::spawn(move || use_it(part))
                })
                .collect();
            let mut uses = use_it(part.clone()) as u32;
            for other in others {
                uses += other.join().unwrap() as u32;
            }
            assert!(uses >= 1);
            let _held = part.2.lock().unwrap();
            assert!(part.0.is_abandoned());
            // SAFETY: the loom model checks that no other thread writes at the same time.
            part.1.with(|n| assert_eq!(unsafe { *n }, uses));
        });
    }
}

//! How a thread finds what it has of each pool, and what happens when it ends.
//!
//! A pool has an `id` that no other ever has, and a `place` that none of those that live has.
//! A thread has a table of {id, front} by place. Nobody else looks into it, so nothing is
//! done to it when a pool ends: its id matches nothing any more.

use crate::loom::atomic::{AtomicBool, Ordering::*};
use alloc::vec::Vec;
use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What one thread has of one pool begins with this.
#[repr(C)]
pub(crate) struct ThreadFront {
    /// No thread's, so any may take it, under the lock of the pool.
    idle: AtomicBool,
}

impl ThreadFront {
    pub(crate) fn new() -> Self {
        Self { idle: AtomicBool::new(true) }
    }
    /// Who sees that has all that its thread did with it.
    pub(crate) fn is_idle(&self) -> bool {
        self.idle.load(Acquire)
    }
    /// For this thread, which has seen under the lock of the pool that it is idle.
    pub(crate) fn adopt(&self) {
        self.idle.store(false, Relaxed);
    }
    /// The last that its thread does with it.
    fn leave(&self) {
        self.idle.store(true, Release);
    }
}

#[derive(Clone, Copy)]
struct Entry {
    id: usize,
    /// Dangling where the id is 0.
    front: NonNull<ThreadFront>,
}

const NONE: Entry = Entry { id: 0, front: NonNull::dangling() };

/// As many entries follow as the mask says.
#[repr(C)]
struct Table {
    /// Of the bytes that lead to an entry: that of a place beyond the table is another's.
    mask: usize,
}

#[repr(C)]
struct EmptyTable(Table, Entry);
// SAFETY: nobody writes to it.
unsafe impl Sync for EmptyTable {}

/// Of a thread without fronts: no pool has the id 0.
static EMPTY: EmptyTable = EmptyTable(Table { mask: 0 }, NONE);

std::thread_local! {
    /// Plain data, which any destructor of this thread may still use.
    static TABLE: Cell<*const Table> = const { Cell::new(&raw const EMPTY as *const Table) };
    /// Tells the pools when the thread ends.
    static END: End = const { End };
}

const ENTRY_BYTES: usize = size_of::<Entry>();

/// # Safety
/// `table` is a thread's own, and `bytes` a multiple of an entry's, at most its mask.
#[inline(always)]
unsafe fn entry(table: *const Table, bytes: usize) -> *const Entry {
    // SAFETY: so many entries follow.
    unsafe { table.add(1).byte_add(bytes).cast() }
}

/// Of a pool: what leads to its fronts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    id: usize,
    place_bytes: usize,
}

impl Ticket {
    /// Of a pool that no thread has a front of.
    const UNKNOWN: Self = Self { id: usize::MAX, place_bytes: 0 };

    /// This thread's front of the pool.
    #[inline(always)]
    pub(crate) fn find(self) -> Option<NonNull<ThreadFront>> {
        let table = TABLE.get();
        // SAFETY: this thread's table, and no more than its mask.
        let entry = unsafe { *entry(table, self.place_bytes & (*table).mask) };
        (entry.id == self.id).then_some(entry.front)
    }

    /// A pool that just begins. Where there is no memory to know it, no thread gets a front.
    pub(crate) fn new() -> Self {
        let mut all = registry();
        let place = match all.ids.iter().position(|&id| id == 0) {
            Some(place) => place,
            None if all.ids.try_reserve(1).is_ok() => {
                all.ids.push(0);
                all.ids.len() - 1
            }
            None => return Self::UNKNOWN,
        };
        if all.last == usize::MAX - 1 {
            return Self::UNKNOWN; // after 2^32 pools, where that is the end of numbers
        }
        all.last += 1;
        all.ids[place] = all.last;
        Self { id: all.last, place_bytes: place * ENTRY_BYTES }
    }

    /// The pool has ended, or is to be as new: no thread has a front of it any more, nor will
    /// one that ends touch it.
    pub(crate) fn end(self) {
        if self.id != Self::UNKNOWN.id {
            registry().ids[self.place_bytes / ENTRY_BYTES] = 0;
        }
    }

    /// Makes sure that `join` can be called; false: there is no memory, or this thread ends.
    pub(crate) fn may_join(self) -> bool {
        if self.id == Self::UNKNOWN.id || END.try_with(|_| ()).is_err() {
            return false;
        }
        let old = TABLE.get();
        // SAFETY: this thread's table.
        let old_bytes = unsafe { (*old).mask } + ENTRY_BYTES;
        let is_empty = old.addr() == (&raw const EMPTY).addr();
        if !is_empty && self.place_bytes < old_bytes {
            return true;
        }
        let bytes = (self.place_bytes + ENTRY_BYTES).next_power_of_two().max(8 * ENTRY_BYTES);
        // SAFETY: the size is not 0.
        let Some(table) = NonNull::new(unsafe { alloc::alloc::alloc(table_layout(bytes)) }) else {
            return false;
        };
        let table = table.as_ptr().cast::<Table>();
        // SAFETY: fresh memory of that layout; the old table has `old_bytes` of entries.
        unsafe {
            table.write(Table { mask: bytes - ENTRY_BYTES });
            for at in (0..bytes).step_by(ENTRY_BYTES) {
                let known = if at < old_bytes { *entry(old, at) } else { NONE };
                entry(table, at).cast_mut().write(known);
            }
        }
        TABLE.set(table);
        if !is_empty {
            // SAFETY: it was this thread's, and is no more.
            unsafe { free_table(old) }
        }
        true
    }

    /// Makes `front` this thread's, after `may_join`.
    pub(crate) fn join(self, front: NonNull<ThreadFront>) {
        let entry = Entry { id: self.id, front };
        // SAFETY: this thread's table, which reaches to the place since `may_join`.
        unsafe { self::entry(TABLE.get(), self.place_bytes).cast_mut().write(entry) }
    }
}

/// A table of so many bytes of entries, a power of two.
fn table_layout(bytes: usize) -> Layout {
    let head = Layout::new::<Table>();
    // SAFETY: so many bytes of ids were once in memory.
    unsafe { Layout::from_size_align_unchecked(head.size() + bytes, align_of::<Entry>()) }
}

/// # Safety
/// A table that was allocated and is no thread's any more.
unsafe fn free_table(table: *const Table) {
    // SAFETY: it was allocated with this layout.
    unsafe {
        let layout = table_layout((*table).mask + ENTRY_BYTES);
        alloc::alloc::dealloc(table.cast_mut().cast(), layout)
    }
}

/// The ids of all pools that live, by place; 0 where there is none.
struct Registry {
    ids: Vec<usize>,
    last: usize,
}

/// Nothing outside this file is called with it held.
static REGISTRY: Mutex<Registry> = Mutex::new(Registry { ids: Vec::new(), last: 0 });

fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

struct End;

impl Drop for End {
    /// All fronts of this thread become idle. What destructors after this one free goes home
    /// at once, and what they allocate is taken under the lock of the pool.
    fn drop(&mut self) {
        let table = TABLE.replace(&raw const EMPTY as *const Table);
        if table.addr() == (&raw const EMPTY).addr() {
            return;
        }
        let all = registry();
        // SAFETY: this thread's table.
        let bytes = unsafe { (*table).mask } + ENTRY_BYTES;
        for (place, at) in (0..bytes).step_by(ENTRY_BYTES).enumerate() {
            // SAFETY: an entry of the table.
            let entry = unsafe { *entry(table, at) };
            if entry.id != 0 && all.ids.get(place) == Some(&entry.id) {
                // SAFETY: the pool lives, as it cannot end while the registry is held, and its
                // fronts live until it ends, or are idle.
                unsafe { entry.front.as_ref() }.leave();
            }
        }
        drop(all);
        // SAFETY: it was this thread's.
        unsafe { free_table(table) }
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::ThreadFront;
    use crate::loom::{model, sync, thread, TrackedCell};
    use std::vec::Vec;
    use sync::{Arc, Mutex};

    #[test]
    fn who_finds_a_front_idle_has_all_that_its_thread_did() {
        model(|| {
            let front = Arc::new((ThreadFront::new(), TrackedCell::new(0), Mutex::new(())));
            let use_it = |front: Arc<(ThreadFront, TrackedCell<u32>, Mutex<()>)>| {
                let (thread, content, lock) = &*front;
                let held = lock.lock().unwrap();
                if !thread.is_idle() {
                    return false;
                }
                thread.adopt();
                drop(held);
                // SAFETY: the model is there to find out.
                content.with_mut(|n| unsafe { *n += 1 });
                thread.leave();
                true
            };
            let others: Vec<_> = (0..2)
                .map(|_| {
                    let front = front.clone();
                    thread::spawn(move || use_it(front))
                })
                .collect();
            let mut uses = use_it(front.clone()) as u32;
            for other in others {
                uses += other.join().unwrap() as u32;
            }
            assert!(uses >= 1);
            let _held = front.2.lock().unwrap();
            assert!(front.0.is_idle());
            // SAFETY: the same.
            front.1.with(|n| assert_eq!(unsafe { *n }, uses));
        });
    }
}

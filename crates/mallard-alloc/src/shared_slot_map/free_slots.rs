//! Allocates and frees the slots of a shared slot map. A thread uses its own cache, without
//! touching memory of other threads, and exchanges whole magazines (arrays of free slots) with
//! other caches.

use super::memory::Memory;
use super::thread_cache::{MagazineKind, ThreadCache, MAGAZINE};
use crate::base::source::Source;
use crate::slot_map::key::Key;
use crate::threads::registry::{thread_number, thread_share};
use core::ptr::NonNull;
use core::sync::atomic::Ordering::Relaxed;

impl ThreadCache {
    /// Replaces the magazine `previous` by the magazine with the number `by`. Returns the number of
    /// the replaced magazine.
    fn exchange<K: Key, V, S: Source>(&self, memory: &Memory<K, V, S>, by: u32) -> u32 {
        let magazine = memory.magazine(by);
        // SAFETY: both magazines belong to this cache.
        let len = unsafe {
            let before = self.previous.replace(magazine).as_ptr();
            (*before).len.set(self.previous_len.load(Relaxed));
            (*magazine.as_ptr()).len.get()
        };
        self.add_to_balance(len as isize - self.previous_len.load(Relaxed) as isize);
        self.previous_len.store(len, Relaxed);
        self.previous_number.replace(by)
    }

    /// Removes the index of a free slot from the cache, and returns the index.
    #[inline(always)]
    fn pop<K: Key, V, S: Source>(&self, memory: &Memory<K, V, S>) -> Option<usize> {
        let mut len = self.len.load(Relaxed);
        if len == 0 {
            len = self.refill(memory)?;
        }
        self.len.store(len - 1, Relaxed);
        Some(self.place(len - 1).get() as usize)
    }
    #[cold]
    #[inline(never)]
    fn refill<K: Key, V, S: Source>(&self, memory: &Memory<K, V, S>) -> Option<usize> {
        if self.previous_len.load(Relaxed) == 0 {
            let empty = self.exchange(memory, memory.take_full(self)?);
            memory.push(self.own_stack(MagazineKind::Empty), empty);
        }
        self.swap();
        Some(self.len.load(Relaxed))
    }

    /// Counts a removed element. Its slot becomes free, unless the slot is retired.
    #[inline(always)]
    fn end<K: Key, V, S: Source>(&self, memory: &Memory<K, V, S>, index: usize, retired: bool) {
        let mut len = self.len.load(Relaxed);
        if retired {
            return self.add_to_balance(-1);
        }
        if len == MAGAZINE {
            len = self.flush(memory);
        }
        self.place(len).set(index as u32);
        self.len.store(len + 1, Relaxed);
    }
    #[cold]
    #[inline(never)]
    fn flush<K: Key, V, S: Source>(&self, memory: &Memory<K, V, S>) -> usize {
        if self.previous_len.load(Relaxed) != 0 {
            let number = self.previous_number.get();
            // SAFETY: the magazine belongs to this cache until it is pushed.
            unsafe { (*self.previous.get().as_ptr()).len.set(self.previous_len.load(Relaxed)) };
            self.add_to_balance(-(self.previous_len.load(Relaxed) as isize));
            self.previous_len.store(0, Relaxed);
            memory.push(self.own_stack(MagazineKind::Full), number);
            let empty = memory.take_empty(self);
            self.previous.set(memory.magazine(empty));
            self.previous_number.set(empty);
        }
        self.swap();
        self.len.load(Relaxed)
    }
}

impl<K: Key, V, S: Source> Memory<K, V, S> {
    /// Returns the cache of the calling thread. A locked operation must come after this call,
    /// because otherwise the loads in this function would wait for that operation.
    #[inline(always)]
    pub(super) fn current_cache(&self) -> CurrentCache {
        CurrentCache(match thread_number() {
            0 => core::ptr::null_mut(),
            number => self.cache(number),
        })
    }
    /// Returns the index of a free slot, which the caller then owns.
    #[inline(always)]
    pub(super) fn take_slot(&self) -> Option<usize> {
        let CurrentCache(cache) = self.current_cache();
        if cache.is_null() {
            return self.take_slot_slowly();
        }
        // SAFETY: the cache belongs to this thread.
        unsafe { (*cache).pop(self) }
    }
    /// Frees a slot that the caller owns and that has no element, unless the slot is retired.
    #[inline(always)]
    pub(super) fn give_slot(&self, CurrentCache(cache): CurrentCache, index: usize, retired: bool) {
        if cache.is_null() {
            return self.give_slot_slowly(index, retired);
        }
        // SAFETY: the cache belongs to this thread.
        unsafe { (*cache).end(self, index, retired) }
    }

    #[cold]
    #[inline(never)]
    fn take_slot_slowly(&self) -> Option<usize> {
        self.with_cache(|cache| cache.pop(self))?
    }
    #[cold]
    #[inline(never)]
    fn give_slot_slowly(&self, index: usize, retired: bool) {
        if self.with_cache(|cache| cache.end(self, index, retired)).is_none() {
            // There is no memory for another cache, so a shared cache is used. The first shared
            // cache exists if the map ever had an element.
            self.with_shared_cache(0, |cache| cache.end(self, index, retired));
        }
    }

    /// Runs `f` with the cache of the calling thread. Makes the cache if the thread has no cache.
    fn with_cache<R>(&self, f: impl FnOnce(&ThreadCache) -> R) -> Option<R> {
        let number = thread_number();
        // The first shared cache is made before all others, so that elements can always be removed.
        self.make_cache(Self::shared_number(0))?;
        if number == 0 {
            let share = thread_share();
            self.make_cache(Self::shared_number(share))?;
            return self.with_shared_cache(share, f);
        }
        let cache = self.make_cache(number)?;
        // SAFETY: the cache belongs to this thread.
        Some(f(unsafe { cache.as_ref() }))
    }
    fn with_shared_cache<R>(&self, share: usize, f: impl FnOnce(&ThreadCache) -> R) -> Option<R> {
        let cache = NonNull::new(self.cache(Self::shared_number(share)))?;
        let _alone = self.shared_lock(share).lock();
        // SAFETY: this thread holds the lock of the shared cache.
        Some(f(unsafe { cache.as_ref() }))
    }
}

/// The cache of the calling thread, or null if there is none.
#[derive(Clone, Copy)]
pub(super) struct CurrentCache(*mut ThreadCache);

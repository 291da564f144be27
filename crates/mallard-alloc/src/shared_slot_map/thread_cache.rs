//! The thread caches of a shared slot map: the free slots that a thread takes without touching
//! memory of other threads.

use super::memory::Memory;
use crate::base::source::Source;
use crate::loom::atomic::AtomicU32;
use crate::slot_map::key::Key;
use crate::threads::registry::{thread_number, thread_share};
use crate::threads::tagged_stack::TaggedStack;
use core::cell::{Cell, UnsafeCell};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::Relaxed};

/// The number of slots of a magazine, which move between threads together.
pub(super) const MAGAZINE: usize = 64;

/// The indices of free slots. A magazine belongs to one thread, or is on a stack. Other threads read only
/// its link.
pub(super) struct Magazine {
    pub(super) link: AtomicU32,
    len: Cell<usize>,
    slots: [Cell<u32>; MAGAZINE],
}

impl Magazine {
    /// Makes a full magazine at `at`.
    ///
    /// # Safety
    /// The memory at `at` belongs to the caller, and a magazine fits in it.
    pub(super) unsafe fn make(at: NonNull<Self>, first: usize) {
        // Low indices are used first.
        let slots = core::array::from_fn(|i| Cell::new((first + MAGAZINE - 1 - i) as u32));
        // Slot 0 is never used, because no key has index 0.
        let len = Cell::new(MAGAZINE - (first == 0) as usize);
        // SAFETY: the caller meets the safety conditions of this function.
        unsafe { at.write(Self { link: AtomicU32::new(0), len, slots }) };
    }
    fn empty() -> Self {
        let slots = [const { Cell::new(0) }; MAGAZINE];
        Self { link: AtomicU32::new(0), len: Cell::new(0), slots }
    }
}

/// The cache of a thread. A magazine is an array of the indices of up to 64 free slots. A cache has
/// two magazines. So a thread whose number of free slots goes up and down by less than 64 does not
/// exchange magazines with other threads. Further magazines are on the stacks of the cache, and
/// other threads may take these. Other threads access only the stacks and the three counters.
///
/// When a thread has pushed a full magazine on a stack and holds another full one, some stack has
/// an empty magazine. Proof: there is one magazine for each 64 slots, and two more for each cache.
/// If no stack had an empty magazine, the full magazines outside the caches would contain all
/// slots. But the thread holds 64 slots itself.
#[repr(align(128))] // alone on its cache lines, which processors fetch in pairs
pub(super) struct ThreadCache {
    loaded: Cell<NonNull<Magazine>>,
    /// The number of slots in the loaded magazine.
    len: AtomicUsize,
    /// The number of slots in the other magazine: 0, or the number in a full magazine.
    previous_len: AtomicUsize,
    previous: Cell<NonNull<Magazine>>,
    loaded_number: Cell<u32>,
    previous_number: Cell<u32>,
    /// The number of slots that arrived in whole magazines, minus the number of slots that left in
    /// whole magazines.
    balance: AtomicIsize,
    own: UnsafeCell<[Magazine; 2]>,
    stacks: Stacks,
}

/// The stacks that other threads access, on a cache line of their own.
#[repr(align(128))]
struct Stacks([TaggedStack; 2]);

/// What the magazines on a stack contain.
#[derive(Clone, Copy)]
pub(super) enum MagazineKind {
    Full,
    Empty,
}

impl ThreadCache {
    /// Makes a cache at `at`.
    ///
    /// # Safety
    /// The memory at `at` belongs to the caller, and a cache fits in it.
    pub(super) unsafe fn make(at: NonNull<Self>, first_number: u32) {
        // SAFETY: the caller meets the safety conditions of this function.
        unsafe {
            at.write(Self {
                loaded: Cell::new(Self::magazine(at, 0)),
                len: AtomicUsize::new(0),
                previous_len: AtomicUsize::new(0),
                previous: Cell::new(Self::magazine(at, 1)),
                loaded_number: Cell::new(first_number),
                previous_number: Cell::new(first_number + 1),
                balance: AtomicIsize::new(0),
                own: UnsafeCell::new([Magazine::empty(), Magazine::empty()]),
                stacks: Stacks([TaggedStack::new(), TaggedStack::new()]),
            });
        }
    }
    /// Returns the address of one of the cache's own magazines.
    ///
    /// # Safety
    /// `at` is a cache, and `i` is 0 or 1.
    pub(super) unsafe fn magazine(at: NonNull<Self>, i: usize) -> NonNull<Magazine> {
        // SAFETY: the caller meets the safety conditions of this function.
        unsafe { at.byte_add(core::mem::offset_of!(Self, own)).cast::<Magazine>().add(i) }
    }
    /// Returns a stack of a cache. Any thread may call this function.
    ///
    /// # Safety
    /// `at` is a cache that outlives `'a`.
    pub(super) unsafe fn stack<'a>(at: NonNull<Self>, kind: MagazineKind) -> &'a TaggedStack {
        // SAFETY: the caller promises that the cache exists, and nothing else of the cache is
        // accessed.
        unsafe { &(*at.as_ptr()).stacks.0[kind as usize] }
    }
    pub(super) fn own_stack(&self, kind: MagazineKind) -> &TaggedStack {
        &self.stacks.0[kind as usize]
    }
    /// Returns how many elements started in this cache minus how many ended in it. Any thread may
    /// call this function.
    ///
    /// # Safety
    /// `at` is a cache.
    pub(super) unsafe fn live(at: NonNull<Self>) -> isize {
        let at = at.as_ptr();
        // SAFETY: only the counters are accessed, which are atomic.
        let (balance, len, previous) = unsafe {
            let (len, previous) = ((*at).len.load(Relaxed), (*at).previous_len.load(Relaxed));
            ((*at).balance.load(Relaxed), len, previous)
        };
        balance - (len + previous) as isize
    }

    /// Returns the entry `i` of the loaded magazine.
    #[inline(always)]
    fn place(&self, i: usize) -> &Cell<u32> {
        debug_assert!(i < MAGAZINE);
        // SAFETY: the magazines of a cache exist as long as the cache, and `i` is below the length
        // of a magazine.
        unsafe { (*self.loaded.get().as_ptr()).slots.get_unchecked(i) }
    }
    fn swap(&self) {
        self.loaded.swap(&self.previous);
        self.loaded_number.swap(&self.previous_number);
        let len = self.len.load(Relaxed);
        self.len.store(self.previous_len.load(Relaxed), Relaxed);
        self.previous_len.store(len, Relaxed);
    }
    fn add_to_balance(&self, more: isize) {
        self.balance.store(self.balance.load(Relaxed) + more, Relaxed);
    }
    /// Replaces the magazine `previous` by the one with the number `by`. Returns the number of the
    /// replaced magazine.
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

    /// Takes the index of a free slot.
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

    /// Counts the end of an element. Its slot becomes free, unless the slot is retired.
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
    /// Returns the cache of the calling thread. The caller has to call this function before a
    /// locked operation, because loads of this function would wait for an earlier locked operation.
    #[inline(always)]
    pub(super) fn current_cache(&self) -> CurrentCache {
        CurrentCache(match thread_number() {
            0 => core::ptr::null_mut(),
            number => self.cache(number),
        })
    }
    /// Takes the index of a free slot, which the caller then owns.
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
            // There is no memory for another cache. The first shared cache exists if the map ever had an
            // element.
            self.with_shared_cache(0, |cache| cache.end(self, index, retired));
        }
    }

    /// Runs `f` with the cache of the calling thread. Makes the cache if there is none.
    fn with_cache<R>(&self, f: impl FnOnce(&ThreadCache) -> R) -> Option<R> {
        let number = thread_number();
        // The first shared cache is made first, so that elements can always end.
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

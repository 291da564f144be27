//! The thread caches of a shared slot map. A cache contains the free slots of a thread, in
//! magazines. `free_slots` allocates slots from a cache.

use crate::loom::atomic::AtomicU32;
use crate::threads::tagged_stack::TaggedStack;
use core::cell::{Cell, UnsafeCell};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::Relaxed};

/// The number of slots in a full magazine. Slots move between threads in whole magazines.
pub(super) const MAGAZINE: usize = 64;

/// An array with the indices of free slots. A magazine belongs to one thread, or is on a stack.
/// Other threads read only the magazine's link.
pub(super) struct Magazine {
    pub(super) link: AtomicU32,
    pub(super) len: Cell<usize>,
    slots: [Cell<u32>; MAGAZINE],
}

impl Magazine {
    /// Makes a full magazine at `at`.
    ///
    /// # Safety
    /// The memory at `at` belongs to the caller, and a magazine fits in it.
    pub(super) unsafe fn make(at: NonNull<Self>, first: usize) {
        // The cache uses low indices first.
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
/// exchange magazines with other threads. More magazines are on the stacks of the cache, from which
/// other threads may remove them. Other threads access only the stacks and the three counters.
///
/// When a thread has pushed a full magazine on a stack and holds another full magazine, some stack
/// has an empty magazine. Proof: there is one magazine for each 64 slots, and two more for each
/// cache. If no stack had an empty magazine, the full magazines outside the caches would contain
/// all slots. But the thread itself holds 64 slots.
#[repr(align(128))] // alone on its cache lines, which processors fetch in pairs
pub(super) struct ThreadCache {
    pub(super) loaded: Cell<NonNull<Magazine>>,
    /// The number of slots in the loaded magazine.
    pub(super) len: AtomicUsize,
    /// The number of slots in the other magazine: 0, or the number in a full magazine.
    pub(super) previous_len: AtomicUsize,
    pub(super) previous: Cell<NonNull<Magazine>>,
    loaded_number: Cell<u32>,
    pub(super) previous_number: Cell<u32>,
    /// The number of slots that arrived in whole magazines, minus the number of slots that left in
    /// whole magazines.
    balance: AtomicIsize,
    own: UnsafeCell<[Magazine; 2]>,
    stacks: Stacks,
}

/// The stacks that other threads access, on a separate cache line.
#[repr(align(128))]
struct Stacks([TaggedStack; 2]);

/// The content of the magazines on a stack.
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
        // SAFETY: the caller guarantees that the cache exists, and this function accesses only the
        // stack of the cache.
        unsafe { &(*at.as_ptr()).stacks.0[kind as usize] }
    }
    pub(super) fn own_stack(&self, kind: MagazineKind) -> &TaggedStack {
        &self.stacks.0[kind as usize]
    }
    /// Returns the number of elements that were inserted through this cache, minus the number that
    /// were removed through this cache. Any thread may call this function.
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

    /// Returns the entry with index `i` of the loaded magazine.
    #[inline(always)]
    pub(super) fn place(&self, i: usize) -> &Cell<u32> {
        debug_assert!(i < MAGAZINE);
        // SAFETY: the magazines of a cache exist while the cache exists, and `i` is below the
        // length of a magazine.
        unsafe { (*self.loaded.get().as_ptr()).slots.get_unchecked(i) }
    }
    pub(super) fn swap(&self) {
        self.loaded.swap(&self.previous);
        self.loaded_number.swap(&self.previous_number);
        let len = self.len.load(Relaxed);
        self.len.store(self.previous_len.load(Relaxed), Relaxed);
        self.previous_len.store(len, Relaxed);
    }
    pub(super) fn add_to_balance(&self, more: isize) {
        self.balance.store(self.balance.load(Relaxed) + more, Relaxed);
    }
}

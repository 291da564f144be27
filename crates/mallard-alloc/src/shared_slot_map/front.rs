//! What a thread has of the free slots of a shared slot map.

use super::memory::Memory;
use crate::base::source::Source;
use crate::loom::atomic::AtomicU32;
use crate::slot_map::key::Key;
use crate::threads::registry::{thread_number, thread_share};
use crate::threads::tagged_stack::TaggedStack;
use core::cell::{Cell, UnsafeCell};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::Relaxed};

/// Slots that go from thread to thread at once.
pub(super) const MAGAZINE: usize = 64;

/// The indices of free slots. It is one thread's, or on a stack; others may look at the link alone.
pub(super) struct Magazine {
    pub(super) link: AtomicU32,
    len: Cell<usize>,
    slots: [Cell<u32>; MAGAZINE],
}

impl Magazine {
    /// # Safety
    /// It is the caller's memory.
    pub(super) unsafe fn make(at: NonNull<Self>, first: usize) {
        // The low ones come first.
        let slots = core::array::from_fn(|i| Cell::new((first + MAGAZINE - 1 - i) as u32));
        let len = Cell::new(MAGAZINE - (first == 0) as usize); // slot 0 is nobody's
                                                               // SAFETY: as the caller says.
        unsafe { at.write(Self { link: AtomicU32::new(0), len, slots }) };
    }
    fn empty() -> Self {
        let slots = [const { Cell::new(0) }; MAGAZINE];
        Self { link: AtomicU32::new(0), len: Cell::new(0), slots }
    }
}

/// Two magazines, so that who goes to and fro between two of them takes none. More are on stacks,
/// where others find them who have none of their own. Other threads look at the stacks and the three
/// counters alone.
///
/// There is a magazine for each 64 slots, and two for each front. So while one gives a full one away
/// that he has beside another, there are empty ones on stacks: else there would be none but full ones
/// for all slots there are, beside those in fronts, and no slot of his.
#[repr(align(128))] // alone on its lines, and on those that are fetched with them
pub(super) struct Front {
    loaded: Cell<NonNull<Magazine>>,
    /// Of slots in the one that is loaded.
    len: AtomicUsize,
    /// In the other one: 0, or all it can have.
    previous_len: AtomicUsize,
    previous: Cell<NonNull<Magazine>>,
    loaded_number: Cell<u32>,
    previous_number: Cell<u32>,
    /// Slots that came in magazines, less those that went in such.
    balance: AtomicIsize,
    own: UnsafeCell<[Magazine; 2]>,
    stacks: Stacks,
}

/// What others come to, on a line of its own.
#[repr(align(128))]
struct Stacks([TaggedStack; 2]);

/// What magazines on a stack are.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Full,
    Empty,
}

impl Front {
    /// # Safety
    /// It is the caller's memory.
    pub(super) unsafe fn make(at: NonNull<Self>, first_number: u32) {
        // SAFETY: as the caller says.
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
    /// # Safety
    /// It is a front, and has the magazine.
    pub(super) unsafe fn magazine(at: NonNull<Self>, i: usize) -> NonNull<Magazine> {
        // SAFETY: as the caller says.
        unsafe { at.byte_add(core::mem::offset_of!(Self, own)).cast::<Magazine>().add(i) }
    }
    /// Any thread.
    ///
    /// # Safety
    /// It is a front, and stays.
    pub(super) unsafe fn stack<'a>(at: NonNull<Self>, kind: Kind) -> &'a TaggedStack {
        // SAFETY: as the caller says; nothing else of it is looked at.
        unsafe { &(*at.as_ptr()).stacks.0[kind as usize] }
    }
    pub(super) fn own_stack(&self, kind: Kind) -> &TaggedStack {
        &self.stacks.0[kind as usize]
    }
    /// Elements that began here less those that ended here. Any thread.
    ///
    /// # Safety
    /// It is a front.
    pub(super) unsafe fn live(at: NonNull<Self>) -> isize {
        let at = at.as_ptr();
        // SAFETY: nothing but the counters is looked at.
        let (balance, len, previous) = unsafe {
            let (len, previous) = ((*at).len.load(Relaxed), (*at).previous_len.load(Relaxed));
            ((*at).balance.load(Relaxed), len, previous)
        };
        balance - (len + previous) as isize
    }

    /// The place in the loaded magazine.
    #[inline(always)]
    fn place(&self, i: usize) -> &Cell<u32> {
        debug_assert!(i < MAGAZINE);
        // SAFETY: the magazines of a front are its own, and stay; no length is more than their places.
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
    /// Another one in the place of the other; gives the number of that.
    fn exchange<K: Key, V, S: Source>(&self, memory: &Memory<K, V, S>, by: u32) -> u32 {
        let magazine = memory.magazine(by);
        // SAFETY: both magazines are this front's.
        let len = unsafe {
            let before = self.previous.replace(magazine).as_ptr();
            (*before).len.set(self.previous_len.load(Relaxed));
            (*magazine.as_ptr()).len.get()
        };
        self.add_to_balance(len as isize - self.previous_len.load(Relaxed) as isize);
        self.previous_len.store(len, Relaxed);
        self.previous_number.replace(by)
    }

    /// The index of a free slot.
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
            let empty = self.exchange(memory, memory.supply(self)?);
            memory.push(self.own_stack(Kind::Empty), empty);
        }
        self.swap();
        Some(self.len.load(Relaxed))
    }

    /// An element has ended; its slot is free, if it is not retired.
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
            // SAFETY: it is this front's until it is pushed.
            unsafe { (*self.previous.get().as_ptr()).len.set(self.previous_len.load(Relaxed)) };
            self.add_to_balance(-(self.previous_len.load(Relaxed) as isize));
            self.previous_len.store(0, Relaxed);
            memory.push(self.own_stack(Kind::Full), number);
            let empty = memory.find_empty(self);
            self.previous.set(memory.magazine(empty));
            self.previous_number.set(empty);
        }
        self.swap();
        self.len.load(Relaxed)
    }
}

impl<K: Key, V, S: Source> Memory<K, V, S> {
    /// What this thread has here. Asked for before a locked operation, since what is loaded after it
    /// waits for it.
    #[inline(always)]
    pub(super) fn here(&self) -> Here {
        Here(match thread_number() {
            0 => core::ptr::null_mut(),
            number => self.front(number),
        })
    }
    /// The index of a free slot, which is the caller's.
    #[inline(always)]
    pub(super) fn take_slot(&self) -> Option<usize> {
        let Here(front) = self.here();
        if front.is_null() {
            return self.take_slot_slowly();
        }
        // SAFETY: it is this thread's own.
        unsafe { (*front).pop(self) }
    }
    /// The slot is not an element any more, and the caller's; then it is free, if it is not retired.
    #[inline(always)]
    pub(super) fn give_slot(&self, Here(front): Here, index: usize, retired: bool) {
        if front.is_null() {
            return self.give_slot_slowly(index, retired);
        }
        // SAFETY: it is this thread's own.
        unsafe { (*front).end(self, index, retired) }
    }

    #[cold]
    #[inline(never)]
    fn take_slot_slowly(&self) -> Option<usize> {
        self.with_front(|front| front.pop(self))?
    }
    #[cold]
    #[inline(never)]
    fn give_slot_slowly(&self, index: usize, retired: bool) {
        if self.with_front(|front| front.end(self, index, retired)).is_none() {
            // No memory for another front: by the first of the shared ones, which is there if any
            // element ever was.
            self.with_shared_front(0, |front| front.end(self, index, retired));
        }
    }

    /// Makes the front of this thread if need be.
    fn with_front<R>(&self, f: impl FnOnce(&Front) -> R) -> Option<R> {
        let number = thread_number();
        // First one for all, so that what has begun can end.
        self.make_front(Self::shared_number(0))?;
        if number == 0 {
            let share = thread_share();
            self.make_front(Self::shared_number(share))?;
            return self.with_shared_front(share, f);
        }
        let front = self.make_front(number)?;
        // SAFETY: it is this thread's own.
        Some(f(unsafe { front.as_ref() }))
    }
    fn with_shared_front<R>(&self, share: usize, f: impl FnOnce(&Front) -> R) -> Option<R> {
        let front = NonNull::new(self.front(Self::shared_number(share)))?;
        let _alone = self.shared_lock(share).lock();
        // SAFETY: the lock is held.
        Some(f(unsafe { front.as_ref() }))
    }
}

/// The front of this thread, or null.
#[derive(Clone, Copy)]
pub(super) struct Here(*mut Front);

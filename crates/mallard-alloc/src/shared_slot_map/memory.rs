//! The slots of a shared slot map: where they are, and how threads get free ones.

use super::front::{Front, Kind, Magazine, MAGAZINE};
use super::slot::SlotState;
use crate::base::bits::{align_up, layout};
use crate::base::growth::{Growth, GrowthState};
use crate::base::source::{Chunk, Source};
use crate::base::statistics::Statistics;
use crate::loom::atomic::AtomicU32;
use crate::slot_map::key::{Key, Words};
use crate::threads::lock::Locked;
use crate::threads::registry::{pause, NUMBERS, SHARES};
use crate::threads::tagged_stack::{pop_any, TaggedStack};
use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// A slot. What is in `value` is said by `state`. It is as large as whole words of 8 bytes.
#[repr(C)]
pub(super) struct Slot<V> {
    pub(super) state: SlotState,
    value: UnsafeCell<Padded<V>>,
}
#[repr(C, align(8))]
struct Padded<V>(MaybeUninit<V>);

impl<V> Slot<V> {
    #[inline(always)]
    pub(super) fn value(&self) -> *mut V {
        self.value.get().cast()
    }
}

/// A chunk: a run's header, slots, and for each 64 of them a magazine.
struct Shape<K, V>(PhantomData<(K, V)>);

const CHUNK_BYTES: usize = 1 << 14;

impl<K: Key, V> Shape<K, V> {
    const VALID: () = assert!(
        K::INDEX_BITS >= 12 && K::GENERATION_BITS <= 32,
        "a key of a shared slot map has 12 bits for the index or more, since threads take slots by \
         the chunk, and 32 for the generation or fewer"
    );
    /// A power of two.
    const SLOTS: usize = {
        let wanted = CHUNK_BYTES / size_of::<Slot<V>>();
        if wanted <= MAGAZINE {
            MAGAZINE
        } else {
            1 << wanted.ilog2()
        }
    };
    const MAGAZINES: usize = Self::SLOTS / MAGAZINE;
    const SLOTS_AT: usize = align_up(align_up(size_of::<Run>(), 64), align_of::<Slot<V>>());
    const MAGAZINES_AT: usize =
        align_up(Self::SLOTS_AT + Self::SLOTS * size_of::<Slot<V>>(), align_of::<Magazine>());
    const ALIGN: usize = if align_of::<Slot<V>>() < 128 { 128 } else { align_of::<Slot<V>>() };
    const BYTES: usize =
        align_up(Self::MAGAZINES_AT + Self::MAGAZINES * size_of::<Magazine>(), Self::ALIGN);
    /// Chunks whose slots 31 bits can number.
    const CHUNKS_MAX: usize = {
        let slots = Words::<K>::SLOTS_MAX;
        (if slots < 1 << 31 { slots } else { 1 << 31 }) / Self::SLOTS
    };
}

/// What is in front of the first chunk that the source gave at once.
struct Run {
    next: Option<NonNull<Run>>,
    layout: Layout,
}

/// What is in front of the entries of a directory.
struct Directory {
    before: Option<NonNull<Directory>>,
    layout: Layout,
}

/// What only one thread at a time changes.
struct Growing<S> {
    growth: GrowthState,
    source: S,
    runs: Option<NonNull<Run>>,
    pending: *mut u8,
    pending_count: usize,
    /// The one in use, which knows those before: others may still read them.
    directory: Option<NonNull<Directory>>,
    room: usize,
}

pub(super) struct Memory<K: Key, V, S: Source> {
    /// Chunks. Those below are in the directory.
    count: AtomicUsize,
    directory: AtomicPtr<AtomicPtr<u8>>,
    /// Fronts, indexed by thread number. The first, and those after the last thread number, are shared by
    /// threads without a number, and each of these has a lock.
    fronts: [AtomicPtr<Front>; NUMBERS + SHARES - 1],
    /// Held while the memory grows; with `std`, waiters sleep.
    lock: Locked<()>,
    /// Locks of the shared fronts. Lock order: one of these before `lock`.
    shared: [Locked<()>; SHARES],
    growing: UnsafeCell<Growing<S>>,
    /// Values go in through `&self`, so a map of `V` may not become one of a `V` with a shorter
    /// lifetime: the map is invariant in `V`.
    marker: PhantomData<(K, UnsafeCell<V>)>,
}

/// The numbers of magazines that are in fronts begin here.
const IN_FRONTS: u32 = 1 << 31;

/// What is made of loom's atomics cannot be made by a constant.
macro_rules! const_but_for_models {
    ($(#[$meta:meta])* $vis:vis fn $($rest:tt)*) => {
        #[cfg(not(loom))]
        $(#[$meta])*
        $vis const fn $($rest)*
        #[cfg(loom)]
        $(#[$meta])*
        $vis fn $($rest)*
    };
}
pub(super) use const_but_for_models;

impl<K: Key, V, S: Source> Memory<K, V, S> {
    const_but_for_models! {
        pub(super) fn new(growth: Growth, source: S) -> Self {
        let () = Shape::<K, V>::VALID;
        let growing = Growing {
            growth: GrowthState::new(growth),
            source,
            runs: None,
            pending: ptr::null_mut(),
            pending_count: 0,
            directory: None,
            room: 0,
        };
        Self {
            count: AtomicUsize::new(0),
            directory: AtomicPtr::new(ptr::null_mut()),
            fronts: [const { AtomicPtr::new(ptr::null_mut()) }; NUMBERS + SHARES - 1],
            lock: Locked::new(()),
            shared: [const { Locked::new(()) }; SHARES],
            growing: UnsafeCell::new(growing),
            marker: PhantomData,
        }
    }
    }

    pub(super) fn layout() -> Option<Layout> {
        layout(Shape::<K, V>::BYTES, Shape::<K, V>::ALIGN)
    }
    pub(super) fn is_at_limit(&self) -> bool {
        self.count.load(Ordering::Relaxed) == Shape::<K, V>::CHUNKS_MAX
    }

    #[inline(always)]
    fn chunk(&self, number: usize) -> Option<NonNull<u8>> {
        // Acquire: who sees the count sees the directory, and the chunk in it.
        if number >= self.count.load(Ordering::Acquire) {
            return None;
        }
        let entries = self.directory.load(Ordering::Acquire);
        // SAFETY: a directory has entries for as many chunks as there were when it began, or more.
        NonNull::new(unsafe { (*entries.add(number)).load(Ordering::Relaxed) })
    }

    /// The slot of an index, if there is memory for it.
    #[inline(always)]
    pub(super) fn slot(&self, index: usize) -> Option<&Slot<V>> {
        let chunk = self.chunk(index / Shape::<K, V>::SLOTS)?;
        let place = index % Shape::<K, V>::SLOTS;
        // SAFETY: a chunk has as many slots, and stays.
        Some(unsafe { chunk.add(Shape::<K, V>::SLOTS_AT).cast::<Slot<V>>().add(place).as_ref() })
    }
    /// The slots that there are, free ones and slot 0 too.
    pub(super) fn slots(&self) -> impl Iterator<Item = (usize, &Slot<V>)> {
        let end = self.count.load(Ordering::Acquire) * Shape::<K, V>::SLOTS;
        (0..end).filter_map(|index| Some((index, self.slot(index)?)))
    }

    /// A magazine by its number.
    pub(super) fn magazine(&self, number: u32) -> NonNull<Magazine> {
        if number >= IN_FRONTS {
            let i = (number - IN_FRONTS) as usize;
            let front = self.fronts[i / 2].load(Ordering::Acquire);
            // SAFETY: who has the number of a magazine got it from one who made the front.
            return unsafe { Front::magazine(NonNull::new_unchecked(front), i % 2) };
        }
        let number = number as usize;
        // SAFETY: the same of a chunk, which has as many magazines.
        unsafe {
            let chunk = self.chunk(number / Shape::<K, V>::MAGAZINES).unwrap_unchecked();
            let first = chunk.add(Shape::<K, V>::MAGAZINES_AT).cast::<Magazine>();
            first.add(number % Shape::<K, V>::MAGAZINES)
        }
    }

    /// The front of a number, if it has one.
    #[inline(always)]
    pub(super) fn front(&self, number: usize) -> *mut Front {
        self.fronts[number].load(Ordering::Acquire)
    }
    /// Elements that began less those that ended, as far as it is known here.
    pub(super) fn live(&self) -> usize {
        // SAFETY: a front stays where it is.
        let live: isize = self.fronts().map(|front| unsafe { Front::live(front) }).sum();
        live.max(0) as usize // not all at one moment
    }
    fn fronts(&self) -> impl Iterator<Item = NonNull<Front>> + '_ {
        self.fronts.iter().filter_map(|front| NonNull::new(front.load(Ordering::Acquire)))
    }
    pub(super) fn shared_lock(&self, share: usize) -> &Locked<()> {
        &self.shared[share]
    }
    /// The index of a shared front among all fronts.
    pub(super) const fn shared_number(share: usize) -> usize {
        match share {
            0 => 0,
            share => NUMBERS - 1 + share,
        }
    }

    /// Makes a front for a number that has none.
    #[cold]
    pub(super) fn make_front(&self, number: usize) -> Option<NonNull<Front>> {
        if let Some(front) = NonNull::new(self.front(number)) {
            return Some(front);
        }
        let _alone = self.lock.lock();
        if let Some(front) = NonNull::new(self.front(number)) {
            return Some(front); // a shared one, made meanwhile
        }
        // SAFETY: the lock is held.
        let growing = unsafe { &mut *self.growing.get() };
        let front = growing.take_aside(Layout::new::<Front>())?.data.cast::<Front>();
        // SAFETY: it was just taken.
        unsafe { Front::make(front, IN_FRONTS + 2 * number as u32) };
        self.fronts[number].store(front.as_ptr(), Ordering::Release);
        Some(front)
    }

    /// The number of a magazine with keys in it; it is the caller's.
    #[cold]
    pub(super) fn supply(&self, own: &Front) -> Option<u32> {
        loop {
            if let Some(number) = self.find(own, Kind::Full) {
                return Some(number);
            }
            let _alone = self.lock.lock();
            if let Some(number) = self.find(own, Kind::Full) {
                return Some(number); // somebody else was here
            }
            // SAFETY: the lock is held.
            self.add_chunk(own, unsafe { &mut *self.growing.get() })?;
        }
    }
    /// An empty one, for a front that has just given a full one away. There is one on some stack at
    /// any time: who comes to all of them in vain has been overtaken, each time by another who got
    /// one.
    pub(super) fn find_empty(&self, own: &Front) -> u32 {
        loop {
            match self.find(own, Kind::Empty) {
                Some(number) => return number,
                None => pause(),
            }
        }
    }
    /// One's own first, so that slots stay with the thread that used them last.
    fn find(&self, own: &Front, kind: Kind) -> Option<u32> {
        // SAFETY: a front stays where it is.
        let all = self.fronts().map(|front| unsafe { Front::stack(front, kind) });
        pop_any(own.own_stack(kind), all, |number| self.link(number))
    }
    fn link(&self, number: u32) -> &AtomicU32 {
        // SAFETY: it is a magazine, and stays.
        unsafe { &(*self.magazine(number).as_ptr()).link }
    }
    pub(super) fn push(&self, stack: &TaggedStack, number: u32) {
        stack.push(number, self.link(number));
    }

    /// One chunk more, all of whose slots are free.
    fn add_chunk(&self, own: &Front, growing: &mut Growing<S>) -> Option<()> {
        let number = self.count.load(Ordering::Relaxed);
        if number == Shape::<K, V>::CHUNKS_MAX {
            return None;
        }
        if number == growing.room {
            let entries = growing.make_room()?;
            self.directory.store(entries, Ordering::Release);
        }
        let chunk = growing.take_chunk(Self::layout()?)?;
        let first = number * Shape::<K, V>::SLOTS;
        // SAFETY: the chunk was just taken, and has all this; the directory has room.
        unsafe {
            let slots = chunk.add(Shape::<K, V>::SLOTS_AT).cast::<Slot<V>>();
            for place in 0..Shape::<K, V>::SLOTS {
                (&raw mut (*slots.add(place).as_ptr()).state).write(SlotState::new(1));
            }
            let magazines = chunk.add(Shape::<K, V>::MAGAZINES_AT).cast::<Magazine>();
            for i in 0..Shape::<K, V>::MAGAZINES {
                Magazine::make(magazines.add(i), first + i * MAGAZINE);
            }
            let entries = self.directory.load(Ordering::Relaxed);
            (*entries.add(number)).store(chunk.as_ptr(), Ordering::Relaxed);
        }
        self.count.store(number + 1, Ordering::Release);
        for i in (0..Shape::<K, V>::MAGAZINES).rev() {
            self.push(own.own_stack(Kind::Full), (number * Shape::<K, V>::MAGAZINES + i) as u32);
        }
        Some(())
    }

    pub(super) fn add_to(&self, s: &mut Statistics) {
        let _alone = self.lock.lock();
        // SAFETY: the lock is held.
        let growing = unsafe { &*self.growing.get() };
        s.bytes_taken += growing.growth.taken();
        s.chunks += self.count.load(Ordering::Relaxed) + growing.pending_count;
        s.growths += growing.growth.steps();
        s.bytes_idle += self.count.load(Ordering::Relaxed) * Shape::<K, V>::SLOTS * size_of::<V>();
    }
}

impl<S: Source> Growing<S> {
    fn take_aside(&mut self, wanted: Layout) -> Option<Chunk> {
        if wanted.size() > self.growth.left() {
            return None;
        }
        let taken = self.source.try_take(wanted)?;
        self.growth.took_aside(taken.layout.size());
        Some(taken)
    }

    fn take_chunk(&mut self, chunk: Layout) -> Option<NonNull<u8>> {
        if self.pending_count == 0 {
            let whole = |bytes| bytes & !(chunk.align() - 1);
            let taken = self.growth.take(&self.source, chunk, chunk.size(), whole)?;
            let run = taken.data.cast::<Run>();
            // SAFETY: a chunk begins with room for it.
            unsafe { run.write(Run { next: self.runs, layout: taken.layout }) };
            self.runs = Some(run);
            self.pending = taken.data.as_ptr();
            self.pending_count = taken.layout.size() / chunk.size();
        }
        let taken = self.pending;
        self.pending = taken.wrapping_add(chunk.size());
        self.pending_count -= 1;
        NonNull::new(taken)
    }

    /// A directory for twice as many chunks, with the same entries.
    fn make_room(&mut self) -> Option<*mut AtomicPtr<u8>> {
        let room = (2 * self.room).max(8);
        let bytes = room.checked_mul(size_of::<usize>())?.checked_add(size_of::<Directory>())?;
        let taken = self.take_aside(layout(bytes, align_of::<Directory>())?)?;
        let directory = taken.data.cast::<Directory>();
        // SAFETY: it was just taken, and has so many entries; the one before has half as many.
        unsafe {
            directory.write(Directory { before: self.directory, layout: taken.layout });
            let entries = directory.add(1).cast::<AtomicPtr<u8>>();
            for i in 0..room {
                let entry = match self.directory {
                    Some(before) if i < self.room => {
                        (*before.add(1).cast::<AtomicPtr<u8>>().add(i).as_ptr())
                            .load(Ordering::Relaxed)
                    }
                    _ => ptr::null_mut(),
                };
                entries.add(i).write(AtomicPtr::new(entry));
            }
            self.directory = Some(directory);
            self.room = room;
            Some(entries.as_ptr())
        }
    }
}

impl<K: Key, V, S: Source> Drop for Memory<K, V, S> {
    fn drop(&mut self) {
        let growing = self.growing.get_mut();
        let give = |data, layout| {
            // SAFETY: as it was taken; each is in one list, and nobody uses it any more.
            unsafe { growing.source.give(Chunk { data, layout }) };
        };
        while let Some(run) = growing.runs {
            // SAFETY: it is in the list.
            let Run { next, layout } = unsafe { run.read() };
            growing.runs = next;
            give(run.cast(), layout);
        }
        while let Some(directory) = growing.directory {
            // SAFETY: it is in the list.
            let Directory { before, layout } = unsafe { directory.read() };
            growing.directory = before;
            give(directory.cast(), layout);
        }
        for front in &mut self.fronts {
            if let Some(front) = NonNull::new(*front.get_mut()) {
                give(front.cast(), Layout::new::<Front>());
            }
        }
    }
}

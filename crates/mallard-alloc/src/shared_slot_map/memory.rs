//! The memory of a shared slot map. This file adds chunks, and lets threads exchange free slots.

use super::slot::SlotState;
use super::thread_cache::{Magazine, MagazineKind, ThreadCache, MAGAZINE};
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

/// A slot. `state` determines whether `value` is initialised. The size is a multiple of 8 bytes.
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

/// The layout of a chunk: the header of a growth step, the slots, and one magazine (an array of the
/// indices of free slots) for each 64 slots.
struct ChunkLayout<K, V>(PhantomData<(K, V)>);

const CHUNK_BYTES: usize = 1 << 14;

impl<K: Key, V> ChunkLayout<K, V> {
    const VALID: () = assert!(
        K::INDEX_BITS >= 12 && K::GENERATION_BITS <= 32,
        "a key of a shared slot map needs at least 12 bits for the index, since threads reserve \
         the chunk, and 32 for the generation or fewer"
    );
    /// The number of slots in a chunk, which is a power of two.
    const SLOTS: usize = {
        let wanted = CHUNK_BYTES / size_of::<Slot<V>>();
        if wanted <= MAGAZINE {
            MAGAZINE
        } else {
            1 << wanted.ilog2()
        }
    };
    const MAGAZINES: usize = Self::SLOTS / MAGAZINE;
    const SLOTS_AT: usize = align_up(align_up(size_of::<StepHeader>(), 64), align_of::<Slot<V>>());
    const MAGAZINES_AT: usize =
        align_up(Self::SLOTS_AT + Self::SLOTS * size_of::<Slot<V>>(), align_of::<Magazine>());
    const ALIGN: usize = if align_of::<Slot<V>>() < 128 { 128 } else { align_of::<Slot<V>>() };
    const BYTES: usize =
        align_up(Self::MAGAZINES_AT + Self::MAGAZINES * size_of::<Magazine>(), Self::ALIGN);
    /// The largest number of chunks. Slot numbers have at most 31 bits.
    const CHUNKS_MAX: usize = {
        let slots = Words::<K>::SLOTS_MAX;
        (if slots < 1 << 31 { slots } else { 1 << 31 }) / Self::SLOTS
    };
}

/// The header of a growth step, in memory before the slots of its first chunk.
struct StepHeader {
    next: Option<NonNull<StepHeader>>,
    layout: Layout,
}

/// The header of a directory, in memory before its entries.
struct Directory {
    before: Option<NonNull<Directory>>,
    layout: Layout,
}

/// The state that a thread changes only while it holds the lock.
struct Growing<S> {
    growth: GrowthState,
    source: S,
    runs: Option<NonNull<StepHeader>>,
    pending: *mut u8,
    pending_count: usize,
    /// The directory in use. Its header links to the older directories, which other threads may
    /// still read.
    directory: Option<NonNull<Directory>>,
    room: usize,
}

pub(super) struct Memory<K: Key, V, S: Source> {
    /// The number of chunks, all of which are in the directory.
    count: AtomicUsize,
    directory: AtomicPtr<AtomicPtr<u8>>,
    /// The caches, indexed by thread number. Threads without a number share the first cache and the
    /// caches after the last thread number. Each shared cache has a lock.
    caches: [AtomicPtr<ThreadCache>; NUMBERS + SHARES - 1],
    /// The lock that a thread holds while it adds memory. With `std`, waiting threads sleep.
    lock: Locked<()>,
    /// The locks of the shared caches. A thread locks one of them before it locks `lock`.
    shared: [Locked<()>; SHARES],
    growing: UnsafeCell<Growing<S>>,
    /// Makes the map invariant in `V`: values are stored through `&self`, so a map of `V` must not become
    /// a map of a type with a shorter lifetime.
    marker: PhantomData<(K, UnsafeCell<V>)>,
}

/// The lowest number of a magazine that is stored in a cache. Magazines with smaller numbers are in
/// chunks.
const IN_CACHES: u32 = 1 << 31;

/// Defines a function that is `const`, except in loom models, because loom's atomics have no
/// constant constructor.
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
        let () = ChunkLayout::<K, V>::VALID;
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
            caches: [const { AtomicPtr::new(ptr::null_mut()) }; NUMBERS + SHARES - 1],
            lock: Locked::new(()),
            shared: [const { Locked::new(()) }; SHARES],
            growing: UnsafeCell::new(growing),
            marker: PhantomData,
        }
    }
    }

    pub(super) fn layout() -> Option<Layout> {
        layout(ChunkLayout::<K, V>::BYTES, ChunkLayout::<K, V>::ALIGN)
    }
    pub(super) fn is_at_limit(&self) -> bool {
        self.count.load(Ordering::Relaxed) == ChunkLayout::<K, V>::CHUNKS_MAX
    }

    #[inline(always)]
    fn chunk(&self, number: usize) -> Option<NonNull<u8>> {
        // With `Acquire`, a thread that sees the count also sees the directory, and the chunk in
        // it.
        if number >= self.count.load(Ordering::Acquire) {
            return None;
        }
        let entries = self.directory.load(Ordering::Acquire);
        // SAFETY: a directory has at least as many entries as there were chunks when it was published.
        NonNull::new(unsafe { (*entries.add(number)).load(Ordering::Relaxed) })
    }

    /// Returns the slot with this index, if there is memory for it.
    #[inline(always)]
    pub(super) fn slot(&self, index: usize) -> Option<&Slot<V>> {
        let chunk = self.chunk(index / ChunkLayout::<K, V>::SLOTS)?;
        let place = index % ChunkLayout::<K, V>::SLOTS;
        // SAFETY: the offset is below the number of slots in a chunk, and the chunk exists until
        // the map is dropped.
        Some(unsafe {
            chunk.add(ChunkLayout::<K, V>::SLOTS_AT).cast::<Slot<V>>().add(place).as_ref()
        })
    }
    /// Iterates over all slots, including free ones and slot 0.
    pub(super) fn slots(&self) -> impl Iterator<Item = (usize, &Slot<V>)> {
        let end = self.count.load(Ordering::Acquire) * ChunkLayout::<K, V>::SLOTS;
        (0..end).filter_map(|index| Some((index, self.slot(index)?)))
    }

    /// Returns the magazine with this number.
    pub(super) fn magazine(&self, number: u32) -> NonNull<Magazine> {
        if number >= IN_CACHES {
            let i = (number - IN_CACHES) as usize;
            let cache = self.caches[i / 2].load(Ordering::Acquire);
            // SAFETY: a thread makes the cache before it passes on the number of a magazine in the
            // cache.
            return unsafe { ThreadCache::magazine(NonNull::new_unchecked(cache), i % 2) };
        }
        let number = number as usize;
        // SAFETY: a thread makes the chunk before it passes on the number of a magazine in the
        // chunk.
        unsafe {
            let chunk = self.chunk(number / ChunkLayout::<K, V>::MAGAZINES).unwrap_unchecked();
            let first = chunk.add(ChunkLayout::<K, V>::MAGAZINES_AT).cast::<Magazine>();
            first.add(number % ChunkLayout::<K, V>::MAGAZINES)
        }
    }

    /// Returns the cache with this number, or null.
    #[inline(always)]
    pub(super) fn cache(&self, number: usize) -> *mut ThreadCache {
        self.caches[number].load(Ordering::Acquire)
    }
    /// Returns the number of elements that this thread can see, which is the number of inserted
    /// elements minus the number of removed and dropped elements.
    pub(super) fn live(&self) -> usize {
        // SAFETY: a cache exists until the map is dropped.
        let live: isize = self.caches().map(|cache| unsafe { ThreadCache::live(cache) }).sum();
        live.max(0) as usize // the counters are not read at the same moment
    }
    fn caches(&self) -> impl Iterator<Item = NonNull<ThreadCache>> + '_ {
        self.caches.iter().filter_map(|cache| NonNull::new(cache.load(Ordering::Acquire)))
    }
    pub(super) fn shared_lock(&self, share: usize) -> &Locked<()> {
        &self.shared[share]
    }
    /// Returns the index of a shared cache among all caches.
    pub(super) const fn shared_number(share: usize) -> usize {
        match share {
            0 => 0,
            share => NUMBERS - 1 + share,
        }
    }

    /// Returns the cache with this number. Makes the cache if it does not exist.
    #[cold]
    pub(super) fn make_cache(&self, number: usize) -> Option<NonNull<ThreadCache>> {
        if let Some(cache) = NonNull::new(self.cache(number)) {
            return Some(cache);
        }
        let _alone = self.lock.lock();
        if let Some(cache) = NonNull::new(self.cache(number)) {
            return Some(cache); // another thread has just made this shared cache
        }
        // SAFETY: this thread holds the lock.
        let growing = unsafe { &mut *self.growing.get() };
        let cache = growing.take_aside(Layout::new::<ThreadCache>())?.data.cast::<ThreadCache>();
        // SAFETY: the source has just supplied the memory, with the layout of a cache.
        unsafe { ThreadCache::make(cache, IN_CACHES + 2 * number as u32) };
        self.caches[number].store(cache.as_ptr(), Ordering::Release);
        Some(cache)
    }

    /// Removes a full magazine from a stack and returns its number. Adds a chunk if no stack has a
    /// full magazine.
    #[cold]
    pub(super) fn take_full(&self, own: &ThreadCache) -> Option<u32> {
        loop {
            if let Some(number) = self.find(own, MagazineKind::Full) {
                return Some(number);
            }
            let _alone = self.lock.lock();
            if let Some(number) = self.find(own, MagazineKind::Full) {
                return Some(number); // another thread has just added a chunk
            }
            // SAFETY: this thread holds the lock.
            self.add_chunk(own, unsafe { &mut *self.growing.get() })?;
        }
    }
    /// Removes an empty magazine from a stack, for a cache that has just pushed a full magazine.
    /// Some stack always has an empty magazine. If a thread finds none, other threads removed
    /// magazines during the search, so the thread searches again.
    pub(super) fn take_empty(&self, own: &ThreadCache) -> u32 {
        loop {
            match self.find(own, MagazineKind::Empty) {
                Some(number) => return number,
                None => pause(),
            }
        }
    }
    /// Removes a magazine from a stack. The calling thread's own stack is searched first, so that
    /// slots stay with the thread that used them last.
    fn find(&self, own: &ThreadCache, kind: MagazineKind) -> Option<u32> {
        // SAFETY: a cache exists until the map is dropped.
        let all = self.caches().map(|cache| unsafe { ThreadCache::stack(cache, kind) });
        pop_any(own.own_stack(kind), all, |number| self.link(number))
    }
    fn link(&self, number: u32) -> &AtomicU32 {
        // SAFETY: a magazine exists until the map is dropped.
        unsafe { &(*self.magazine(number).as_ptr()).link }
    }
    pub(super) fn push(&self, stack: &TaggedStack, number: u32) {
        stack.push(number, self.link(number));
    }

    /// Adds a chunk whose slots are all free.
    fn add_chunk(&self, own: &ThreadCache, growing: &mut Growing<S>) -> Option<()> {
        let number = self.count.load(Ordering::Relaxed);
        if number == ChunkLayout::<K, V>::CHUNKS_MAX {
            return None;
        }
        if number == growing.room {
            let entries = growing.make_room()?;
            self.directory.store(entries, Ordering::Release);
        }
        let chunk = growing.take_chunk(Self::layout()?)?;
        let first = number * ChunkLayout::<K, V>::SLOTS;
        // SAFETY: the source has just supplied the chunk, which is large enough for all these
        // parts. The directory has a free entry.
        unsafe {
            let slots = chunk.add(ChunkLayout::<K, V>::SLOTS_AT).cast::<Slot<V>>();
            for place in 0..ChunkLayout::<K, V>::SLOTS {
                (&raw mut (*slots.add(place).as_ptr()).state).write(SlotState::new(1));
            }
            let magazines = chunk.add(ChunkLayout::<K, V>::MAGAZINES_AT).cast::<Magazine>();
            for i in 0..ChunkLayout::<K, V>::MAGAZINES {
                Magazine::make(magazines.add(i), first + i * MAGAZINE);
            }
            let entries = self.directory.load(Ordering::Relaxed);
            (*entries.add(number)).store(chunk.as_ptr(), Ordering::Relaxed);
        }
        self.count.store(number + 1, Ordering::Release);
        for i in (0..ChunkLayout::<K, V>::MAGAZINES).rev() {
            self.push(
                own.own_stack(MagazineKind::Full),
                (number * ChunkLayout::<K, V>::MAGAZINES + i) as u32,
            );
        }
        Some(())
    }

    pub(super) fn add_to(&self, s: &mut Statistics) {
        let _alone = self.lock.lock();
        // SAFETY: this thread holds the lock.
        let growing = unsafe { &*self.growing.get() };
        s.bytes_taken += growing.growth.taken();
        s.chunks += self.count.load(Ordering::Relaxed) + growing.pending_count;
        s.growths += growing.growth.steps();
        s.bytes_idle +=
            self.count.load(Ordering::Relaxed) * ChunkLayout::<K, V>::SLOTS * size_of::<V>();
    }
}

impl<S: Source> Growing<S> {
    fn take_aside(&mut self, wanted: Layout) -> Option<Chunk> {
        self.growth.take_aside(&self.source, wanted)
    }

    fn take_chunk(&mut self, chunk: Layout) -> Option<NonNull<u8>> {
        if self.pending_count == 0 {
            let whole = |bytes| bytes & !(chunk.align() - 1);
            let taken = self.growth.take(&self.source, chunk, chunk.size(), whole)?;
            let run = taken.data.cast::<StepHeader>();
            // SAFETY: a chunk begins with space for the header.
            unsafe { run.write(StepHeader { next: self.runs, layout: taken.layout }) };
            self.runs = Some(run);
            self.pending = taken.data.as_ptr();
            self.pending_count = taken.layout.size() / chunk.size();
        }
        let taken = self.pending;
        self.pending = taken.wrapping_add(chunk.size());
        self.pending_count -= 1;
        NonNull::new(taken)
    }

    /// Makes a directory for twice as many chunks, and copies the entries.
    fn make_room(&mut self) -> Option<*mut AtomicPtr<u8>> {
        let room = (2 * self.room).max(8);
        let bytes = room.checked_mul(size_of::<usize>())?.checked_add(size_of::<Directory>())?;
        let taken = self.take_aside(layout(bytes, align_of::<Directory>())?)?;
        let directory = taken.data.cast::<Directory>();
        // SAFETY: the source has just supplied the memory for the entries of the new directory. The
        // old directory has half as many entries.
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
            // SAFETY: the memory is returned once, as the source supplied it, and nothing uses the
            // memory any more.
            unsafe { growing.source.give(Chunk { data, layout }) };
        };
        while let Some(run) = growing.runs {
            // SAFETY: a growth step in the list has a header.
            let StepHeader { next, layout } = unsafe { run.read() };
            growing.runs = next;
            give(run.cast(), layout);
        }
        while let Some(directory) = growing.directory {
            // SAFETY: a directory in the list has a header.
            let Directory { before, layout } = unsafe { directory.read() };
            growing.directory = before;
            give(directory.cast(), layout);
        }
        for cache in &mut self.caches {
            if let Some(cache) = NonNull::new(*cache.get_mut()) {
                give(cache.cast(), Layout::new::<ThreadCache>());
            }
        }
    }
}

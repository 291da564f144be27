//! A slot map that several threads share.

mod access;
mod free_slots;
mod guard;
mod memory;
mod slot;
mod thread_cache;

pub use access::{Access, Copied, Guarded, Plain};
pub use guard::Guard;

use crate::base::bits::out_of_memory;
use crate::base::full::{Cause, Full};
use crate::base::growth::Growth;
use crate::base::source::{DefaultHeap, Source};
use crate::base::statistics::Statistics;
use crate::slot_map::key::{Bits, Key, Words};
use core::alloc::Layout;
use core::fmt;
use core::marker::PhantomData;
use core::panic::RefUnwindSafe;
use core::sync::atomic::{AtomicUsize, Ordering};
use free_slots::CurrentCache;
use memory::{const_but_for_models, Memory, Slot};
use slot::Removal;

/// A [`SlotMap`](crate::SlotMap) that any thread may use at any time, through a shared reference.
///
/// ```
/// use mallard::{Key64, SharedSlotMap};
/// static SESSIONS: SharedSlotMap<Key64, String> = SharedSlotMap::new();
/// let id = SESSIONS.insert("Ada".into());
/// let held = SESSIONS.get(id).unwrap(); // a guard keeps the session alive
/// std::thread::scope(|scope| {
///     scope.spawn(|| assert!(SESSIONS.remove(id)));
/// });
/// assert_eq!(*held, "Ada");
/// assert!(SESSIONS.get(id).is_none()); // stale at once; the session is dropped with its last guard
/// ```
///
/// **Access.** Three functions read an element, and never wait for another thread:
/// - [`get`](Self::get) returns a guard, and costs two atomic read-modify-writes.
/// - [`with`](Self::with) calls a function under a guard.
/// - [`read`](Self::read) returns a copy, without an atomic read-modify-write, in a map whose
///   access is [`Copied`].
///
/// **Elements.** Elements do not move. Guards are shared references, so an element that several
/// threads write must use atomics or contain a lock. The thread that drops the last guard of a
/// removed element drops the element. Your destructors and functions may use the map, because the
/// map holds no lock while they run.
///
/// **Scaling.** Each thread has a cache of up to 128 free slots, and exchanges 64 slots at a time.
/// A thread first uses slots that it has freed itself, then slots that other threads have freed,
/// and then new slots. So inserts and removals access cache lines of other threads only when slots
/// move between threads. From the 64th thread on, threads share eight caches, each of which has a
/// lock. Threads that wait for such a lock sleep. Without the feature `std`, all threads share one
/// cache, and waiting threads spin.
///
/// **Memory.** The size of an element is rounded up to a multiple of 8, and each element needs 12
/// bytes more. The map keeps its memory until it is dropped. A slot retires when its generations
/// are used up.
///
/// **Errors.** When no memory is left, `insert` aborts. When no slot is left, `insert` panics.
/// `try_insert` returns the value in both cases.
///
/// A key needs at least 12 bits for the index and at most 32 bits for the generation. The
/// constructors of the map check both numbers.
///
/// A guard does not outlive the map:
/// ```compile_fail
/// let map: mallard::SharedSlotMap<mallard::Key64, u8> = mallard::SharedSlotMap::new();
/// let guard = map.get(map.insert(1));
/// drop(map);
/// drop(guard);
/// ```
/// A map cannot be used as a map of values with a shorter lifetime, because other threads could
/// read these values through a map with the longer lifetime:
/// ```compile_fail
/// use mallard::{Key64, SharedSlotMap};
/// fn shortened<'a>(
///     map: &'a SharedSlotMap<Key64, &'static str>,
/// ) -> &'a SharedSlotMap<Key64, &'a str> {
///     map
/// }
/// ```
/// A map of values that are not `Send` and `Sync` stays in its thread:
/// ```compile_fail
/// let map: mallard::SharedSlotMap<mallard::Key64, std::cell::Cell<u8>> = mallard::SharedSlotMap::new();
/// std::thread::scope(|scope| { scope.spawn(|| map.insert(std::cell::Cell::new(1))); });
/// ```
pub struct SharedSlotMap<K: Key, V, A: Access<V> = Guarded, S: Source = DefaultHeap> {
    memory: Memory<K, V, S>,
    retired: AtomicUsize,
    access: PhantomData<A>,
}

// SAFETY: the map may be dropped, with its elements, in another thread than the one that made them,
// so `V` is `Send`.
unsafe impl<K: Key, V: Send, A: Access<V>, S: Source + Send> Send for SharedSlotMap<K, V, A, S> {}
// SAFETY: elements move to other threads, and threads share them, so `V` is `Send` and `Sync`. The
// source is used under a lock.
unsafe impl<K: Key, V: Send + Sync, A: Access<V>, S: Source + Send> Sync
    for SharedSlotMap<K, V, A, S>
{
}

// A map is unwind safe, because a panic in a function of the program leaves the map as if the
// function had returned.
impl<K: Key, V: RefUnwindSafe, A: Access<V>, S: Source> RefUnwindSafe
    for SharedSlotMap<K, V, A, S>
{
}

#[cfg(feature = "alloc")]
impl<K: Key, V, A: Access<V>> SharedSlotMap<K, V, A> {
    const_but_for_models! {
        /// Makes an empty map, without allocating.
        pub fn new() -> Self {
            Self::new_in(DefaultHeap)
        }
    }
    const_but_for_models! {
        /// Makes an empty map that grows by the rule `growth`, by at least one chunk in each step.
        /// The limit applies to all memory of the map.
        pub fn with_growth(growth: Growth) -> Self {
            Self::with_growth_in(growth, DefaultHeap)
        }
    }
}

impl<K: Key, V, A: Access<V>, S: Source> SharedSlotMap<K, V, A, S> {
    const_but_for_models! {
        /// Makes an empty map whose memory comes from `source`, without allocating.
        pub fn new_in(source: S) -> Self {
            Self::with_growth_in(Growth::fixed(1), source)
        }
    }
    const_but_for_models! {
        /// Makes an empty map with a growth rule (see [`with_growth`](SharedSlotMap::with_growth))
        /// and a source.
        pub fn with_growth_in(growth: Growth, source: S) -> Self {
            let memory = Memory::new(growth, source);
            Self { memory, retired: AtomicUsize::new(0), access: PhantomData }
        }
    }

    /// Returns the number of elements, including removed elements that still have guards. The
    /// number is approximate while other threads insert and remove.
    pub fn len(&self) -> usize {
        self.memory.live()
    }
    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Returns the number of slots that have used up their generations.
    pub fn retired(&self) -> usize {
        self.retired.load(Ordering::Relaxed)
    }

    /// Stores a value and returns its key. Aborts if no memory is left, and panics if no slot is
    /// left.
    #[inline]
    pub fn insert(&self, value: V) -> K {
        match self.memory.take_slot() {
            Some(index) => self.place(index, value),
            None => self.refuse(),
        }
    }
    /// Stores a value and returns its key. When no memory or no slot is left, returns the value in
    /// the error.
    #[inline]
    pub fn try_insert(&self, value: V) -> Result<K, Full<V>> {
        match self.memory.take_slot() {
            Some(index) => Ok(self.place(index, value)),
            None if self.memory.is_at_limit() => Err(Full::because(Cause::NoSlot, value)),
            None => Err(Full::no_memory(value)),
        }
    }
    /// Stores the result of `make(key)`, for elements that contain their own key. Until `make`
    /// returns, the key finds no element. If `make` panics, another element receives the key.
    pub fn insert_with_key(&self, make: impl FnOnce(K) -> V) -> K {
        struct GiveBack<'a, K: Key, V, S: Source>(&'a Memory<K, V, S>, usize);
        impl<K: Key, V, S: Source> Drop for GiveBack<'_, K, V, S> {
            fn drop(&mut self) {
                self.0.give_slot(self.0.current_cache(), self.1, false);
            }
        }
        let Some(index) = self.memory.take_slot() else { self.refuse() };
        let unless_made = GiveBack(&self.memory, index);
        let value = make(Self::key(index, self.slot(index).state.generation()));
        core::mem::forget(unless_made);
        self.place(index, value)
    }

    #[inline(always)]
    fn key(index: usize, generation: u64) -> K {
        Words::<K>::known(Words::<K>::key(index, generation))
    }
    /// Returns the slot of an index that this map has allocated.
    #[inline(always)]
    fn slot(&self, index: usize) -> &Slot<V> {
        // SAFETY: the index was allocated, so its chunk exists.
        unsafe { self.memory.slot(index).unwrap_unchecked() }
    }

    #[inline(always)]
    fn place(&self, index: usize, value: V) -> K {
        let slot = self.slot(index);
        // SAFETY: the caller owns the slot, which has no value.
        unsafe { A::write(slot.value(), value) };
        Self::key(index, slot.state.begin())
    }

    #[cold]
    #[inline(never)]
    fn refuse(&self) -> ! {
        assert!(
            !self.memory.is_at_limit(),
            "mallard: every slot within the key's index range is in use, retired or \
             reserved by another thread\n  this call changed nothing\n  \
             help: use a key type with more bits for the index"
        );
        out_of_memory(Memory::<K, V, S>::layout().unwrap_or(Layout::new::<V>()))
    }

    /// Returns the slot that a key addresses, if the map has memory for the slot.
    #[inline(always)]
    fn find(&self, key: K) -> Option<&Slot<V>> {
        let bits = key.to_bits().to_u64();
        if bits > Words::<K>::VALUE_MAX {
            return None; // the compiler drops this test for keys of 32 or 64 bits
        }
        self.memory.slot(key.index())
    }

    /// Returns whether the key has an element at this moment. Another thread may remove the element
    /// at any time.
    #[inline]
    pub fn contains_key(&self, key: K) -> bool {
        self.find(key).is_some_and(|slot| slot.state.is(key.generation()))
    }
    /// Returns a guard of the element of a key. The guard keeps the element alive. Returns `None`
    /// if the key has no element.
    #[inline]
    pub fn get(&self, key: K) -> Option<Guard<'_, K, V, A, S>> {
        let slot = self.find(key)?;
        // SAFETY: `try_hold` has just counted a guard for the element.
        slot.state.try_hold(key.generation()).then(|| unsafe { Guard::new(self, slot, key) })
    }
    /// Calls `f` with the element of a key under a guard, and returns the result. Returns `None` if
    /// the key has no element.
    #[inline]
    pub fn with<R>(&self, key: K, f: impl FnOnce(&V) -> R) -> Option<R> {
        let guard = self.get(key)?;
        Some(f(&guard))
    }
    /// Returns a mutable reference to the element of a key. Needs exclusive access to the map.
    #[inline]
    pub fn get_mut(&mut self, key: K) -> Option<&mut V> {
        let slot = self.find(key)?;
        // SAFETY: the element is live, and there are no guards, because a guard borrows the map.
        slot.state.is(key.generation()).then(|| unsafe { &mut *slot.value() })
    }

    /// Removes an element, so that its key becomes stale. Returns `false` if the key has no
    /// element. If several threads remove the same element, exactly one call returns `true`.
    #[inline]
    pub fn remove(&self, key: K) -> bool {
        let Some(slot) = self.find(key) else { return false };
        let cache = self.memory.current_cache();
        match slot.state.try_remove(key.generation()) {
            Removal::Failed => false,
            Removal::LeftToGuards => true,
            Removal::Alone => {
                // SAFETY: this thread owns the slot, which has a value.
                unsafe { self.finish(slot, key, cache) };
                true
            }
        }
    }
    /// Removes an element and returns it. Returns `None`, and changes nothing, if the key has no
    /// element or the element has a guard.
    #[inline]
    pub fn take(&self, key: K) -> Option<V> {
        let slot = self.find(key)?;
        let cache = self.memory.current_cache();
        if !slot.state.try_take(key.generation()) {
            return None;
        }
        // SAFETY: this thread owns the slot, which has a value.
        let value = unsafe { slot.value().read() };
        self.recycle(slot, key, cache);
        Some(value)
    }

    /// Drops the value of a slot, and frees the slot.
    ///
    /// # Safety
    /// The caller owns the slot, which has a value.
    #[inline(always)]
    unsafe fn finish(&self, slot: &Slot<V>, key: K, cache: CurrentCache) {
        struct Recycle<F: FnMut()>(F);
        impl<F: FnMut()> Drop for Recycle<F> {
            #[inline(always)]
            fn drop(&mut self) {
                (self.0)();
            }
        }
        let _even_if_it_panics = Recycle(|| self.recycle(slot, key, cache));
        // SAFETY: the caller guarantees that it owns the slot, and that the slot has a value.
        unsafe { slot.value().drop_in_place() };
    }

    /// Frees a slot that the caller owns and that has no value any more.
    #[inline(always)]
    fn recycle(&self, slot: &Slot<V>, key: K, cache: CurrentCache) {
        let mut next = key.generation() + 1;
        let mut retired = false;
        if next > Words::<K>::GENERATION_MAX {
            next = if K::WRAPPING { 1 } else { next - 1 };
            retired = !K::WRAPPING;
            self.retired.fetch_add(retired as usize, Ordering::Relaxed);
        }
        slot.state.renew(next);
        // The next thread that allocates the slot sees all writes above.
        self.memory.give_slot(cache, key.index(), retired);
    }

    /// Calls `f(key, element)` under a guard for each element. Elements that other threads insert
    /// or remove during the call may or may not be visited. `f` may insert and remove. O(slots with
    /// memory).
    pub fn for_each(&self, mut f: impl FnMut(K, &V)) {
        for (index, slot) in self.memory.slots() {
            if index != 0 && slot.state.is_live() {
                let key = Self::key(index, slot.state.generation());
                if let Some(guard) = self.get(key) {
                    f(key, &guard);
                }
            }
        }
    }
    /// Removes all elements that are in the map when this function is called.
    pub fn clear(&self) {
        self.for_each(|key, _| {
            self.remove(key);
        });
    }

    /// Returns the statistics. Elements count as blocks.
    pub fn statistics(&self) -> Statistics {
        let mut s = Statistics { blocks_live: self.len(), ..Statistics::default() };
        self.memory.add_to(&mut s);
        s.bytes_live = s.blocks_live * size_of::<V>();
        s.bytes_idle = s.bytes_idle.saturating_sub(s.bytes_live);
        s
    }
}

impl<K: Key, V: Plain, S: Source> SharedSlotMap<K, V, Copied, S> {
    /// Returns a copy of an element, without a guard or an atomic read-modify-write. Returns `None`
    /// if the key has no element.
    ///
    /// ```
    /// use mallard::{shared_slot_map::Copied, Key64, SharedSlotMap};
    /// let places = SharedSlotMap::<Key64, [f32; 2], Copied>::new();
    /// let key = places.insert([3.0, 4.0]);
    /// assert_eq!(places.read(key), Some([3.0, 4.0]));
    /// assert!(places.remove(key) && places.read(key).is_none());
    /// ```
    #[inline]
    pub fn read(&self, key: K) -> Option<V> {
        let slot = self.find(key)?;
        // SAFETY: the words of a slot that ever had an element are initialised.
        let copy = slot.state.read(key.generation(), || unsafe { access::load(slot.value()) })?;
        // SAFETY: the state did not change during the copy, so all words belong to one element.
        Some(unsafe { copy.assume_init() })
    }
}

impl<K: Key, V, A: Access<V>, S: Source> Drop for SharedSlotMap<K, V, A, S> {
    fn drop(&mut self) {
        struct Rest<I: Iterator>(I, fn(I::Item));
        impl<I: Iterator> Rest<I> {
            fn end(&mut self) {
                self.0.by_ref().for_each(self.1);
            }
        }
        impl<I: Iterator> Drop for Rest<I> {
            fn drop(&mut self) {
                self.end(); // drops the elements after an element whose destructor panicked
            }
        }
        if core::mem::needs_drop::<V>() {
            // SAFETY: nothing else uses the map. A leaked guard does not keep its element alive
            // after the map is dropped.
            let end = |slot: &Slot<V>| unsafe { slot.value().drop_in_place() };
            let slots = self.memory.slots().map(|(_, slot)| slot);
            Rest(slots.filter(|slot| slot.state.has_value()), end).end();
        }
    }
}

#[cfg(feature = "alloc")]
impl<K: Key, V, A: Access<V>> Default for SharedSlotMap<K, V, A> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Key, V: fmt::Debug, A: Access<V>, S: Source> fmt::Debug for SharedSlotMap<K, V, A, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        self.for_each(|key, value| {
            map.entry(&key, value);
        });
        map.finish()
    }
}

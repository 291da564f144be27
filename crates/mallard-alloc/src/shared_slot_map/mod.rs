//! A slot map for several threads.

mod access;
mod front;
mod guard;
mod memory;
mod slot;

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
use front::Here;
use memory::{const_but_for_models, Memory, Slot};
use slot::Removal;

/// A [`SlotMap`](crate::SlotMap) that any thread may use at any time, by a shared reference.
///
/// ```
/// use mallard::{Key64, SharedSlotMap};
/// static SESSIONS: SharedSlotMap<Key64, String> = SharedSlotMap::new();
/// let id = SESSIONS.insert("Ada".into());
/// let held = SESSIONS.get(id).unwrap(); // a guard: the session stays while it lives
/// std::thread::scope(|scope| {
///     scope.spawn(|| assert!(SESSIONS.remove(id)));
/// });
/// assert_eq!(*held, "Ada");
/// assert!(SESSIONS.get(id).is_none()); // stale at once; it ends with its last guard
/// ```
///
/// Three ways to an element, none of which waits for another thread:
/// - [`get`](Self::get) gives a guard: two locked operations.
/// - [`with`](Self::with) calls a function under one.
/// - [`read`](Self::read) gives a copy, in a map whose access is [`Copied`]: no locked operation.
///
/// Elements stay where they are. Guards give shared references: what several threads write is an
/// atomic or under a lock in the element itself. A removed element is dropped by the thread that
/// ends its last guard; no lock is held while destructors and functions of the program run, and they may
/// use the map.
///
/// Each thread has up to 128 free slots to itself, and gives and takes 64 at a time: first those
/// that it gave itself, then those that others gave, and then new ones. So inserts and removals
/// touch what other threads write where slots go from one to the other, and only then. (Threads
/// beyond the 63rd that live at a time share eight such stocks, each under a lock whose waiters
/// sleep. Without the feature `std` all threads share one stock, and spin.) Each element costs 12 bytes beside its own, which are rounded up to 8. Memory is
/// kept until the end of the map. A slot retires when its generations are used up.
///
/// `insert` ends the program where memory is refused, and panics when no slot is left; `try_insert`
/// gives the value back. Keys have 12 bits for the index or more, and 32 for the generation or
/// fewer, which is checked when a map is made.
///
/// A guard does not outlive the map:
/// ```compile_fail
/// let map: mallard::SharedSlotMap<mallard::Key64, u8> = mallard::SharedSlotMap::new();
/// let guard = map.get(map.insert(1));
/// drop(map);
/// drop(guard);
/// ```
/// A map of values with one lifetime is not a map of values with a shorter one, whose elements the
/// longer map would then read:
/// ```compile_fail
/// use mallard::{Key64, SharedSlotMap};
/// fn shortened<'a>(
///     map: &'a SharedSlotMap<Key64, &'static str>,
/// ) -> &'a SharedSlotMap<Key64, &'a str> {
///     map
/// }
/// ```
/// A map of values that are not `Send` and `Sync` stays with its thread:
/// ```compile_fail
/// let map: mallard::SharedSlotMap<mallard::Key64, std::cell::Cell<u8>> = mallard::SharedSlotMap::new();
/// std::thread::scope(|scope| { scope.spawn(|| map.insert(std::cell::Cell::new(1))); });
/// ```
pub struct SharedSlotMap<K: Key, V, A: Access<V> = Guarded, S: Source = DefaultHeap> {
    memory: Memory<K, V, S>,
    retired: AtomicUsize,
    access: PhantomData<A>,
}

// SAFETY: a thread that ends an element may be another than the one that began it.
unsafe impl<K: Key, V: Send, A: Access<V>, S: Source + Send> Send for SharedSlotMap<K, V, A, S> {}
// SAFETY: elements go to other threads, and several look at one at a time. The source is used under a
// lock.
unsafe impl<K: Key, V: Send + Sync, A: Access<V>, S: Source + Send> Sync
    for SharedSlotMap<K, V, A, S>
{
}

// After a panic of the program's functions it is as if those had returned.
impl<K: Key, V: RefUnwindSafe, A: Access<V>, S: Source> RefUnwindSafe
    for SharedSlotMap<K, V, A, S>
{
}

#[cfg(feature = "alloc")]
impl<K: Key, V, A: Access<V>> SharedSlotMap<K, V, A> {
    const_but_for_models! {
        /// An empty map. Takes nothing.
        pub fn new() -> Self {
            Self::new_in(DefaultHeap)
        }
    }
    const_but_for_models! {
        /// An empty map with steps of one's own; each is a chunk at least. The limit counts all that
        /// the map takes.
        pub fn with_growth(growth: Growth) -> Self {
            Self::with_growth_in(growth, DefaultHeap)
        }
    }
}

impl<K: Key, V, A: Access<V>, S: Source> SharedSlotMap<K, V, A, S> {
    const_but_for_models! {
        /// An empty map of this source. Takes nothing.
        pub fn new_in(source: S) -> Self {
            Self::with_growth_in(Growth::fixed(1), source)
        }
    }
    const_but_for_models! {
        /// The same, with steps of one's own, as [`with_growth`](SharedSlotMap::with_growth) has them.
        pub fn with_growth_in(growth: Growth, source: S) -> Self {
            let memory = Memory::new(growth, source);
            Self { memory, retired: AtomicUsize::new(0), access: PhantomData }
        }
    }

    /// Elements; those that were removed and still have guards are counted. While other threads
    /// insert and remove, about so many.
    pub fn len(&self) -> usize {
        self.memory.live()
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Slots that no key can name any more.
    pub fn retired(&self) -> usize {
        self.retired.load(Ordering::Relaxed)
    }

    /// Stores a value, and tells its key.
    #[inline]
    pub fn insert(&self, value: V) -> K {
        match self.memory.take_slot() {
            Some(index) => self.place(index, value),
            None => self.refuse(),
        }
    }
    /// The value comes back when memory is refused or no slot is left.
    #[inline]
    pub fn try_insert(&self, value: V) -> Result<K, Full<V>> {
        match self.memory.take_slot() {
            Some(index) => Ok(self.place(index, value)),
            None if self.memory.is_at_limit() => Err(Full::because(Cause::NoSlot, value)),
            None => Err(Full::no_memory(value)),
        }
    }
    /// Stores what `make(key)` returns, for elements that know their key. Until that is there the key
    /// names nothing. If it panics, the key is given again.
    pub fn insert_with_key(&self, make: impl FnOnce(K) -> V) -> K {
        struct GiveBack<'a, K: Key, V, S: Source>(&'a Memory<K, V, S>, usize);
        impl<K: Key, V, S: Source> Drop for GiveBack<'_, K, V, S> {
            fn drop(&mut self) {
                self.0.give_slot(self.0.here(), self.1, false);
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
    /// Of an index that the map gave.
    #[inline(always)]
    fn slot(&self, index: usize) -> &Slot<V> {
        // SAFETY: there is a chunk for it.
        unsafe { self.memory.slot(index).unwrap_unchecked() }
    }

    #[inline(always)]
    fn place(&self, index: usize, value: V) -> K {
        let slot = self.slot(index);
        // SAFETY: the slot is the caller's, and has no value.
        unsafe { A::write(slot.value(), value) };
        Self::key(index, slot.state.begin())
    }

    #[cold]
    #[inline(never)]
    fn refuse(&self) -> ! {
        assert!(
            !self.memory.is_at_limit(),
            "mallard: every slot that a key of this shared slot map can name is in use, retired or \
             with another thread\n  nothing was changed by this call\n  \
             help: take a key type with more bits for the index"
        );
        out_of_memory(Memory::<K, V, S>::layout().unwrap_or(Layout::new::<V>()))
    }

    /// The slot that a key addresses, if there is one.
    #[inline(always)]
    fn find(&self, key: K) -> Option<&Slot<V>> {
        let bits = key.to_bits().to_u64();
        if bits > Words::<K>::VALUE_MAX {
            return None; // for keys of 32 or 64 bits this is no test
        }
        self.memory.slot(key.index())
    }

    /// Whether there is an element of this key, at this moment.
    #[inline]
    pub fn contains_key(&self, key: K) -> bool {
        self.find(key).is_some_and(|slot| slot.state.is(key.generation()))
    }
    /// A guard, which keeps the element. `None`: the key names nothing.
    #[inline]
    pub fn get(&self, key: K) -> Option<Guard<'_, K, V, A, S>> {
        let slot = self.find(key)?;
        // SAFETY: a guard was just counted.
        slot.state.try_hold(key.generation()).then(|| unsafe { Guard::new(self, slot, key) })
    }
    /// What `f` returns, called for the element under a guard. `None`: the key names nothing.
    #[inline]
    pub fn with<R>(&self, key: K, f: impl FnOnce(&V) -> R) -> Option<R> {
        let guard = self.get(key)?;
        Some(f(&guard))
    }
    /// The element, for one who has the map alone.
    #[inline]
    pub fn get_mut(&mut self, key: K) -> Option<&mut V> {
        let slot = self.find(key)?;
        // SAFETY: it is live, and nobody else has a guard, which would borrow the map.
        slot.state.is(key.generation()).then(|| unsafe { &mut *slot.value() })
    }

    /// Removes an element: its key is stale from now on. True for one caller alone.
    #[inline]
    pub fn remove(&self, key: K) -> bool {
        let Some(slot) = self.find(key) else { return false };
        let here = self.memory.here();
        match slot.state.try_remove(key.generation()) {
            Removal::Refused => false,
            Removal::LeftToGuards => true,
            Removal::Alone => {
                // SAFETY: the slot is this thread's, and has a value.
                unsafe { self.finish(slot, key, here) };
                true
            }
        }
    }
    /// Takes an element out. `None`, and nothing has changed: the key names nothing, or there is a
    /// guard of its element.
    #[inline]
    pub fn take(&self, key: K) -> Option<V> {
        let slot = self.find(key)?;
        let here = self.memory.here();
        if !slot.state.try_take(key.generation()) {
            return None;
        }
        // SAFETY: the slot is this thread's, and has a value.
        let value = unsafe { slot.value().read() };
        self.recycle(slot, key, here);
        Some(value)
    }

    /// # Safety
    /// The slot is the caller's alone, and has a value.
    #[inline(always)]
    unsafe fn finish(&self, slot: &Slot<V>, key: K, here: Here) {
        struct Recycle<F: FnMut()>(F);
        impl<F: FnMut()> Drop for Recycle<F> {
            #[inline(always)]
            fn drop(&mut self) {
                (self.0)();
            }
        }
        let _even_if_it_panics = Recycle(|| self.recycle(slot, key, here));
        // SAFETY: as the caller says.
        unsafe { slot.value().drop_in_place() };
    }

    /// The slot has no value any more, and is the caller's.
    #[inline(always)]
    fn recycle(&self, slot: &Slot<V>, key: K, here: Here) {
        let mut next = key.generation() + 1;
        let mut retired = false;
        if next > Words::<K>::GENERATION_MAX {
            next = if K::WRAPPING { 1 } else { next - 1 };
            retired = !K::WRAPPING;
            self.retired.fetch_add(retired as usize, Ordering::Relaxed);
        }
        slot.state.renew(next);
        self.memory.give_slot(here, key.index(), retired); // who takes it next sees all of the above
    }

    /// Calls `f(key, element)` under a guard for each element. Elements that other threads insert or
    /// remove during the call may be visited or not. `f` may insert and remove as well; an element
    /// that `f` removes before its turn is not visited. O(slots that have memory).
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
    /// Removes all that are there when it is called.
    pub fn clear(&self) {
        self.for_each(|key, _| {
            self.remove(key);
        });
    }

    /// What it holds.
    pub fn statistics(&self) -> Statistics {
        let mut s = Statistics { blocks_live: self.len(), ..Statistics::default() };
        self.memory.add_to(&mut s);
        s.bytes_live = s.blocks_live * size_of::<V>();
        s.bytes_idle = s.bytes_idle.saturating_sub(s.bytes_live);
        s
    }
}

impl<K: Key, V: Plain, S: Source> SharedSlotMap<K, V, Copied, S> {
    /// A copy of an element. `None`: the key names nothing. No locked operation.
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
        // SAFETY: the slot was live once, so its words were written.
        let copy = slot.state.read(key.generation(), || unsafe { access::load(slot.value()) })?;
        // SAFETY: these are the words of the element that the key names.
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
                self.end(); // those after one whose destructor panicked
            }
        }
        if core::mem::needs_drop::<V>() {
            // SAFETY: nobody else has the map, nor guards; those that were leaked are no reason to keep it.
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

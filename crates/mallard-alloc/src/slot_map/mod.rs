//! Slot maps: containers whose elements are found by generational keys that are never reused.

mod iter;
pub(crate) mod key;
pub(crate) mod keyed;
mod refill;
#[cfg(feature = "serde")]
mod serde;
mod vacant_entry;

pub(crate) use iter::{key_of, removing_iterators};
pub use iter::{Drain, IntoIter, IntoKeys, IntoValues, Iter, IterMut, Keys, Values, ValuesMut};
#[cfg(feature = "serde")]
pub(crate) use serde::Pairs;
pub use vacant_entry::VacantEntry;

use crate::base::full::{Cause, Full};
use crate::base::growth::Growth;
use crate::base::source::{DefaultHeap, Source};
use crate::slot_map::key::{Key, Words};
use crate::slot_map::keyed::{free_word, ChunkLayout, Slot, Slots};
use core::ptr::NonNull;

/// A container whose elements are found by keys. The key of a removed element never finds another
/// element. Elements never move.
///
/// ```
/// use mallard::{Key32, SlotMap};
/// let mut enemies: SlotMap<Key32, (&str, u32)> = SlotMap::new();
/// let duck = enemies.insert(("duck", 7));
/// if let Some(e) = enemies.get_mut(duck) {
///     e.1 -= 1;
/// }
/// assert_eq!(enemies.remove(duck), Some(("duck", 6)));
/// let swan = enemies.insert(("swan", 9)); // reuses the slot of the duck
/// assert_eq!(enemies.get(duck), None); // the old key stays stale
/// # assert!(enemies.contains_key(swan));
/// ```
///
/// **Lookup.** A lookup costs two loads and one comparison. A lookup is safe for any key, even a
/// key of another map or a made-up number.
///
/// **Memory.** Slots are in chunks of about 16 KiB, and a directory points to the chunks. A map
/// grows by a chunk and copies only the directory, so an element keeps its address from insert to
/// removal, even if the map is moved. A map allocates no memory before the first element. In
/// addition to its own size, each element needs a word (4 bytes for [`Key32`](crate::Key32)) and
/// two bits. The map keeps its memory until [`trim`](Self::trim). After a trim, stale keys are
/// still stale.
///
/// **Reuse.** A freed slot is among the next slots that are used. When all generations of a slot
/// are used up, the slot retires and stays empty. [`retired`](Self::retired) returns the number of
/// such slots. With `Key32`, a slot retires after 4,095 elements, so a map of n slots can store at
/// least 4,095 n elements, one after the other.
///
/// **Errors.** When no memory is left, `insert` calls `handle_alloc_error`, which aborts. When
/// every slot that a key can address is in use or retired, `insert` panics. `try_insert` returns
/// the value in both cases.
///
/// **Threads.** Only one thread at a time may use the map. For several threads, see
/// `SharedSlotMap`.
///
/// A reference from a lookup cannot outlive the element:
/// ```compile_fail
/// let mut map: mallard::SlotMap<mallard::Key32, String> = mallard::SlotMap::new();
/// let key = map.insert(String::from("a"));
/// let value = map.get(key);
/// map.remove(key);
/// println!("{value:?}");
/// ```
#[doc(alias = "generational arena")]
pub struct SlotMap<K: Key, V, S: Source = DefaultHeap> {
    slots: Slots<K, V, S>,
    // Every slot of a chunk is counted in exactly one term, with |x| for the size of x:
    //   live + |free_keys| + |fresh| + idle + retired + detached + slot 0  ==  present * SLOTS
    // So `len` is computed, and insert and remove count nothing.
    /// The index range of the slots that were never used since their chunk was added. The range
    /// begins at `fresh` and ends before `fresh_end`.
    fresh: usize,
    fresh_end: usize,
    /// The number of free slots whose next key is not in `free_keys`. The chunks of these slots
    /// form the list `with_idle`.
    idle: usize,
    with_idle: Option<NonNull<u8>>,
    retired: usize,
    detached: usize,
}

// SAFETY: the map has exclusive use of its chunks and their elements.
unsafe impl<K: Key, V: Send, S: Source + Send> Send for SlotMap<K, V, S> {}
// SAFETY: through a shared reference only mark bits can be changed, and mark bits are atomic.
unsafe impl<K: Key, V: Sync, S: Source + Sync> Sync for SlotMap<K, V, S> {}

#[cfg(feature = "alloc")]
impl<K: Key, V> SlotMap<K, V> {
    /// Makes an empty map, without allocating.
    pub const fn new() -> Self {
        Self::with_growth_in(Self::GROWTH, DefaultHeap)
    }
    /// Makes an empty map that grows by the rule `growth`, by at least one chunk in each step. The
    /// limit applies to all memory of the map.
    pub const fn with_growth(growth: Growth) -> Self {
        Self::with_growth_in(growth, DefaultHeap)
    }
    /// Makes an empty map with memory for `count` elements.
    pub fn with_capacity(count: usize) -> Self {
        let mut map = Self::new();
        map.reserve(count);
        map
    }
}

impl<K: Key, V, S: Source> SlotMap<K, V, S> {
    /// The default growth, which adds one chunk in each step.
    const GROWTH: Growth = Growth::fixed(1);

    /// Makes an empty map whose memory comes from `source`, without allocating.
    pub const fn new_in(source: S) -> Self {
        Self::with_growth_in(Self::GROWTH, source)
    }
    /// Makes an empty map with a growth rule (see [`with_growth`](SlotMap::with_growth)) and a
    /// source.
    pub const fn with_growth_in(growth: Growth, source: S) -> Self {
        Self {
            slots: Slots::new(growth, source),
            fresh: 0,
            fresh_end: 0,
            idle: 0,
            with_idle: None,
            retired: 0,
            detached: 0,
        }
    }
    /// Returns the source of the memory.
    pub fn source(&self) -> &S {
        self.slots.source()
    }

    /// Returns the number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        let slots = self.slots.present * ChunkLayout::<K, V>::SLOTS;
        let others = self.fresh_end - self.fresh + self.idle + self.retired + self.detached;
        slots - (slots != 0) as usize - self.slots.free_keys.len() - others
    }
    /// Returns whether there are no elements.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Returns the number of elements for which the map has memory, including the elements in the
    /// map.
    pub fn capacity(&self) -> usize {
        let slots = self.slots.capacity();
        slots - (slots != 0) as usize - self.retired - self.detached
    }
    /// Returns the number of slots that have used up their generations.
    pub fn retired(&self) -> usize {
        self.retired
    }
    /// Returns the number of detached keys, which `detach` reserved for
    /// [`reattach`](Self::reattach).
    pub fn detached(&self) -> usize {
        self.detached
    }

    /// Stores a value and returns its key. Aborts if no memory is left, and panics if no slot is
    /// left.
    #[inline]
    pub fn insert(&mut self, value: V) -> K {
        self.make_ready();
        self.place(|_| value)
    }
    /// Stores a value and returns its key. When no memory or no slot is left, returns the value in
    /// the error, and changes nothing.
    #[inline]
    pub fn try_insert(&mut self, value: V) -> Result<K, Full<V>> {
        if self.slots.free_keys.is_empty() && !self.refill() {
            return Err(Full::because(self.failure_cause(), value));
        }
        Ok(self.place(|_| value))
    }
    /// Stores the result of `make(key)`, for elements that contain their own key. If `make` panics,
    /// the map is unchanged.
    ///
    /// ```
    /// # use mallard::{Key32, SlotMap};
    /// let mut map: SlotMap<Key32, (Key32, &str)> = SlotMap::new();
    /// let key = map.insert_with_key(|key| (key, "knows itself"));
    /// assert_eq!(map[key].0, key);
    /// ```
    #[inline]
    pub fn insert_with_key(&mut self, make: impl FnOnce(K) -> V) -> K {
        self.make_ready();
        self.place(make)
    }

    #[inline(always)]
    fn make_ready(&mut self) {
        if self.slots.free_keys.is_empty() {
            self.slots.free_keys.top = self.refill_or_abort(); // `make_room` explains why
        }
    }

    /// Stores an element under the next free key. Every element is stored by this function.
    /// Requires that there is a free key.
    #[inline(always)]
    fn place(&mut self, make: impl FnOnce(K) -> V) -> K {
        // SAFETY: `make_ready` or `refill` has made sure that there is a free key.
        let key = unsafe { self.slots.free_keys.peek() };
        let value = make(Words::<K>::known(key));
        // SAFETY: the slot of a free key is in a chunk. The slot is free, and its mark bit is set.
        unsafe {
            self.slots.free_keys.pop();
            self.slots.view.slot_of(key).begin(key, value);
        }
        Words::<K>::known(key)
    }

    /// Returns whether the map has an element with this key.
    #[inline]
    pub fn contains_key(&self, key: K) -> bool {
        self.slots.view.find(key).is_some()
    }
    /// Returns the element of a key. Returns `None` if the key is null, stale, or of another map.
    #[inline]
    pub fn get(&self, key: K) -> Option<&V> {
        // SAFETY: the slot is live, so it has a value.
        Some(unsafe { self.slots.view.find(key)?.value().as_ref() })
    }
    /// Returns a mutable reference to the element of a key.
    #[inline]
    pub fn get_mut(&mut self, key: K) -> Option<&mut V> {
        // SAFETY: the slot is live, so it has a value.
        Some(unsafe { self.slots.view.find(key)?.value().as_mut() })
    }
    /// Returns the element of a key, without a check.
    ///
    /// # Safety
    /// `contains_key(key)` is true.
    #[inline]
    pub unsafe fn get_unchecked(&self, key: K) -> &V {
        debug_assert!(self.contains_key(key));
        // SAFETY: the slot is live, so it has a value.
        unsafe { self.slots.view.slot_of(key.to_bits()).value().as_ref() }
    }
    /// Returns a mutable reference to the element of a key, without a check.
    ///
    /// # Safety
    /// `contains_key(key)` is true.
    #[inline]
    pub unsafe fn get_unchecked_mut(&mut self, key: K) -> &mut V {
        debug_assert!(self.contains_key(key));
        // SAFETY: the slot is live, so it has a value.
        unsafe { self.slots.view.slot_of(key.to_bits()).value().as_mut() }
    }
    /// Returns mutable references to the elements of several keys. Returns `None` if a key has no
    /// element or occurs twice.
    ///
    /// ```
    /// # use mallard::{Key32, SlotMap};
    /// let mut map: SlotMap<Key32, u32> = SlotMap::new();
    /// let (a, b) = (map.insert(1), map.insert(2));
    /// let [x, y] = map.get_disjoint_mut([a, b]).unwrap();
    /// core::mem::swap(x, y);
    /// assert_eq!((map[a], map[b]), (2, 1));
    /// assert!(map.get_disjoint_mut([a, a]).is_none());
    /// ```
    #[inline]
    pub fn get_disjoint_mut<const N: usize>(&mut self, keys: [K; N]) -> Option<[&mut V; N]> {
        for (i, &key) in keys.iter().enumerate() {
            if !self.contains_key(key) || keys[..i].contains(&key) {
                return None;
            }
        }
        // SAFETY: each key has an element, and differs from all keys before it.
        Some(keys.map(|key| unsafe { self.slots.view.slot_of(key.to_bits()).value().as_mut() }))
    }

    /// Removes an element and returns it. Afterwards the key is stale. If the key is detached, it
    /// becomes stale too, and the result is `None`.
    #[inline]
    pub fn remove(&mut self, key: K) -> Option<V> {
        self.make_room(); // called first, so that a loop of removals keeps the top in a register
        match self.slots.view.find(key) {
            // SAFETY: `find` returned a live slot.
            Some(slot) => Some(unsafe { self.remove_at(slot, key.to_bits()) }),
            None => {
                self.give_up(key);
                None
            }
        }
    }

    /// Makes room for one more free key, unless the map has never had an element.
    #[inline(always)]
    fn make_room(&mut self) {
        if self.slots.free_keys.is_full() {
            // The assignment changes nothing, but lets the compiler keep the value of `top` in a
            // loop.
            self.slots.free_keys.top = self.make_room_for_key();
        }
    }

    /// Removes the element of a slot.
    ///
    /// # Safety
    /// The slot is live.
    unsafe fn take_at(&mut self, slot: Slot<K, V>) -> (K, V) {
        self.make_room();
        // SAFETY: the caller guarantees that the slot is live, so its word is its key.
        unsafe {
            let key = *slot.word();
            (Words::<K>::known(key), self.remove_at(slot, key))
        }
    }

    /// Removes the element of a slot.
    ///
    /// # Safety
    /// The slot is live, `key` is its key, and there is room for one more free key.
    #[inline(always)]
    unsafe fn remove_at(&mut self, slot: Slot<K, V>, key: K::Bits) -> V {
        // SAFETY: the caller guarantees that the slot is live. The value is read last, so that it
        // is copied only once.
        unsafe {
            *slot.word() = free_word::<K>();
            self.recycle(slot, key);
            slot.value().read()
        }
    }

    /// Adds the next key of a slot to the free keys. Requires that the slot's word is 0, that its
    /// mark bit is set, and that there is room for the key.
    #[inline(always)]
    fn recycle(&mut self, slot: Slot<K, V>, key: K::Bits) {
        let mut next = Words::<K>::after(key);
        if next < key {
            if !K::WRAPPING {
                return retire(&mut self.retired, slot);
            }
            next = Words::<K>::key(Words::<K>::index(key), 1);
        }
        // SAFETY: the caller has made room for the key.
        unsafe { self.slots.free_keys.push(next) };
    }

    /// Removes an element from the map, and returns it, but reserves its key. The key finds no
    /// element until [`reattach`](Self::reattach), and no other element receives the key. `remove`
    /// and `clear` end the reservation.
    ///
    /// ```
    /// # use mallard::{Key32, SlotMap};
    /// let mut map: SlotMap<Key32, String> = SlotMap::new();
    /// let key = map.insert("duck".into());
    /// let duck = map.detach(key).unwrap(); // the map can be used without this element
    /// assert!(!map.contains_key(key));
    /// map.reattach(key, duck).unwrap();
    /// assert_eq!(map[key], "duck");
    /// ```
    pub fn detach(&mut self, key: K) -> Option<V> {
        let slot = self.slots.view.find(key)?;
        self.detached += 1;
        // SAFETY: `find` returned a live slot.
        unsafe {
            slot.unmark();
            Some(slot.end(Words::<K>::without_index(key.to_bits())))
        }
    }

    /// Inserts an element again under its detached key. If the key is not detached, returns the
    /// value in the error.
    pub fn reattach(&mut self, key: K, value: V) -> Result<(), Full<V>> {
        let Some(slot) = self.find_detached(key) else {
            return Err(Full::because(Cause::NotDetached, value));
        };
        self.detached -= 1;
        // SAFETY: a detached slot is in a chunk, and is not live.
        unsafe {
            slot.begin(key.to_bits(), value);
            slot.mark();
        }
        Ok(())
    }

    fn find_detached(&self, key: K) -> Option<Slot<K, V>> {
        let number = key.index() / ChunkLayout::<K, V>::SLOTS;
        if self.detached == 0 || number >= self.slots.view.count {
            return None;
        }
        let slot = self.slots.view.chunk(number)?.slot(key.index() % ChunkLayout::<K, V>::SLOTS);
        let word = Words::<K>::without_index(key.to_bits());
        // SAFETY: the slot is in a chunk.
        let found = unsafe { *slot.word() == word && !slot.is_idle() };
        (found && word != free_word::<K>()).then_some(slot)
    }

    #[cold]
    #[inline(never)]
    fn give_up(&mut self, key: K) {
        if let Some(slot) = self.find_detached(key) {
            self.detached -= 1;
            // SAFETY: a detached slot is in a chunk. The slot of a marked free key is marked.
            unsafe {
                *slot.word() = free_word::<K>();
                slot.mark();
            }
            self.make_room();
            self.recycle(slot, key.to_bits());
        }
    }
}

/// Retires a slot whose generations are used up. The argument is the counter and not the map,
/// because otherwise the compiler could not keep fields of the map in registers in a loop.
#[cold]
#[inline(never)]
fn retire<K: Key, V>(retired: &mut usize, slot: Slot<K, V>) {
    *retired += 1;
    // SAFETY: the slot is in a chunk, and every iterator has passed it.
    unsafe { slot.unmark() };
}

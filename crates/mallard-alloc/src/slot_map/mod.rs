//! A pool addressed by keys that are never given twice.

mod iter;
pub(crate) mod key;
pub(crate) mod keyed;
#[cfg(feature = "serde")]
mod serde;
mod supply;
mod whole;

pub(crate) use iter::{key_of, take_out};
pub use iter::{Drain, IntoIter, IntoKeys, IntoValues, Iter, IterMut, Keys, Values, ValuesMut};
pub use whole::VacantEntry;

use crate::base::full::{Cause, Full};
use crate::base::growth::Growth;
use crate::base::source::{DefaultHeap, Source};
use crate::slot_map::key::{Key, Words};
use crate::slot_map::keyed::{no_word, Shape, Slot, Slots};
use core::ptr::NonNull;

/// Elements by key: one that is removed makes its key stale for ever, and no element moves.
///
/// ```
/// use mallard::{Key32, SlotMap};
/// let mut enemies: SlotMap<Key32, (&str, u32)> = SlotMap::new();
/// let duck = enemies.insert(("duck", 7));
/// if let Some(e) = enemies.get_mut(duck) {
///     e.1 -= 1;
/// }
/// assert_eq!(enemies.remove(duck), Some(("duck", 6)));
/// let swan = enemies.insert(("swan", 9)); // in the slot of the duck
/// assert_eq!(enemies.get(duck), None); // from now on
/// # assert!(enemies.contains_key(swan));
/// ```
///
/// A lookup is two loads and one comparison, safe for any key, of another map or made up.
///
/// Slots are in chunks of about 16 KiB, found through a directory of pointers: a map grows by a
/// chunk, and nothing is ever copied but that directory. The address of an element is the same
/// from its insert to its removal, wherever the map is moved. Nothing is taken before the first
/// element. Each costs a word (4 bytes for [`Key32`](crate::Key32)) and two bits beside its own.
/// Memory is kept until [`trim`](Self::trim) or the end of the map, and so it stays known which keys
/// are stale, after `trim` too.
///
/// A slot that was emptied is among the next to be used. When all generations of a slot have been
/// given it retires: [`retired`](Self::retired) counts those. A `Key32` lasts for 4,095 elements
/// a slot, so a map of n slots for 4,095 n at least.
///
/// `insert` ends the program as `handle_alloc_error` does where memory is refused, and panics
/// when every slot that a key can name is in use or retired; `try_insert` gives the value back.
/// One thread at a time; for several see `SharedSlotMap`.
///
/// What a lookup gives cannot outlive the element:
/// ```compile_fail
/// let mut map: mallard::SlotMap<mallard::Key32, String> = mallard::SlotMap::new();
/// let key = map.insert(String::from("a"));
/// let value = map.get(key);
/// map.remove(key);
/// println!("{value:?}");
/// ```
pub struct SlotMap<K: Key, V, S: Source = DefaultHeap> {
    slots: Slots<K, V, S>,
    // Of the slots that have memory, with |x| for how many are in x:
    //   live + |at_hand| + |fresh| + idle + retired + detached + slot 0  ==  present * SLOTS
    // So nothing is counted where an element comes or goes.
    /// The next slots that were never used since their chunk is here, up to `fresh_end`.
    fresh: usize,
    fresh_end: usize,
    /// Slots that are free and not at hand. Their chunks are a list.
    idle: usize,
    with_idle: Option<NonNull<u8>>,
    retired: usize,
    detached: usize,
}

// SAFETY: it has its chunks and what is in them to itself.
unsafe impl<K: Key, V: Send, S: Source + Send> Send for SlotMap<K, V, S> {}
// SAFETY: by a shared reference nothing can be changed.
unsafe impl<K: Key, V: Sync, S: Source + Sync> Sync for SlotMap<K, V, S> {}

#[cfg(feature = "alloc")]
impl<K: Key, V> SlotMap<K, V> {
    /// An empty map. Takes nothing.
    pub const fn new() -> Self {
        Self::with_growth_in(Self::GROWTH, DefaultHeap)
    }
    /// An empty map with steps of one's own; each is a chunk at least. The limit counts all that the
    /// map takes.
    pub const fn with_growth(growth: Growth) -> Self {
        Self::with_growth_in(growth, DefaultHeap)
    }
    /// With memory for so many elements.
    pub fn with_capacity(count: usize) -> Self {
        let mut map = Self::new();
        map.reserve(count);
        map
    }
}

impl<K: Key, V, S: Source> SlotMap<K, V, S> {
    /// A chunk at a time.
    const GROWTH: Growth = Growth::fixed(1);

    /// An empty map of this source. Takes nothing.
    pub const fn new_in(source: S) -> Self {
        Self::with_growth_in(Self::GROWTH, source)
    }
    /// The same, with steps of one's own, as [`with_growth`](SlotMap::with_growth) has them.
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
    /// Where its memory comes from.
    pub fn source(&self) -> &S {
        self.slots.source()
    }

    /// Elements.
    #[inline]
    pub fn len(&self) -> usize {
        let slots = self.slots.present * Shape::<K, V>::SLOTS;
        let others = self.fresh_end - self.fresh + self.idle + self.retired + self.detached;
        slots - (slots != 0) as usize - self.slots.at_hand.len() - others
    }
    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Elements for which there is memory, those there are included.
    pub fn capacity(&self) -> usize {
        let slots = self.slots.capacity();
        slots - (slots != 0) as usize - self.retired - self.detached
    }
    /// Slots that no key can name any more.
    pub fn retired(&self) -> usize {
        self.retired
    }
    /// Keys that wait for [`reattach`](Self::reattach).
    pub fn detached(&self) -> usize {
        self.detached
    }

    /// Stores a value, and tells its key.
    #[inline]
    pub fn insert(&mut self, value: V) -> K {
        self.make_ready();
        self.place(|_| value)
    }
    /// The value comes back when memory is refused or no slot is left; nothing has changed then.
    #[inline]
    pub fn try_insert(&mut self, value: V) -> Result<K, Full<V>> {
        if self.slots.at_hand.is_empty() && !self.refill() {
            return Err(Full::because(self.why_refused(), value));
        }
        Ok(self.place(|_| value))
    }
    /// Stores what `make(key)` returns, for elements that know their key. If it panics, nothing
    /// has changed.
    #[inline]
    pub fn insert_with_key(&mut self, make: impl FnOnce(K) -> V) -> K {
        self.make_ready();
        self.place(make)
    }

    #[inline(always)]
    fn make_ready(&mut self) {
        if self.slots.at_hand.is_empty() {
            self.slots.at_hand.top = self.refill_or_end(); // as in `make_room`
        }
    }

    /// The one place where an element begins. A key is ready.
    #[inline(always)]
    fn place(&mut self, make: impl FnOnce(K) -> V) -> K {
        // SAFETY: one is.
        let key = unsafe { self.slots.at_hand.peek() };
        let value = make(Words::<K>::known(key));
        // SAFETY: the slot of a key at hand is in a chunk, and free, and marked.
        unsafe {
            self.slots.at_hand.pop();
            self.slots.view.slot_of(key).begin(key, value);
        }
        Words::<K>::known(key)
    }

    /// Whether there is an element of this key.
    #[inline]
    pub fn contains_key(&self, key: K) -> bool {
        self.slots.view.find(key).is_some()
    }
    /// The element of a key, or `None`: the key is null, stale, or of nobody.
    #[inline]
    pub fn get(&self, key: K) -> Option<&V> {
        // SAFETY: a live slot has a value.
        Some(unsafe { self.slots.view.find(key)?.value().as_ref() })
    }
    /// The same, to change it.
    #[inline]
    pub fn get_mut(&mut self, key: K) -> Option<&mut V> {
        // SAFETY: a live slot has a value.
        Some(unsafe { self.slots.view.find(key)?.value().as_mut() })
    }
    /// The element of a key that has one.
    ///
    /// # Safety
    /// `contains_key(key)`.
    #[inline]
    pub unsafe fn get_unchecked(&self, key: K) -> &V {
        debug_assert!(self.contains_key(key));
        // SAFETY: a live slot has a value.
        unsafe { self.slots.view.slot_of(key.to_bits()).value().as_ref() }
    }
    /// The same, to change it.
    ///
    /// # Safety
    /// `contains_key(key)`.
    #[inline]
    pub unsafe fn get_unchecked_mut(&mut self, key: K) -> &mut V {
        debug_assert!(self.contains_key(key));
        // SAFETY: a live slot has a value.
        unsafe { self.slots.view.slot_of(key.to_bits()).value().as_mut() }
    }
    /// The elements of several keys at once; `None` if one names nothing or is given twice.
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
        // SAFETY: each is alive, and another than all before it.
        Some(keys.map(|key| unsafe { self.slots.view.slot_of(key.to_bits()).value().as_mut() }))
    }

    /// Takes an element out; its key is stale from now on. A detached key is given up.
    #[inline]
    pub fn remove(&mut self, key: K) -> Option<V> {
        self.make_room(); // first, so that a loop of removals keeps the top of the stack in a register
        match self.slots.view.find(key) {
            // SAFETY: it is alive.
            Some(slot) => Some(unsafe { self.remove_at(slot, key.to_bits()) }),
            None => {
                self.give_up(key);
                None
            }
        }
    }

    /// Room for one key more at hand, if any element ever was.
    #[inline(always)]
    fn make_room(&mut self) {
        if self.slots.at_hand.is_full() {
            // Which it is already; but a loop knows it so.
            self.slots.at_hand.top = self.make_way();
        }
    }

    /// # Safety
    /// The slot is alive.
    unsafe fn take_at(&mut self, slot: Slot<K, V>) -> (K, V) {
        self.make_room();
        // SAFETY: the word of a live slot is its key.
        unsafe {
            let key = *slot.word();
            (Words::<K>::known(key), self.remove_at(slot, key))
        }
    }

    /// # Safety
    /// The slot is alive, this is its key, and there is room at hand.
    #[inline(always)]
    unsafe fn remove_at(&mut self, slot: Slot<K, V>, key: K::Bits) -> V {
        // SAFETY: as the caller says. The value is read last, so that it is copied once.
        unsafe {
            *slot.word() = no_word::<K>();
            self.recycle(slot, key);
            slot.value().read()
        }
    }

    /// The next key of a slot, whose word is 0 and which is marked, comes at hand. There is room.
    #[inline(always)]
    fn recycle(&mut self, slot: Slot<K, V>, key: K::Bits) {
        let mut next = Words::<K>::after(key);
        if next < key {
            if !K::WRAPPING {
                return retire(&mut self.retired, slot);
            }
            next = Words::<K>::key(Words::<K>::index(key), 1);
        }
        // SAFETY: there is room for one.
        unsafe { self.slots.at_hand.push(next) };
    }

    /// Takes an element out and keeps its key: it names nothing until [`reattach`](Self::reattach),
    /// and no other element gets it. `remove` and `clear` give it up.
    pub fn detach(&mut self, key: K) -> Option<V> {
        let slot = self.slots.view.find(key)?;
        self.detached += 1;
        // SAFETY: it is alive.
        unsafe {
            slot.unmark();
            Some(slot.end(Words::<K>::without_index(key.to_bits())))
        }
    }

    /// The value comes back when the key is not detached.
    pub fn reattach(&mut self, key: K, value: V) -> Result<(), Full<V>> {
        let Some(slot) = self.find_detached(key) else {
            return Err(Full::because(Cause::NotDetached, value));
        };
        self.detached -= 1;
        // SAFETY: a detached slot is in a chunk and not alive.
        unsafe {
            slot.begin(key.to_bits(), value);
            slot.mark();
        }
        Ok(())
    }

    fn find_detached(&self, key: K) -> Option<Slot<K, V>> {
        let number = key.index() / Shape::<K, V>::SLOTS;
        if self.detached == 0 || number >= self.slots.view.count {
            return None;
        }
        let slot = self.slots.view.chunk(number)?.slot(key.index() % Shape::<K, V>::SLOTS);
        let word = Words::<K>::without_index(key.to_bits());
        // SAFETY: it is in a chunk.
        let found = unsafe { *slot.word() == word && !slot.is_idle() };
        (found && word != no_word::<K>()).then_some(slot)
    }

    #[cold]
    #[inline(never)]
    fn give_up(&mut self, key: K) {
        if let Some(slot) = self.find_detached(key) {
            self.detached -= 1;
            // SAFETY: a detached slot is in a chunk. What is at hand and not parked is marked.
            unsafe {
                *slot.word() = no_word::<K>();
                slot.mark();
            }
            self.make_room();
            self.recycle(slot, key.to_bits());
        }
    }
}

/// The generations of a slot are used up. Not of the map, so that what a loop knows of that holds.
#[cold]
#[inline(never)]
fn retire<K: Key, V>(retired: &mut usize, slot: Slot<K, V>) {
    *retired += 1;
    // SAFETY: it is in a chunk, and there is no walk now that has not met it.
    unsafe { slot.unmark() };
}

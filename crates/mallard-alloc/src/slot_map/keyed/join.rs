//! Iteration over the elements that two maps have for the same keys.

use crate::slot_map::key::Key;

/// A map by keys that can be iterated together with another map.
///
/// ```
/// use mallard::{Key64, SecondaryMap, SlotMap};
/// let mut places: SlotMap<Key64, f32> = SlotMap::new();
/// let mut speeds = SecondaryMap::new();
/// let (car, tree) = (places.insert(1.0), places.insert(2.0));
/// speeds.insert(car, 0.5);
///
/// places.for_each_with(&mut speeds, |_, place, speed| *place += *speed);
/// assert_eq!((places[car], places[tree]), (1.5, 2.0));
/// ```
pub trait Join<K: Key> {
    /// The type of the elements.
    type Value;

    /// Returns the element of a key, if there is one.
    fn element(&mut self, key: K) -> Option<&mut Self::Value>;
}

//! Methods that all pools have: they count slots, and return memory.

/// Defines the methods of a pool that has `slots` and `clear`.
macro_rules! pool_methods {
    () => {
        /// Drops everything that is left in the pool, and returns all memory to the source.
        pub fn release(&mut self) {
            self.clear();
            self.slots.release();
        }
        /// Returns idle memory to the source, but keeps `keep` bytes of it. The memory of one step
        /// of growth is returned as a whole, if none of its slots is in use. O(free slots).
        pub fn trim(&mut self, keep: usize) {
            self.slots.trim(keep);
        }

        /// Number of slots in use. Exact while no other thread is inside a call. O(chunks), because
        /// calls that allocate or free do not count.
        pub fn len(&self) -> usize {
            self.slots.len()
        }
        /// Whether no slot is in use. Costs the same as `len`.
        pub fn is_empty(&self) -> bool {
            self.len() == 0
        }
        /// Number of slots, in use or not. For a fixed pool: the largest number it can have.
        pub fn capacity(&self) -> usize {
            self.slots.capacity()
        }
        /// Number of slots not in use. A pool that grows may add more when needed.
        pub fn available(&self) -> usize {
            self.slots.available()
        }
        /// Whether no slot is available. A full fixed pool fails to allocate, and a full pool of
        /// another kind grows.
        pub fn is_full(&self) -> bool {
            self.available() == 0
        }
        /// Numbers of blocks, bytes and chunks. O(chunks).
        pub fn statistics(&self) -> $crate::Statistics {
            self.slots.statistics()
        }
    };
}
pub(crate) use pool_methods;

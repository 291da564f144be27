//! Methods that all pools have, which count slots and return memory.

/// Defines the methods of a pool that has `slots` and `clear`.
macro_rules! pool_methods {
    () => {
        /// Drops everything that is left in the pool, and returns all memory to the source.
        pub fn release(&mut self) {
            self.clear();
            self.slots.release();
        }
        /// Returns idle memory to the source, except for `keep` bytes. The memory of one request to
        /// the source is returned as a whole, when all its slots are free. O(free slots).
        pub fn trim(&mut self, keep: usize) {
            self.slots.trim(keep);
        }

        /// Returns the number of slots in use. The number is exact while no other thread is inside
        /// a call. O(chunks), because calls that allocate or free do not count.
        pub fn len(&self) -> usize {
            self.slots.len()
        }
        /// Returns whether no slot is in use. Costs the same as `len`.
        pub fn is_empty(&self) -> bool {
            self.len() == 0
        }
        /// Returns the number of slots, in use or free. For a fixed pool, returns the maximum
        /// number of slots.
        pub fn capacity(&self) -> usize {
            self.slots.capacity()
        }
        /// Returns the number of free slots. A pool that grows may add more when needed.
        pub fn available(&self) -> usize {
            self.slots.available()
        }
        /// Returns whether no slot is free. If a pool is full, a fixed pool fails to allocate, and
        /// any other pool grows.
        pub fn is_full(&self) -> bool {
            self.available() == 0
        }
        /// Returns the statistics. O(chunks).
        pub fn statistics(&self) -> $crate::Statistics {
            self.slots.statistics()
        }
    };
}
pub(crate) use pool_methods;

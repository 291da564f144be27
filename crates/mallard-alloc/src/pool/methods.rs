//! Methods that all pools have, for the number of slots and for returning memory.

/// Defines the common methods of pools. The pool needs the field `slots` and the method `clear`.
macro_rules! pool_methods {
    () => {
        /// Drops everything that is left in the pool, and returns all memory to the source.
        pub fn release(&mut self) {
            self.clear();
            self.slots.release();
        }
        /// Returns idle memory to the source, except for `keep` bytes. Memory that came from one
        /// request is returned as a whole, when all its slots are free. O(free slots).
        pub fn trim(&mut self, keep: usize) {
            self.slots.trim(keep);
        }

        /// Returns the number of slots in use. The number is exact while no other thread is inside
        /// a call. O(chunks), because allocations and frees maintain no counter.
        pub fn len(&self) -> usize {
            self.slots.len()
        }
        /// Returns whether no slot is in use. Costs as much as `len`.
        pub fn is_empty(&self) -> bool {
            self.len() == 0
        }
        /// Returns the number of slots, in use or free. For a fixed pool, returns the maximum
        /// number of slots.
        pub fn capacity(&self) -> usize {
            self.slots.capacity()
        }
        /// Returns the number of free slots. A pool that can grow adds more slots when needed.
        pub fn available(&self) -> usize {
            self.slots.available()
        }
        /// Returns whether no slot is free. An allocation from a full pool fails if the pool is
        /// fixed. Any other full pool grows.
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

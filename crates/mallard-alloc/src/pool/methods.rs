//! What all pools say of their slots, and do with their memory.

/// For a pool with `slots` and `clear`.
macro_rules! pool_methods {
    () => {
        /// Drops all that is left, and gives all memory back to the source.
        pub fn release(&mut self) {
            self.clear();
            self.slots.release();
        }
        /// Gives idle memory back, beyond `keep` bytes. The unit is what one step of growth
        /// took, idle when no slot of it is in use. O(slots that are free).
        pub fn trim(&mut self, keep: usize) {
            self.slots.trim(keep);
        }

        /// Slots in use; exact when no other thread is inside. O(chunks): nothing is counted
        /// where slots are given.
        pub fn len(&self) -> usize {
            self.slots.len()
        }
        /// Whether no slot is in use. As `len`.
        pub fn is_empty(&self) -> bool {
            self.len() == 0
        }
        /// Slots that there are, in use or not; of a fixed pool those that there can be.
        pub fn capacity(&self) -> usize {
            self.slots.capacity()
        }
        /// Slots that are not in use. A pool that grows may have more when needed.
        pub fn available(&self) -> usize {
            self.slots.available()
        }
        /// Whether no slot is available: then a fixed pool refuses, and others grow.
        pub fn is_full(&self) -> bool {
            self.available() == 0
        }
        /// What it holds. O(chunks).
        pub fn statistics(&self) -> $crate::Statistics {
            self.slots.statistics()
        }
    };
}
pub(crate) use pool_methods;

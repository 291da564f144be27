//! Generates pseudo-random numbers that are the same in every run.

use super::memory::Table;

pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns the next number of xorshift64*.
    #[inline]
    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    #[inline]
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.number()) * bound as u128) >> 64) as usize
    }

    pub fn shuffle<T>(&mut self, all: &mut [T]) {
        for i in (1..all.len()).rev() {
            all.swap(i, self.below(i + 1));
        }
    }
}

/// Returns `count` random indices, each below `bound`.
pub fn random_indices(count: usize, bound: usize) -> Table<u32> {
    let mut random = Random::new(7);
    Table::new((0..count).map(|_| random.below(bound) as u32))
}

/// Returns each index below `count` once, in random order.
pub fn shuffled_indices(count: usize) -> Table<u32> {
    let mut all = Table::new((0..count).map(|i| i as u32));
    Random::new(11).shuffle(&mut all);
    all
}

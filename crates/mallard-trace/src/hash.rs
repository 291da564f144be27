//! A fast hash function for the tables of addresses, frames and call stack nodes.

use std::hash::{BuildHasherDefault, Hasher};

/// Mixes all bits of a number into all bits of the result.
#[inline]
pub(crate) fn mix(key: u64) -> u64 {
    let product = u128::from(key ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
    product as u64 ^ (product >> 64) as u64
}

/// Hashes one number. Keys that collide on purpose can make tables slow, but only a forged trace
/// has such keys.
#[derive(Default)]
pub(crate) struct MixHasher(u64);

impl Hasher for MixHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = mix(self.0 ^ u64::from(byte));
        }
    }

    #[inline]
    fn write_u64(&mut self, key: u64) {
        self.0 = mix(self.0 ^ key);
    }

    #[inline]
    fn write_u32(&mut self, key: u32) {
        self.write_u64(u64::from(key));
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

/// A hash table whose keys are numbers.
pub(crate) type NumberMap<K, V> = hashbrown::HashMap<K, V, BuildHasherDefault<MixHasher>>;

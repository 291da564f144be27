//! Defines the data of a finished instance of a region.

/// The frees of an instance since its last allocation. Wink-out frees the memory of the instance as
/// a whole, so the program would not make these frees.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Run {
    /// The times of the first and the last free by the thread of the instance.
    pub first: i64,
    pub last: i64,
    /// The CPU times of the thread at these moments.
    pub cpu_first: f64,
    pub cpu_last: f64,
    /// The number of these frees by the instance's thread. `foreign` is the number of frees by
    /// other threads.
    pub own: u64,
    pub foreign: u64,
}

impl Run {
    /// Adds a free by the thread of the instance.
    #[inline]
    pub fn add(&mut self, now: i64, cpu: f64) {
        if self.own == 0 {
            (self.first, self.cpu_first) = (now, cpu);
        }
        (self.last, self.cpu_last) = (now, cpu);
        self.own += 1;
    }

    /// Adds the frees of an inner instance.
    pub fn merge(&mut self, inner: &Run) {
        self.foreign += inner.foreign;
        if inner.own == 0 {
            return;
        }
        if self.own == 0 || inner.first < self.first {
            (self.first, self.cpu_first) = (inner.first, inner.cpu_first);
        }
        if self.own == 0 || inner.last > self.last {
            (self.last, self.cpu_last) = (inner.last, inner.cpu_last);
        }
        self.own += inner.own;
    }
}

/// An instance of a region that has ended.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ended {
    pub candidate: u16,
    pub thread: u32,
    /// The times of the first and the last event of the instance.
    pub t0: i64,
    pub t1: i64,
    /// The CPU time that the thread used between these events.
    pub cpu_ns: f64,
    pub blocks: u64,
    pub bytes: u64,
    pub peak: u64,
    /// Number of blocks that are still in use when the instance ends.
    pub left_blocks: u64,
    /// A hash of the sequence of block sizes.
    pub signature: u64,
    pub run: Run,
    /// Whether the program ended the instance. If not, the recording ended first.
    pub is_finished: bool,
}

/// The odd number by which a signature is multiplied for each added block.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A hash of a sequence of sizes. If the hashes of two prefixes are known, the hash of the sizes
/// between the two ends can be computed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Signature(u64);

impl Signature {
    #[inline]
    pub fn add(&mut self, size: u64) {
        self.0 = self.0.wrapping_mul(STEP).wrapping_add(crate::hash::mix(size + 1));
    }

    /// Returns the hash of the last `count` sizes. `before` is the hash of all earlier sizes.
    pub fn since(self, before: Signature, count: u64) -> u64 {
        self.0.wrapping_sub(before.0.wrapping_mul(power(count)))
    }
}

/// Returns `STEP` to the power of `exponent`.
fn power(mut exponent: u64) -> u64 {
    let (mut result, mut square) = (1u64, STEP);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result.wrapping_mul(square);
        }
        square = square.wrapping_mul(square);
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_of_a_region_instance_does_not_depend_on_earlier_blocks() {
        let part = |before: &[u64], sizes: &[u64]| {
            let mut all = Signature::default();
            before.iter().for_each(|&size| all.add(size));
            let begin = all;
            sizes.iter().for_each(|&size| all.add(size));
            all.since(begin, sizes.len() as u64)
        };
        assert_eq!(part(&[1, 2, 3], &[7, 8, 9]), part(&[], &[7, 8, 9]));
        assert_ne!(part(&[], &[7, 8, 9]), part(&[], &[7, 9, 8]));
        assert_ne!(part(&[5], &[0]), part(&[5], &[0, 0]));
    }
}

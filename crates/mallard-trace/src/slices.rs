//! Counts events over time, in a fixed number of time slices. The slices of a longer recording are
//! longer.

/// Number of time slices.
pub const SLICES: usize = 32;
const FIRST_SLICE_NS: i64 = 1_000_000;

/// The length of a time slice. The length doubles when the trace becomes longer than all slices
/// together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd)]
pub struct Width(u8);

impl Width {
    /// Returns the index of the slice that contains a time. Doubles the width until one of the
    /// slices contains it.
    #[inline]
    pub fn slice(&mut self, ns: i64) -> usize {
        let unit = ns.max(0) / FIRST_SLICE_NS;
        while unit >> self.0 >= SLICES as i64 {
            self.0 += 1;
        }
        (unit >> self.0) as usize
    }

    /// Returns twice the width.
    pub fn doubled(self) -> Width {
        Width(self.0 + 1)
    }
}

/// One count for each slice.
#[derive(Debug, Clone, Default)]
pub struct Slices {
    counts: [f64; SLICES],
    width: Width,
}

impl Slices {
    /// Adds `count` to a slice. `width` is the current slice width.
    #[inline]
    pub fn add(&mut self, width: Width, slice: usize, count: f64) {
        self.widen(width);
        self.counts[slice] += count;
    }

    /// Returns the counts. `width` is the current slice width.
    pub fn counts(&mut self, width: Width) -> &[f64; SLICES] {
        self.widen(width);
        &self.counts
    }

    /// Adds the counts of `other`. `width` is the current slice width.
    pub fn merge(&mut self, width: Width, other: &mut Slices) {
        self.widen(width);
        for (to, from) in self.counts.iter_mut().zip(other.counts(width)) {
            *to += from;
        }
    }

    #[inline]
    fn widen(&mut self, width: Width) {
        while self.width < width {
            self.width.0 += 1;
            for slice in 0..SLICES {
                let sum = |from: usize| self.counts[from] + self.counts[from + 1];
                self.counts[slice] = if slice < SLICES / 2 { sum(2 * slice) } else { 0.0 };
            }
        }
    }
}

/// The CPU time of a program.
pub struct CpuTime {
    /// The total in nanoseconds. `None` if the stream does not contain it.
    pub total_ns: Option<i64>,
    /// CPU time by slice, in nanoseconds.
    pub slices: Slices,
    /// The length of a time slice.
    pub width: Width,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_slices_double_when_the_run_exceeds_them() {
        let (mut width, mut slices) = (Width::default(), Slices::default());
        for ms in 0..100 {
            let slice = width.slice(ms * FIRST_SLICE_NS);
            slices.add(width, slice, 1.0);
        }
        let counts = slices.counts(width);
        assert_eq!(counts[..3], [4.0, 4.0, 4.0]);
        assert_eq!(counts.iter().sum::<f64>(), 100.0);
    }
}

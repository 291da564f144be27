//! Tracks how many bytes of a site are in use over time, and finds out whether they only grow.

use crate::slices::{Width, SLICES};

/// The number of time windows that are compared to find out whether a site only grows.
pub const WINDOWS: usize = 8;

/// The live bytes (bytes in use) of a site at the end of each time slice.
#[derive(Debug, Clone, Copy, Default)]
pub struct Levels {
    at: [f32; SLICES],
    /// How many slices have a level so far, counted from the first slice.
    known: u8,
    width: Width,
}

impl Levels {
    /// Stores `live` as the level of all slices before `slice` that have no level yet. Must be
    /// called before the live bytes change. `width` is the current slice width.
    #[inline]
    pub fn note(&mut self, width: Width, slice: usize, live: f64) {
        if self.width != width {
            self.widen(width);
        }
        if usize::from(self.known) < slice {
            self.fill(slice, live);
        }
    }

    #[cold]
    fn fill(&mut self, slice: usize, live: f64) {
        let known = usize::from(self.known);
        self.at[known..slice].fill(live as f32);
        self.known = slice as u8;
    }

    /// Doubles the slice width until the width is `width`. The level of a wider slice is the level
    /// at its end, which is that of the second of the two slices it replaces.
    #[cold]
    fn widen(&mut self, width: Width) {
        while self.width < width {
            self.width = self.width.doubled();
            self.known /= 2;
            for slice in 0..usize::from(self.known) {
                self.at[slice] = self.at[2 * slice + 1];
            }
        }
    }

    /// Returns the minimum level in each of eight windows of equal length, or `None` if fewer than
    /// eight slices are known.
    pub fn windows(&self) -> Option<[f64; WINDOWS]> {
        let known = usize::from(self.known);
        let level = |window: usize| {
            let slices = window * known / WINDOWS..(window + 1) * known / WINDOWS;
            f64::from(self.at[slices].iter().copied().fold(f32::INFINITY, f32::min))
        };
        (known >= WINDOWS).then(|| std::array::from_fn(level))
    }
}

/// Returns whether the live bytes only grow. `windows` has the minimum level of each window,
/// because blocks that are soon freed do not raise the minimum. At least six of the seven
/// differences between neighbouring windows must be rises, and no fall may exceed 5 % of the last
/// level. The second half of the time must add 25 % of the last level, and the last quarter 5 %, so
/// that a program that only fills its tables at the start does not count as growing.
pub fn only_grows(windows: &[f64; WINDOWS]) -> bool {
    let last = windows[WINDOWS - 1];
    let rises = windows.windows(2).filter(|pair| pair[1] > pair[0]).count();
    let falls = windows.windows(2).any(|pair| pair[0] - pair[1] > last / 20.0);
    let since = |window: usize| last - windows[window];
    last > 0.0
        && !falls
        && rises >= WINDOWS - 2
        && since(WINDOWS / 2 - 1) >= last / 4.0
        && since(WINDOWS - 3) >= last / 20.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_bytes_are_recorded_at_the_end_of_each_time_slice() {
        let (mut width, mut levels) = (Width::default(), Levels::default());
        for ms in 0..100i64 {
            let slice = width.slice(ms * 1_000_000);
            levels.note(width, slice, ms as f64);
        }
        levels.note(width, 25, 100.0);
        // With slices of 4 ms, the level of the first slice is the level before the change at 4 ms.
        assert_eq!(levels.at[..3], [4.0, 8.0, 12.0]);
        assert_eq!(levels.at[24], 100.0);
        let windows = levels.windows().unwrap();
        assert_eq!(windows[0], 4.0);
        assert!(only_grows(&windows), "{windows:?}");
    }

    #[test]
    fn a_site_counts_as_growing_only_if_it_grows_until_the_end() {
        assert!(only_grows(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]));
        assert!(only_grows(&[0.0, 2.0, 2.0, 4.0, 5.0, 6.0, 7.0, 8.0]));
        let filled_at_the_start = [8.0; 8];
        let filled_in_the_first_half = [2.0, 4.0, 6.0, 8.0, 8.0, 8.0, 8.0, 8.0];
        let falls = [1.0, 2.0, 3.0, 4.0, 5.0, 2.0, 7.0, 8.0];
        let stops = [1.0, 2.0, 3.0, 4.0, 5.0, 8.0, 8.01, 8.02];
        let creeps = [80.0, 80.1, 80.2, 80.3, 80.4, 80.5, 80.6, 80.7];
        for windows in [filled_at_the_start, filled_in_the_first_half, falls, stops, creeps] {
            assert!(!only_grows(&windows), "{windows:?}");
        }
        assert!(!only_grows(&[0.0; 8]));
    }

    #[test]
    fn a_short_run_has_no_windows() {
        let (mut width, mut levels) = (Width::default(), Levels::default());
        let slice = width.slice(5_000_000);
        levels.note(width, slice, 1.0);
        assert!(levels.windows().is_none());
    }
}

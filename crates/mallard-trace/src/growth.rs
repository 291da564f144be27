//! The bytes of a site over time, and whether they only grow.

use crate::slices::{Width, SLICES};

/// Windows that the run is divided into to tell whether a site only grows.
pub const WINDOWS: usize = 8;

/// The live bytes of a site at the end of each slice of the time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Levels {
    at: [f32; SLICES],
    /// Slices whose level is known.
    known: u8,
    width: Width,
}

impl Levels {
    /// Takes note that the live bytes were `live` until a change in `slice`. `width` is the current
    /// width of slices.
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

    /// The slices double: the level of each is that of its second half.
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

    /// The least level in each of the eight windows that the known slices make; nothing if there are
    /// fewer slices than windows.
    pub fn windows(&self) -> Option<[f64; WINDOWS]> {
        let known = usize::from(self.known);
        let level = |window: usize| {
            let slices = window * known / WINDOWS..(window + 1) * known / WINDOWS;
            f64::from(self.at[slices].iter().copied().fold(f32::INFINITY, f32::min))
        };
        (known >= WINDOWS).then(|| std::array::from_fn(level))
    }
}

/// Whether levels only grow. The least level of a window does not rise for blocks that come and go.
/// Growth must show in six of seven steps, in the last quarter of the time, and for a quarter of all
/// bytes in the second half: a program that fills its tables when it starts does not grow.
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
    fn levels_are_those_at_the_ends_of_slices_however_wide() {
        let (mut width, mut levels) = (Width::default(), Levels::default());
        for ms in 0..100i64 {
            let slice = width.slice(ms * 1_000_000);
            levels.note(width, slice, ms as f64);
        }
        levels.note(width, 25, 100.0);
        // Slices of 4 ms: the level of the first is that before the change at 4 ms.
        assert_eq!(levels.at[..3], [4.0, 8.0, 12.0]);
        assert_eq!(levels.at[24], 100.0);
        let windows = levels.windows().unwrap();
        assert_eq!(windows[0], 4.0);
        assert!(only_grows(&windows), "{windows:?}");
    }

    #[test]
    fn a_site_grows_only_if_it_does_so_to_the_end() {
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

//! Converts the clock ticks of an event stream to nanoseconds since the stream was opened.

use crate::format::{self, Header};

/// Converts clock ticks to times along a straight line through the last two checkpoints. A
/// checkpoint gives one moment both in ticks and in nanoseconds. Before the first checkpoint, the
/// slope of the line comes from the clock frequency in the header.
#[derive(Debug, Clone)]
pub struct Clock {
    /// A point on the line: tick `t` is at `ns` nanoseconds.
    t: u64,
    ns: f64,
    /// Nanoseconds per tick.
    slope: f64,
    /// The last checkpoint (ticks, nanoseconds), where the next line begins.
    last: (u64, u64),
    ns_per_tick: f64,
    is_ns: bool,
}

impl Clock {
    /// Makes a clock from the time and the frequency in the header. A frequency of 0 counts as 1
    /// GHz.
    pub fn new(header: &Header) -> Self {
        let hz = if header.clock_hz == 0 { 1_000_000_000 } else { header.clock_hz };
        let ns_per_tick = 1e9 / hz as f64;
        Clock {
            t: header.start,
            ns: 0.0,
            slope: ns_per_tick,
            last: (header.start, 0),
            ns_per_tick,
            is_ns: header.clock == format::clock::MONOTONIC && hz == 1_000_000_000,
        }
    }

    /// Adds a checkpoint: tick `t` is at `ns` nanoseconds. Ignores the checkpoint unless both
    /// numbers are greater than those of the last checkpoint.
    pub fn checkpoint(&mut self, t: u64, ns: u64) {
        let (last_t, last_ns) = self.last;
        if t > last_t && ns > last_ns {
            self.t = last_t;
            self.ns = last_ns as f64;
            self.slope = (ns - last_ns) as f64 / (t - last_t) as f64;
            self.last = (t, ns);
        }
    }

    /// Returns the time of an event, in nanoseconds since the stream was opened.
    #[inline]
    pub fn ns(&self, t: u64) -> i64 {
        if self.is_ns {
            return t.wrapping_sub(self.last.0).wrapping_add(self.last.1) as i64;
        }
        let ticks = t.wrapping_sub(self.t) as i64;
        (self.ns + ticks as f64 * self.slope) as i64
    }

    /// Converts a duration from ticks to nanoseconds.
    #[inline]
    pub fn duration_ns(&self, ticks: u32) -> i32 {
        (f64::from(ticks) * self.ns_per_tick) as i32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(clock: u32, clock_hz: u64) -> Header {
        Header { clock_hz, start: 1000, start_unix: 0, clock, pid: 1, sample_bytes: 0 }
    }

    #[test]
    fn a_clock_in_nanoseconds_counts_from_the_start() {
        let clock = Clock::new(&header(format::clock::MONOTONIC, 1_000_000_000));
        assert_eq!((clock.ns(1000), clock.ns(1234), clock.ns(900)), (0, 234, -100));
        assert_eq!(clock.duration_ns(50), 50);
    }

    #[test]
    fn times_between_two_clock_checkpoints_are_interpolated() {
        let mut clock = Clock::new(&header(format::clock::TSC, 2_000_000_000));
        assert_eq!(clock.ns(3000), 1000);
        clock.checkpoint(2000, 1000);
        clock.checkpoint(3000, 4000);
        assert_eq!((clock.ns(2000), clock.ns(2500), clock.ns(3000)), (1000, 2500, 4000));
    }

    #[test]
    fn clock_readings_that_go_backwards_are_ignored() {
        let mut clock = Clock::new(&header(format::clock::TSC, 1_000_000_000));
        clock.checkpoint(2000, 1000);
        clock.checkpoint(1500, 900);
        clock.checkpoint(2500, 1000);
        assert_eq!(clock.ns(3000), 2000);
    }
}

//! Reads the clock of a stream, which is the time stamp counter of the processor if its rate is
//! constant, otherwise the monotonic clock of the system.

use mallard_trace::format::clock;
use nix::time::{clock_gettime, ClockId};
use std::time::{Duration, Instant};

/// Returns the number of the clock that the recorder should use.
pub fn best() -> u32 {
    if has_constant_counter() {
        clock::TSC
    } else {
        clock::MONOTONIC
    }
}

/// Returns whether the time stamp counter has the same rate in all power states of the processor.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, unused_unsafe)] // in older compilers, `__cpuid` is unsafe
pub fn has_constant_counter() -> bool {
    use core::arch::x86_64::__cpuid;
    const ADVANCED_POWER: u32 = 0x8000_0007;
    const INVARIANT: u32 = 1 << 8; // bit of EDX: the counter has the same rate in all power states
                                   // SAFETY: each 64-bit x86 processor has the instruction.
    unsafe {
        __cpuid(0x8000_0000).eax >= ADVANCED_POWER && __cpuid(ADVANCED_POWER).edx & INVARIANT != 0
    }
}

/// Always returns false, because this code cannot read the time stamp counter of other processors.
#[cfg(not(target_arch = "x86_64"))]
pub fn has_constant_counter() -> bool {
    false
}

/// Returns the time on a clock, in ticks.
pub fn now(clock: u32) -> u64 {
    if clock == clock::TSC {
        counter()
    } else {
        monotonic_ns()
    }
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
fn counter() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, and Linux permits it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn counter() -> u64 {
    monotonic_ns()
}

/// Returns the time of CLOCK_MONOTONIC in nanoseconds.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("Linux has this clock");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

/// Returns the ticks of a clock per second, measured over ten milliseconds. The checkpoints of a
/// stream make the figure exact later.
pub fn per_second(clock: u32) -> u64 {
    if clock != clock::TSC {
        return 1_000_000_000;
    }
    let (ticks, ns) = (now(clock), monotonic_ns());
    std::thread::sleep(std::time::Duration::from_millis(10));
    let (ticks, ns) = (now(clock) - ticks, monotonic_ns() - ns);
    (ticks as f64 * 1e9 / ns as f64) as u64
}

/// Returns the ticks that two readings of a clock add to the duration of a call that is timed as
/// the recorder does it. This is the minimum of the means of many tries, so that no interruption
/// counts. With a time stamp counter that advances in steps of 26 ticks, this was 57 ticks, or 22
/// ns; malloc and free took 10 ns each.
pub fn of_reading(clock: u32) -> u32 {
    const READINGS: u64 = 64;
    const TRIES_MIN: u32 = 8;
    const ENOUGH: Duration = Duration::from_millis(1);
    let begin = Instant::now();
    let mut least = u64::from(u32::MAX);
    let mut tries = 0;
    while tries < TRIES_MIN || begin.elapsed() < ENOUGH {
        let all = (0..READINGS).map(|_| duration_of_nothing(clock)).sum::<u64>();
        least = least.min(all / READINGS);
        tries += 1;
    }
    least as u32
}

fn duration_of_nothing(clock: u32) -> u64 {
    let (begin, end) = match clock {
        clock::TSC => counter_twice(),
        _ => (monotonic_ns(), monotonic_ns()),
    };
    end.saturating_sub(begin)
}

/// Reads the time stamp counter as `ticks_before` and `ticks_after` of src/os/ticks_linux.hpp do.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, unused_unsafe)] // in newer compilers, `_mm_lfence` is safe
fn counter_twice() -> (u64, u64) {
    use core::arch::x86_64::{__rdtscp, _mm_lfence, _rdtsc};
    let mut processor = 0;
    // SAFETY: every x86-64 processor whose counter is constant has these instructions, and Linux
    // permits them.
    unsafe {
        _mm_lfence();
        let begin = _rdtsc();
        _mm_lfence();
        (begin, __rdtscp(&mut processor))
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn counter_twice() -> (u64, u64) {
    (counter(), counter())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_measured_cost_of_two_clock_reads_is_plausible() {
        for clock in [clock::MONOTONIC, best()] {
            let ticks = of_reading(clock);
            let ns = f64::from(ticks) * 1e9 / per_second(clock) as f64;
            assert!((1.0..10_000.0).contains(&ns), "{ticks} ticks, {ns} ns of clock {clock}");
        }
    }
}

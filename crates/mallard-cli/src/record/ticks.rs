//! The clock of a stream: the time stamp counter of the processor where it is constant, otherwise
//! the monotonic clock of the system.

use mallard_trace::format::clock;
use nix::time::{clock_gettime, ClockId};

/// The number of the clock that the recorder is to use.
pub fn best() -> u32 {
    if has_constant_counter() {
        clock::TSC
    } else {
        clock::MONOTONIC
    }
}

/// Whether the time stamp counter runs at one rate in all power states of the processor.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, unused_unsafe)] // older compilers call `__cpuid` unsafe
pub fn has_constant_counter() -> bool {
    use core::arch::x86_64::__cpuid;
    const ADVANCED_POWER: u32 = 0x8000_0007;
    const INVARIANT: u32 = 1 << 8; // bit of EDX: the counter runs at one rate in all power states
                                   // SAFETY: each 64-bit x86 processor has the instruction.
    unsafe {
        __cpuid(0x8000_0000).eax >= ADVANCED_POWER && __cpuid(ADVANCED_POWER).edx & INVARIANT != 0
    }
}

/// Always false: this code cannot read the time stamp counter of other processors.
#[cfg(not(target_arch = "x86_64"))]
pub fn has_constant_counter() -> bool {
    false
}

/// The time on a clock, in ticks.
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

/// Nanoseconds of CLOCK_MONOTONIC.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("Linux has this clock");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

/// Ticks of a clock in a second, measured over ten milliseconds. The checkpoints of a stream make
/// the figure exact.
pub fn per_second(clock: u32) -> u64 {
    if clock != clock::TSC {
        return 1_000_000_000;
    }
    let (ticks, ns) = (now(clock), monotonic_ns());
    std::thread::sleep(std::time::Duration::from_millis(10));
    let (ticks, ns) = (now(clock) - ticks, monotonic_ns() - ns);
    (ticks as f64 * 1e9 / ns as f64) as u64
}

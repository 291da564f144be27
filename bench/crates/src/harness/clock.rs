//! Reads the clocks: the CPU time of a thread, the CPU time of the process, the wall time, and the
//! processor's counter.

use std::sync::OnceLock;

fn clock(which: libc::clockid_t) -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes to `time`, which is a valid timespec.
    unsafe { libc::clock_gettime(which, &mut time) };
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Returns the CPU time of this thread. Other programs on the machine disturb it less than wall
/// time.
pub fn cpu_ns() -> f64 {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

pub fn process_cpu_ns() -> f64 {
    clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

pub fn wall_ns() -> f64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// Reads the processor's counter, for times that are too short for a clock.
#[inline(always)]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the counter.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        wall_ns() as u64
    }
}

pub fn ns_per_tick() -> f64 {
    static RATIO: OnceLock<f64> = OnceLock::new();
    *RATIO.get_or_init(|| {
        // Uses the median of short tries, because an interrupt spoils only one of them.
        let mut tries: Vec<f64> = (0..5).map(|_| measure()).collect();
        tries.sort_by(f64::total_cmp);
        tries[2]
    })
}

fn measure() -> f64 {
    let (from_ns, from) = (wall_ns(), ticks());
    loop {
        let ns = wall_ns() - from_ns;
        if ns >= 2e5 {
            return ns / (ticks() - from) as f64;
        }
    }
}

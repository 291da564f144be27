//! Finds out whether a system call filter (seccomp) permits the calls that load the recorder.
//!
//! A filter is a program for a small machine (classic BPF), which receives a system
//! call and returns the action of the kernel. Only root may read the filters of a stopped thread.

use nix::libc;

/// An instruction of a filter, as in the kernel's struct `sock_filter`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Instruction {
    pub code: u16,
    pub yes: u8,
    pub no: u8,
    pub k: u32,
}

/// The number by which a filter identifies the architecture x86-64.
const ARCHITECTURE: u32 = 0xc000_003e;
const ALLOW: u32 = 0x7fff_0000;
const LOG: u32 = 0x7ffc_0000;
const ERRNO: u32 = 0x0005_0000;
const ACTION: u32 = 0xffff_0000;
/// The action if a filter is invalid, which is to kill the process.
const KILL: u32 = 0;
/// The maximum number of instructions that a filter may execute, which no valid filter exceeds.
const STEPS_MAX: usize = 1 << 16;

/// A system call that the process makes while it loads the recorder, and while it is recorded.
struct Needed {
    name: &'static str,
    number: libc::c_long,
    arguments: [u64; 6],
    /// Whether the process continues if the call fails.
    may_fail: bool,
}

const fn needs(name: &'static str, number: libc::c_long, arguments: [u64; 6]) -> Needed {
    Needed { name, number, arguments, may_fail: false }
}
const fn tries(name: &'static str, number: libc::c_long) -> Needed {
    Needed { name, number, arguments: [0; 6], may_fail: true }
}

const THREAD_FLAGS: u64 = 0x3d_0f00; // those of pthread_create
const NEEDED: [Needed; 29] = [
    needs("mmap", libc::SYS_mmap, [0, 4096, 3, 0x22, u64::MAX, 0]),
    needs("mmap", libc::SYS_mmap, [0, 4096, 5, 0x802, 3, 0]),
    needs("mprotect", libc::SYS_mprotect, [4096, 4096, 5, 0, 0, 0]),
    needs("mprotect", libc::SYS_mprotect, [4096, 4096, 3, 0, 0, 0]),
    needs("munmap", libc::SYS_munmap, [4096, 4096, 0, 0, 0, 0]),
    needs("socketpair", libc::SYS_socketpair, [1, 0x80005, 0, 4096, 0, 0]),
    needs("recvmsg", libc::SYS_recvmsg, [3, 4096, 0x4000_0000, 0, 0, 0]),
    needs("recvfrom", libc::SYS_recvfrom, [3, 4096, 1, 0, 0, 0]),
    needs("sendto", libc::SYS_sendto, [3, 4096, 1, 0x4000, 0, 0]),
    needs("openat", libc::SYS_openat, [0xffff_ff9c, 4096, 0x80000, 0, 0, 0]),
    needs("read", libc::SYS_read, [3, 4096, 832, 0, 0, 0]),
    needs("pread64", libc::SYS_pread64, [3, 4096, 64, 64, 0, 0]),
    needs("newfstatat", libc::SYS_newfstatat, [3, 4096, 4096, 0x1000, 0, 0]),
    tries("fstat", libc::SYS_fstat),
    needs("close", libc::SYS_close, [3, 0, 0, 0, 0, 0]),
    needs("madvise", libc::SYS_madvise, [4096, 4096, 18, 0, 0, 0]),
    needs("clone", libc::SYS_clone, [THREAD_FLAGS, 4096, 4096, 4096, 4096, 0]),
    tries("clone3", libc::SYS_clone3),
    needs("set_robust_list", libc::SYS_set_robust_list, [4096, 24, 0, 0, 0, 0]),
    tries("rseq", libc::SYS_rseq),
    tries("membarrier", libc::SYS_membarrier),
    needs("futex", libc::SYS_futex, [4096, 0x85, 0, 0, 4096, 0]),
    needs("rt_sigprocmask", libc::SYS_rt_sigprocmask, [2, 4096, 4096, 8, 0, 0]),
    needs("prctl", libc::SYS_prctl, [15, 4096, 0, 0, 0, 0]),
    tries("readlink", libc::SYS_readlink),
    tries("getcwd", libc::SYS_getcwd),
    needs("gettid", libc::SYS_gettid, [0; 6]),
    needs("getpid", libc::SYS_getpid, [0; 6]),
    needs("nanosleep", libc::SYS_clock_nanosleep, [0, 0, 4096, 4096, 0, 0]),
];

/// Returns the first needed system call that one of the filters forbids. `None` if the filters
/// permit all needed calls.
pub fn forbidden(filters: &[Vec<Instruction>]) -> Option<&'static str> {
    let is_permitted = |call: &Needed| {
        filters.iter().all(|filter| {
            let action = run(filter, call.number as u32, &call.arguments) & ACTION;
            [ALLOW, LOG].contains(&action) || call.may_fail && action == ERRNO
        })
    };
    NEEDED.iter().find(|call| !is_permitted(call)).map(|call| call.name)
}

/// Returns a word of the input of a filter: number of the call, architecture, address of the
/// instruction, arguments.
fn word(at: u32, number: u32, arguments: &[u64; 6]) -> Option<u32> {
    match at {
        0 => Some(number),
        4 => Some(ARCHITECTURE),
        8 | 12 => Some(0),
        16..64 if at % 4 == 0 => {
            let argument = arguments[(at as usize - 16) / 8];
            Some(if at % 8 == 0 { argument as u32 } else { (argument >> 32) as u32 })
        }
        _ => None,
    }
}

/// Runs a filter, and returns its action for a system call.
fn run(filter: &[Instruction], number: u32, arguments: &[u64; 6]) -> u32 {
    let (mut a, mut x, mut memory) = (0u32, 0u32, [0u32; 16]);
    let mut at = 0;
    for _ in 0..STEPS_MAX {
        let Some(&Instruction { code, yes, no, k }) = filter.get(at) else { return KILL };
        at += 1;
        let slot = (k & 15) as usize;
        let source = if code & 0x08 == 0 { k } else { x };
        let mut jump = |is_true: bool| at += usize::from(if is_true { yes } else { no });
        match code {
            0x20 => match word(k, number, arguments) {
                Some(word) => a = word,
                None => return KILL,
            },
            0x00 => a = k,
            0x01 => x = k,
            0x60 => a = memory[slot],
            0x61 => x = memory[slot],
            0x80 => a = 64, // the bytes of what the filter sees
            0x81 => x = 64,
            0x02 => memory[slot] = a,
            0x03 => memory[slot] = x,
            0x07 => x = a,
            0x87 => a = x,
            0x05 => at += k as usize,
            0x15 | 0x1d => jump(a == source),
            0x25 | 0x2d => jump(a > source),
            0x35 | 0x3d => jump(a >= source),
            0x45 | 0x4d => jump(a & source != 0),
            0x04 | 0x0c => a = a.wrapping_add(source),
            0x14 | 0x1c => a = a.wrapping_sub(source),
            0x24 | 0x2c => a = a.wrapping_mul(source),
            0x34 | 0x3c => match a.checked_div(source) {
                Some(quotient) => a = quotient,
                None => return KILL,
            },
            0x44 | 0x4c => a |= source,
            0x54 | 0x5c => a &= source,
            0x64 | 0x6c => a = a.checked_shl(source).unwrap_or(0),
            0x74 | 0x7c => a = a.checked_shr(source).unwrap_or(0),
            0xa4 | 0xac => a ^= source,
            0x84 => a = a.wrapping_neg(),
            0x06 => return k,
            0x16 => return a,
            _ => return KILL,
        }
    }
    KILL
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(k: u32) -> Instruction {
        Instruction { code: 0x20, yes: 0, no: 0, k }
    }
    fn jump_if_equal(k: u32, yes: u8, no: u8) -> Instruction {
        Instruction { code: 0x15, yes, no, k }
    }
    fn end(k: u32) -> Instruction {
        Instruction { code: 0x06, yes: 0, no: 0, k }
    }

    #[test]
    fn a_seccomp_filter_that_forbids_a_needed_system_call_is_reported_with_the_call() {
        let forbids = |number: libc::c_long, action: u32| {
            vec![load(0), jump_if_equal(number as u32, 0, 1), end(action), end(ALLOW)]
        };
        assert_eq!(forbidden(&[]), None);
        assert_eq!(forbidden(&[vec![end(ALLOW)], vec![end(LOG)]]), None);
        assert_eq!(forbidden(&[vec![end(KILL)]]), Some("mmap"));
        assert_eq!(forbidden(&[forbids(libc::SYS_openat, ERRNO | 1)]), Some("openat"));
        assert_eq!(
            forbidden(&[vec![end(ALLOW)], forbids(libc::SYS_recvmsg, KILL)]),
            Some("recvmsg")
        );
        // The C library goes on without some calls, unless they end the process.
        assert_eq!(forbidden(&[forbids(libc::SYS_clone3, ERRNO | 38)]), None);
        assert_eq!(forbidden(&[forbids(libc::SYS_clone3, KILL)]), Some("clone3"));
        // A filter may examine arguments. This filter forbids executable memory.
        let rights = vec![
            load(0),
            jump_if_equal(libc::SYS_mprotect as u32, 0, 3),
            load(32),
            Instruction { code: 0x45, yes: 0, no: 1, k: 4 },
            end(ERRNO | 1),
            end(ALLOW),
        ];
        assert_eq!(forbidden(&[rights]), Some("mprotect"));
        assert_eq!(forbidden(&[vec![load(3)]]), Some("mmap"));
    }
}

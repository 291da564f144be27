//! What the engine has, counted when somebody asks.

use crate::raw;
use core::fmt;
use core::mem::MaybeUninit;

const CLASSES: usize = 80;

/// What malloc and all heaps have; see [`stats`].
///
/// While other threads are at work, numbers are of slightly different moments. As text it is what
/// `MALLARD_STATS=text` prints.
#[repr(C)]
#[derive(Clone, Debug)]
pub struct Statistics {
    /// Blocks that the program has.
    pub blocks_live: usize,
    /// Their usable sizes.
    pub bytes_live: usize,
    /// In the lists of threads.
    pub bytes_cached: usize,
    /// From the system, free or not.
    pub bytes_taken: usize,
    /// The most that this was.
    pub bytes_taken_max: usize,
    /// Free, and not given back.
    pub bytes_idle: usize,
    /// Given back to the system, since the start.
    pub bytes_returned: usize,
    /// Blocks above 1 MiB.
    pub large_blocks: usize,
    /// In those.
    pub large_bytes: usize,
    /// Threads that have had a block; those that ended are counted until another takes their
    /// place.
    pub threads: usize,
    classes: [ClassStatistics; CLASSES],
}

/// The blocks of one size; see [`Statistics::classes`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ClassStatistics {
    /// Of a block.
    pub bytes: usize,
    /// Blocks that the program has.
    pub live: usize,
    /// Blocks in the lists of threads.
    pub cached: usize,
    /// What they are cut from.
    pub slabs: usize,
}

/// Counts: it looks at each 16 KiB once, and allocates nothing.
///
/// ```
/// # #[global_allocator]
/// # static A: mallard_malloc::Mallard = mallard_malloc::Mallard;
/// let before = mallard_malloc::stats();
/// let numbers = vec![1u64; 100_000];
/// let now = mallard_malloc::stats();
/// assert!(now.bytes_live - before.bytes_live >= 800_000);
/// println!("{now}");
/// println!("{}", now.json());
/// # drop(numbers);
/// ```
pub fn stats() -> Statistics {
    let mut all = MaybeUninit::<Statistics>::uninit();
    // SAFETY: the engine's structure has the same members, and is written whole.
    unsafe {
        raw::mallard_rust_statistics(all.as_mut_ptr());
        all.assume_init()
    }
}

/// Prints them as text on descriptor 2, without allocating.
///
/// ```
/// mallard_malloc::print_stats();
/// ```
pub fn print_stats() {
    // SAFETY: writes to the descriptor.
    unsafe { raw::mallard_rust_print_report(false) }
}

impl Statistics {
    /// Each size of which there are slabs, the smallest first.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static A: mallard_malloc::Mallard = mallard_malloc::Mallard;
    /// let boxes: Vec<Box<[u8; 48]>> = (0..100).map(|_| Box::new([0; 48])).collect();
    /// let stats = mallard_malloc::stats();
    /// let of_48 = stats.classes().find(|c| c.bytes == 48).unwrap();
    /// assert!(of_48.live >= boxes.len());
    /// ```
    pub fn classes(&self) -> impl Iterator<Item = &ClassStatistics> {
        self.classes.iter().filter(|c| c.slabs != 0)
    }

    /// One line, as `MALLARD_STATS=json` prints it.
    ///
    /// ```
    /// let line = mallard_malloc::stats().json().to_string();
    /// assert!(line.starts_with("{\"blocks_live\":"));
    /// ```
    pub fn json(&self) -> impl fmt::Display + '_ {
        Json(self)
    }

    fn write(&self, json: bool, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0u8; 8192];
        // SAFETY: so many bytes may be written.
        let bytes = unsafe { raw::mallard_rust_report(self, json, text.as_mut_ptr(), text.len()) };
        f.write_str(core::str::from_utf8(&text[..bytes]).unwrap_or_default())
    }
}

impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(false, f)
    }
}

struct Json<'a>(&'a Statistics);

impl fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write(true, f)
    }
}

/// Gives free memory back to the system, but for `keep` bytes; whether there was some. What this
/// thread keeps goes too, and what those left that ended; not what other threads keep.
///
/// ```
/// mallard_malloc::trim(0);
/// ```
pub fn trim(keep: usize) -> bool {
    // SAFETY: moves nothing that anybody has.
    unsafe { raw::mallard_trim(keep) != 0 }
}

//! Statistics of malloc and of all heaps, computed on request.

use crate::ffi;
use core::fmt;
use core::mem::MaybeUninit;

unsafe extern "C" {
    fn mallard_rust_statistics(out: *mut Statistics);
    fn mallard_rust_report(of: *const Statistics, json: bool, to: *mut u8, room: usize) -> usize;
    fn mallard_rust_print_report(json: bool);
}

const CLASSES: usize = 80;

/// Statistics for malloc and all heaps, from [`statistics`].
///
/// If other threads allocate, the numbers are read at slightly different moments. `Display` writes
/// the text that `MALLARD_STATS=text` prints.
#[repr(C)]
#[derive(Clone, Debug)]
pub struct Statistics {
    /// Number of blocks that the program uses.
    pub blocks_live: usize,
    /// Sum of the usable sizes of the live blocks.
    pub bytes_live: usize,
    /// Free bytes in the caches of threads.
    pub bytes_cached: usize,
    /// Bytes allocated from the operating system, in use or not.
    pub bytes_taken: usize,
    /// The largest `bytes_taken` so far.
    pub bytes_taken_max: usize,
    /// Free bytes that are not returned to the operating system.
    pub bytes_idle: usize,
    /// Bytes returned to the operating system since the start.
    pub bytes_returned: usize,
    /// Number of blocks above 1 MiB.
    pub large_blocks: usize,
    /// Bytes of the blocks above 1 MiB.
    pub large_bytes: usize,
    /// Number of threads that have allocated. An exited thread still counts until a new thread
    /// reclaims its cache.
    pub threads: usize,
    classes: [ClassStatistics; CLASSES],
}

/// Statistics of one size class, from [`Statistics::classes`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ClassStatistics {
    /// The usable size of a block, in bytes.
    pub bytes: usize,
    /// Number of blocks that the program uses.
    pub live: usize,
    /// Number of free blocks in the caches of threads.
    pub cached: usize,
    /// Number of slabs in this class. A slab is a run of 16 KiB slices that contains blocks.
    pub slabs: usize,
}

/// Computes the statistics, without allocating. The time is proportional to the memory of malloc
/// and all heaps (one step for each 16 KiB).
///
/// ```
/// # #[global_allocator]
/// # static A: mallard_malloc::Mallard = mallard_malloc::Mallard;
/// let before = mallard_malloc::statistics();
/// let numbers = vec![1u64; 100_000];
/// let now = mallard_malloc::statistics();
/// assert!(now.bytes_live - before.bytes_live >= 800_000);
/// println!("{now}");
/// println!("{}", now.json());
/// # drop(numbers);
/// ```
pub fn statistics() -> Statistics {
    let mut all = MaybeUninit::<Statistics>::uninit();
    // SAFETY: the engine's structure has the same layout, and the call initialises all of it.
    unsafe {
        mallard_rust_statistics(all.as_mut_ptr());
        all.assume_init()
    }
}

/// Prints the statistics as text to standard error, without allocating.
///
/// ```
/// mallard_malloc::print_statistics();
/// ```
pub fn print_statistics() {
    // SAFETY: the function only prints.
    unsafe { mallard_rust_print_report(false) }
}

impl Statistics {
    /// Returns the statistics of the size classes that have slabs, smallest first.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static A: mallard_malloc::Mallard = mallard_malloc::Mallard;
    /// let boxes: Vec<Box<[u8; 48]>> = (0..100).map(|_| Box::new([0; 48])).collect();
    /// let statistics = mallard_malloc::statistics();
    /// let of_48 = statistics.classes().find(|c| c.bytes == 48).unwrap();
    /// assert!(of_48.live >= boxes.len());
    /// ```
    pub fn classes(&self) -> impl Iterator<Item = &ClassStatistics> {
        self.classes.iter().filter(|c| c.slabs != 0)
    }

    /// Returns the statistics as one line of JSON, as `MALLARD_STATS=json` prints it.
    ///
    /// ```
    /// let line = mallard_malloc::statistics().json().to_string();
    /// assert!(line.starts_with("{\"blocks_live\":"));
    /// ```
    pub fn json(&self) -> impl fmt::Display + '_ {
        Json(self)
    }

    fn write(&self, json: bool, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0u8; 8192];
        // SAFETY: the buffer has the length that the call passes.
        let bytes = unsafe { mallard_rust_report(self, json, text.as_mut_ptr(), text.len()) };
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

/// Returns free memory to the operating system, except `keep` bytes. First empties the caches of
/// this thread and of all threads that are not allocating at the moment. Returns `false` if there
/// was no memory to return.
///
/// ```
/// mallard_malloc::trim(0);
/// ```
pub fn trim(keep: usize) -> bool {
    // SAFETY: trimming moves no block.
    unsafe { ffi::mallard_trim(keep) != 0 }
}

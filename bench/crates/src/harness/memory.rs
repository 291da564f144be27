//! Measures the memory of this process. Provides arrays whose memory is not counted.

use std::fs::File;
use std::io::Read;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Returns the resident memory in KiB, counted page by page. Returns 0 if the kernel does not
/// report it.
pub fn resident_kib() -> f64 {
    kib_of("/proc/self/smaps_rollup", "\nRss:")
}

/// Returns the resident memory by the kernel's counters, in KiB. The kernel updates them in
/// batches, so the result may be wrong by up to `counter_error_kib`.
pub fn counted_kib() -> f64 {
    kib_of("/proc/self/status", "\nVmRSS:")
}

/// Returns the peak of the counters in KiB.
pub fn peak_counted_kib() -> f64 {
    kib_of("/proc/self/status", "\nVmHWM:")
}

/// Returns the largest error of the counters in KiB, which is 32 pages for each processor.
pub fn counter_error_kib() -> f64 {
    // SAFETY: sysconf only reads a number.
    128.0 * unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }.max(1) as f64
}

/// Reads a field of a file in /proc without allocating, because the heap itself may be under
/// measurement.
fn kib_of(file: &str, field: &str) -> f64 {
    let mut text = [0; 8192];
    let mut size = 0;
    if let Ok(mut from) = File::open(file) {
        while let Ok(got @ 1..) = from.read(&mut text[size..]) {
            size += got;
        }
    }
    let text = std::str::from_utf8(&text[..size]).unwrap_or_default();
    let rest = text.find(field).map_or("", |at| &text[at + field.len()..]);
    rest.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0.0)
}

/// Makes all pages of the program's code resident, so that only data causes page faults afterwards.
pub fn load_code() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    for line in maps.lines().filter(|l| l.contains(" r-xp ") || l.contains(" r--p ")) {
        let range = line.split_once(' ').and_then(|(range, _)| range.split_once('-'));
        let number = |hex| usize::from_str_radix(hex, 16).unwrap_or(0);
        let Some((from, to)) = range.map(|(from, to)| (number(from), number(to))) else { continue };
        let first = std::ptr::without_provenance_mut(from);
        // SAFETY: madvise changes no byte. (If the kernel fails the call, later accesses cause page
        // faults.)
        unsafe { libc::madvise(first, to - from, libc::MADV_POPULATE_READ) };
    }
}

/// Sets the peak to the current resident memory, if the kernel allows that.
pub fn restart_peak_resident() {
    let _ = std::fs::write("/proc/self/clear_refs", "5\n");
}

/// The number of bytes that all tables have now.
static NOW: AtomicUsize = AtomicUsize::new(0);

pub fn table_kib() -> f64 {
    NOW.load(Ordering::Relaxed) as f64 / 1024.0
}

/// An array of the harness, such as indices or samples. The memory comes directly from the
/// operating system, so it neither warms nor fragments a measured heap. The bytes are counted, so
/// that they can be subtracted from a contender's memory. Handles and keys are not in tables,
/// because their size is the contender's choice.
pub struct Table<T: Copy> {
    first: *mut T,
    count: usize,
}

// SAFETY: a table owns its values, which are plain data.
unsafe impl<T: Copy + Send> Send for Table<T> {}
// SAFETY: a shared table can only be read.
unsafe impl<T: Copy + Sync> Sync for Table<T> {}

impl<T: Copy> Table<T> {
    /// Makes a table of the values. All its pages are resident.
    pub fn new(values: impl ExactSizeIterator<Item = T>) -> Self {
        let count = values.len();
        let bytes = Self::bytes(count);
        // SAFETY: this makes a new anonymous mapping and touches no other memory.
        let data = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
                -1,
                0,
            )
        };
        assert!(data != libc::MAP_FAILED, "no memory for a table of {bytes} bytes");
        let first = data.cast::<T>();
        for (i, value) in values.enumerate().take(count) {
            // SAFETY: the mapping has room for `count` values, and a page is aligned for every type
            // here.
            unsafe { first.add(i).write(value) };
        }
        NOW.fetch_add(bytes, Ordering::Relaxed);
        Self { first, count }
    }

    fn bytes(count: usize) -> usize {
        (count * size_of::<T>()).max(1)
    }
}

impl<T: Copy> Drop for Table<T> {
    fn drop(&mut self) {
        NOW.fetch_sub(Self::bytes(self.count), Ordering::Relaxed);
        // SAFETY: `new` made this mapping, and nothing borrows from it any more.
        unsafe { libc::munmap(self.first.cast(), Self::bytes(self.count)) };
    }
}

impl<T: Copy> Deref for Table<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: `new` wrote `count` values to the mapping.
        unsafe { std::slice::from_raw_parts(self.first, self.count) }
    }
}

impl<T: Copy> DerefMut for Table<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: `new` wrote `count` values to the mapping, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.first, self.count) }
    }
}

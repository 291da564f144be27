//! What this process holds of the machine's memory, and arrays of the harness that do not count.

use std::fs::File;
use std::io::Read;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};

/// In KiB, counted page by page; 0 where the kernel does not tell.
pub fn resident_kib() -> f64 {
    kib_of("/proc/self/smaps_rollup", "\nRss:")
}

/// What the kernel's counters say, which it sums up in batches: off by up to `COUNTER_ERROR_KIB`.
pub fn counted_kib() -> f64 {
    kib_of("/proc/self/status", "\nVmRSS:")
}

/// The most that the counters have seen.
pub fn peak_counted_kib() -> f64 {
    kib_of("/proc/self/status", "\nVmHWM:")
}

/// 32 pages a processor.
pub fn counter_error_kib() -> f64 {
    // SAFETY: it asks for a number.
    128.0 * unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }.max(1) as f64
}

/// Without allocating: the heap may be what is measured.
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

/// All code is present from now on: what is faulted in later is data.
pub fn load_code() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    for line in maps.lines().filter(|l| l.contains(" r-xp ") || l.contains(" r--p ")) {
        let range = line.split_once(' ').and_then(|(range, _)| range.split_once('-'));
        let number = |hex| usize::from_str_radix(hex, 16).unwrap_or(0);
        let Some((from, to)) = range.map(|(from, to)| (number(from), number(to))) else { continue };
        let first = std::ptr::without_provenance_mut(from);
        // SAFETY: it changes no byte. What the kernel refuses is faulted in later.
        unsafe { libc::madvise(first, to - from, libc::MADV_POPULATE_READ) };
    }
}

/// The peak begins anew at what is held now, if the kernel allows it.
pub fn restart_peak_resident() {
    let _ = std::fs::write("/proc/self/clear_refs", "5\n");
}

/// Bytes of tables.
static NOW: AtomicUsize = AtomicUsize::new(0);

pub fn table_kib() -> f64 {
    NOW.load(Ordering::Relaxed) as f64 / 1024.0
}

/// An array of the harness: indices, samples. It comes straight from the system, so it neither
/// warms nor fragments a heap that is measured, and it is counted, so that a contender's memory
/// can be told from the harness's. Handles and keys are no part of it: how wide they are is a
/// contender's own doing.
pub struct Table<T: Copy> {
    first: *mut T,
    count: usize,
}

// SAFETY: it owns plain values.
unsafe impl<T: Copy + Send> Send for Table<T> {}
// SAFETY: shared, it can only be read.
unsafe impl<T: Copy + Sync> Sync for Table<T> {}

impl<T: Copy> Table<T> {
    /// All pages are present.
    pub fn new(values: impl ExactSizeIterator<Item = T>) -> Self {
        let count = values.len();
        let bytes = Self::bytes(count);
        // SAFETY: a mapping of its own, of which nothing is asked but memory.
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
            // SAFETY: the mapping has room for `count` values, and a page is aligned for all.
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
        // SAFETY: it is the mapping of `new`, and nobody borrows from it any more.
        unsafe { libc::munmap(self.first.cast(), Self::bytes(self.count)) };
    }
}

impl<T: Copy> Deref for Table<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: `new` wrote `count` values there.
        unsafe { std::slice::from_raw_parts(self.first, self.count) }
    }
}

impl<T: Copy> DerefMut for Table<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: `new` wrote `count` values there, and `self` is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.first, self.count) }
    }
}

//! The functions of the operating system, their constants and errors, and mapped memory.
//!
//! The system functions are declared here, so that the crate needs nothing but the C library, which
//! `std` is linked with anyway.

use core::ffi::{c_char, c_int, c_uint, c_void};
use core::fmt;
use core::ptr::{null_mut, NonNull};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

unsafe extern "C" {
    fn mmap(
        at: *mut c_void,
        bytes: usize,
        protection: c_int,
        flags: c_int,
        file: c_int,
        offset: i64,
    ) -> *mut c_void;
    fn munmap(at: *mut c_void, bytes: usize) -> c_int;
    fn mprotect(at: *mut c_void, bytes: usize, protection: c_int) -> c_int;
    fn madvise(at: *mut c_void, bytes: usize, advice: c_int) -> c_int;
    pub(crate) fn memfd_create(name: *const c_char, flags: c_uint) -> c_int;
    pub(crate) fn posix_fallocate(file: c_int, offset: i64, bytes: i64) -> c_int;
    pub(crate) fn fcntl(file: c_int, command: c_int, ...) -> c_int;
    pub(crate) fn flock(file: c_int, operation: c_int) -> c_int;
}

pub(crate) const PROT_NONE: c_int = 0;
pub(crate) const PROT_READ: c_int = 1;
pub(crate) const PROT_WRITE: c_int = 2;
pub(crate) const PROT_BOTH: c_int = PROT_READ | PROT_WRITE;
pub(crate) const MAP_SHARED: c_int = 0x1;
pub(crate) const MAP_PRIVATE: c_int = 0x2;
pub(crate) const MAP_FIXED: c_int = 0x10;
pub(crate) const MAP_ANONYMOUS: c_int = 0x20;
pub(crate) const MAP_NORESERVE: c_int = 0x4000;
pub(crate) const MAP_POPULATE: c_int = 0x8000;
pub(crate) const MAP_HUGETLB: c_int = 0x4_0000 | 21 << 26; // pages of 2 MiB
pub(crate) const MAP_FIXED_NOREPLACE: c_int = 0x10_0000;
pub(crate) const MADV_DONTNEED: c_int = 4;
pub(crate) const MADV_HUGEPAGE: c_int = 14;

pub(crate) const PAGE_BYTES: usize = 4096;
pub(crate) const HUGE_PAGE_BYTES: usize = 1 << 21;

/// An error that the operating system reported, or that Mallard itself found.
///
/// `{}` prints one line. `{:#}` prints three lines: what happened, the state, and what to do.
///
/// ```
/// use mallard::SharedMemory;
/// let error = SharedMemory::anonymous(0).unwrap_err();
/// assert_eq!(format!("{error:#}").lines().count(), 3);
/// ```
#[derive(Debug)]
pub struct SystemError {
    what: &'static str,
    help: &'static str,
    error: Option<io::Error>,
}

impl SystemError {
    pub(crate) const fn new(what: &'static str, help: &'static str) -> Self {
        Self { what, help, error: None }
    }
    pub(crate) fn because(error: io::Error, what: &'static str, help: &'static str) -> Self {
        Self { what, help, error: Some(error) }
    }
    /// Returns the error that the system reported, or `None` if Mallard itself found the error.
    pub fn error(&self) -> Option<&io::Error> {
        self.error.as_ref()
    }
}

impl fmt::Display for SystemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return write!(f, "{}: {}", self.what, self.help);
        }
        write!(f, "mallard: {}\n  ", self.what)?;
        if let Some(error) = &self.error {
            write!(f, "the system says: {error}; ")?;
        }
        write!(f, "nothing was changed\n  help: {}", self.help)
    }
}

impl std::error::Error for SystemError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.as_ref().map(|error| error as _)
    }
}

/// A mapped range of address space, which is unmapped when this value is dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    pub(crate) data: NonNull<u8>,
    pub(crate) bytes: usize,
}

// SAFETY: memory belongs to the process and not to a thread. `Mapping` is not `Sync`. A type that
// lets several threads use the memory has to implement `Sync` itself.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps anonymous memory anywhere. `bytes` is a multiple of the page size.
    pub(crate) fn anonymous(bytes: usize, protection: c_int, flags: c_int) -> io::Result<Self> {
        Self::at(null_mut(), bytes, protection, flags)
    }

    /// Maps anonymous memory. With MAP_FIXED_NOREPLACE in `flags`, the address is exactly `at`, and
    /// the call fails if another mapping is there.
    pub(crate) fn at(
        at: *mut u8,
        bytes: usize,
        protection: c_int,
        flags: c_int,
    ) -> io::Result<Self> {
        debug_assert_eq!(flags & MAP_FIXED, 0, "that would replace a mapping of the program");
        let private = if flags & MAP_SHARED == 0 { MAP_PRIVATE } else { 0 };
        let flags = flags | private | MAP_ANONYMOUS;
        // SAFETY: without MAP_FIXED, `mmap` replaces no mapping.
        let data = unsafe { mmap(at.cast(), bytes, protection, flags, -1, 0) };
        match NonNull::new(data) {
            Some(data) if data.as_ptr().addr() != usize::MAX => {
                Ok(Self { data: data.cast(), bytes })
            }
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Maps anonymous memory at a multiple of `align`, which is a multiple of the page size.
    pub(crate) fn aligned(
        bytes: usize,
        align: usize,
        protection: c_int,
        flags: c_int,
    ) -> io::Result<Self> {
        let too_large = || io::Error::from(io::ErrorKind::OutOfMemory);
        let skipped = if align > PAGE_BYTES { align } else { 0 };
        let room = bytes.checked_add(skipped).filter(|&room| room <= isize::MAX as usize);
        let all = Self::anonymous(room.ok_or_else(too_large)?, protection, flags)?;
        let front = all.data.addr().get().wrapping_neg() & (align - 1);
        Ok(all.keep(front, bytes))
    }

    /// Keeps `bytes` bytes of the mapping after the first `front` bytes, and unmaps the rest.
    pub(super) fn keep(self, front: usize, bytes: usize) -> Self {
        let all = core::mem::ManuallyDrop::new(self);
        let back = all.bytes - front - bytes;
        // SAFETY: both ranges are parts of the mapping, which nothing uses yet.
        unsafe {
            let data = all.data.add(front);
            if front != 0 {
                munmap(all.data.as_ptr().cast(), front);
            }
            if back != 0 {
                munmap(data.add(bytes).as_ptr().cast(), back);
            }
            Self { data, bytes }
        }
    }

    /// Maps a file over a part of the mapping, and so replaces the memory that was mapped there.
    ///
    /// # Safety
    /// Nothing uses the part that is replaced.
    pub(crate) unsafe fn map(
        &self,
        offset: usize,
        bytes: usize,
        flags: c_int,
        file: Option<BorrowedFd<'_>>,
        file_offset: u64,
    ) -> io::Result<()> {
        debug_assert!(offset + bytes <= self.bytes);
        let flags = flags | MAP_FIXED | if file.is_none() { MAP_ANONYMOUS } else { 0 };
        let file = file.map_or(-1, |file| file.as_raw_fd());
        // SAFETY: the range is in this mapping, and the caller guarantees that nothing uses the
        // range.
        let mapped = unsafe {
            let at = self.data.add(offset).as_ptr();
            mmap(at.cast(), bytes, PROT_BOTH, flags, file, file_offset as i64)
        };
        if mapped.addr() == usize::MAX {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Changes the access rights of a part of the mapping.
    pub(crate) fn protect(&self, offset: usize, bytes: usize, protection: c_int) -> io::Result<()> {
        debug_assert!(offset + bytes <= self.bytes);
        // SAFETY: the range is in this mapping, and the owner of the mapping asks for the rights.
        done(unsafe { mprotect(self.data.add(offset).as_ptr().cast(), bytes, protection) })
    }

    /// Gives the system advice about a part of the mapping.
    ///
    /// # Safety
    /// If the advice changes the contents, nothing relies on the contents.
    pub(crate) unsafe fn advise(
        &self,
        offset: usize,
        bytes: usize,
        advice: c_int,
    ) -> io::Result<()> {
        debug_assert!(offset + bytes <= self.bytes);
        // SAFETY: the range is in this mapping, and the caller made the guarantee about its
        // contents.
        done(unsafe { madvise(self.data.add(offset).as_ptr().cast(), bytes, advice) })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this object owns the mapping, and nothing uses it any more.
        unsafe { munmap(self.data.as_ptr().cast(), self.bytes) };
    }
}

pub(crate) fn done(result: c_int) -> io::Result<()> {
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

//! The contenders: Mallard and competing crates, behind one trait for each kind of use.

pub mod arenas;
pub mod mallard_arenas;
pub mod mallard_maps;
pub mod mallard_objects;
pub mod maps;
pub mod objects;
pub mod objects_peers;
pub mod shared_maps;

use std::ffi::CStr;

/// Returns the name of a crate with its version in Cargo.lock, such as `bumpalo-3.20.4`.
pub fn peer(name: &str) -> String {
    let wanted = format!("name = \"{name}\"");
    let mut lines = include_str!("../../Cargo.lock").lines().skip_while(|l| *l != wanted);
    let version = lines.nth(1).and_then(|l| l.split('"').nth(1)).unwrap_or("unknown");
    format!("{name}-{version}")
}

/// Returns the name of the C library's heap, such as `glibc-2.36`. This heap is the global
/// allocator of the program.
pub fn glibc() -> String {
    // SAFETY: the returned string exists as long as the process.
    let version = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) };
    format!("glibc-{}", version.to_string_lossy())
}

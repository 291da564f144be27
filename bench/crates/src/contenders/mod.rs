//! Who is measured: Mallard and its peers, behind one trait for each kind of use.

pub mod arenas;
pub mod mallard_arenas;
pub mod mallard_maps;
pub mod mallard_objects;
pub mod maps;
pub mod objects;
pub mod objects_peers;
pub mod shared_maps;

use std::ffi::CStr;

/// `bumpalo-3.20.4`: a crate with the version that Cargo.lock says.
pub fn peer(name: &str) -> String {
    let wanted = format!("name = \"{name}\"");
    let mut lines = include_str!("../../Cargo.lock").lines().skip_while(|l| *l != wanted);
    let version = lines.nth(1).and_then(|l| l.split('"').nth(1)).unwrap_or("unknown");
    format!("{name}-{version}")
}

/// `glibc-2.36`: the heap of the system, which is the global allocator here.
pub fn glibc() -> String {
    // SAFETY: it gives a string that is there as long as the process.
    let version = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) };
    format!("glibc-{}", version.to_string_lossy())
}

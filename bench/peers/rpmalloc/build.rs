//! Lets the linker take the pthread_create of src/lib.rs. The crate's object has one too, which a
//! Rust library cannot export.
fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,muldefs");
}

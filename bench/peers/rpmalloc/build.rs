//! Makes the linker use the pthread_create of src/lib.rs. The crate's object file defines the function
//! too, and a Rust library cannot export that definition.
fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,muldefs");
}

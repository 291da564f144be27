//! The crate's object has a pthread_create too, which a Rust library cannot export:
//! of the two, the one in src/lib.rs is taken.
fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,muldefs");
}

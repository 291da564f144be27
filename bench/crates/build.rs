//! Passes the version of rustc to the suite, which writes the version into each result.

use std::process::Command;

fn main() {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_string());
    let output = Command::new(rustc).arg("--version").output();
    let text = output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
    // The output of rustc is "rustc 1.95.0 (hash date)".
    let version = text.split_whitespace().nth(1).unwrap_or("unknown");
    println!("cargo::rustc-env=MALLARD_BENCH_RUSTC=rustc {version}");
    println!("cargo::rerun-if-changed=build.rs");
}

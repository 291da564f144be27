//! Fuzzes `mallard import`. The input is a stream (an event log of the recorder).
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;
use tempfile::TempDir;

#[path = "../../../../crates/mallard-trace/tests/support/fuzz.rs"]
mod fuzz;

static FOLDER: OnceLock<TempDir> = OnceLock::new();

fuzz_target!(|input: &[u8]| {
    let folder = FOLDER.get_or_init(|| tempfile::tempdir().expect("a folder"));
    fuzz::check_stream(input, folder.path());
});

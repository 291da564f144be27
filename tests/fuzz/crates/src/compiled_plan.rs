//! Fuzzes the reader of compiled plans. The input is a plan file.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../../../crates/mallard-trace/tests/support/fuzz.rs"]
mod fuzz;

fuzz_target!(|input: &[u8]| fuzz::check_plan(input));

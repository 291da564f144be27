//! Fuzzes the reader of compiled plans: the input is the file of a plan.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../../../crates/mallard-trace/tests/support/fuzz.rs"]
mod fuzz;

fuzz_target!(|input: &[u8]| fuzz::check_plan(input));

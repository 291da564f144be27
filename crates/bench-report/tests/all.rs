//! Collects the tests of the benchmark pages in one program, which is linked once.
//!
//! Tests that are ignored need what `cargo test` does not build or install. `./x test` runs them
//! too.

mod browser;
mod calibration;
mod compare;
mod comparisons;
mod fixture;
mod report;
mod short_page;
mod show;

#[path = "../../mallard-page/browser/mod.rs"]
mod in_browser;
#[allow(dead_code)] // only the tests of mallard-trace use all of this module
#[path = "../../mallard-trace/tests/support/run.rs"]
mod run;

use run::skip;

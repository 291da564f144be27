//! Collects the tests of the command in one program, which is linked once.
//!
//! Tests that are ignored need what `cargo test` does not build or install. `./x test` runs them too.

mod advise;
mod advise_input;
mod advise_part;
mod anonymize;
mod attach;
mod diff;
mod export;
mod fleet;
mod formats;
mod marks;
mod memory;
mod memory_report;
mod names;
mod names_matrix;
mod peers;
mod plan;
mod processes;
mod profiling;
mod query;
mod record;
mod record_input;
mod regions;
mod replay;
mod replay_input;
mod report_advice;
mod report_page;
mod run;
mod server;
mod situations;
mod sql;
mod support;
mod top;
mod trial;
mod trial_input;
mod width;

#[path = "../../mallard-page/browser/mod.rs"]
mod in_browser;
#[allow(dead_code)] // only the tests of mallard-trace use all of this module
#[path = "../../mallard-trace/tests/support/mod.rs"]
mod streams;

use support::skip;

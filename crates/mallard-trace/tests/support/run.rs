//! Settings and reports of the current test run, for tests: skipped tests, and the length of random
//! tests.

use std::io::Write;

/// Reports that the current test cannot run on this machine, and why. `./x test` counts the test as
/// skipped, because this function appends it to the file that MALLARD_SKIPS names.
#[track_caller]
pub fn skip(reason: &str) {
    let thread = std::thread::current();
    // If the tests run on a single thread, that is the main thread, whose name is not the test's.
    let here = std::panic::Location::caller().to_string();
    let test = thread.name().filter(|name| *name != "main").unwrap_or(&here);
    println!("{test} was skipped: {reason}");
    if let Some(path) = std::env::var_os("MALLARD_SKIPS") {
        let mut file = std::fs::File::options().create(true).append(true).open(path).unwrap();
        file.write_all(format!("{test}\t{reason}\n").as_bytes()).unwrap();
    }
}

/// Returns the length of a random test: a share of `full`, at least 1. MALLARD_TEST_LENGTH is the
/// share in percent.
pub fn length(full: u64) -> u64 {
    let percent = std::env::var("MALLARD_TEST_LENGTH").map_or(100, |text| {
        text.parse().unwrap_or_else(|_| panic!("MALLARD_TEST_LENGTH={text} is no number"))
    });
    (full * percent / 100).max(1)
}

/// Returns `length(full)` seeds of a random test from 0 to `full`. They are spread over the whole
/// range, because many tests make larger programs from larger seeds. All remainders of a division
/// by a small number are among them.
pub fn seeds(full: u64) -> impl Iterator<Item = u64> {
    let count = length(full);
    let step = full / count;
    (0..count).map(move |i| i * step + i % step)
}

/// Hides the messages of panics in the Parquet library, because mallard-trace converts these panics
/// to errors.
pub fn hide_panics_of_parquet() {
    static HOOK: std::sync::Once = std::sync::Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !info.location().is_some_and(|place| place.file().contains("parquet")) {
                usual(info);
            }
        }));
    });
}

//! What tests need to know about the run that they are in, and to say to it.

use std::io::Write;

/// Says that the test which runs cannot run on this machine, and why. `./x test` counts it as skipped: it
/// reads the file that MALLARD_SKIPS names.
#[track_caller]
pub fn skip(reason: &str) {
    let thread = std::thread::current();
    // With one thread of tests, tests run in the main thread.
    let here = std::panic::Location::caller().to_string();
    let test = thread.name().filter(|name| *name != "main").unwrap_or(&here);
    println!("{test} was skipped: {reason}");
    if let Some(path) = std::env::var_os("MALLARD_SKIPS") {
        let mut file = std::fs::File::options().create(true).append(true).open(path).unwrap();
        file.write_all(format!("{test}\t{reason}\n").as_bytes()).unwrap();
    }
}

/// The length of a random test: a share of `full`, at least 1. MALLARD_TEST_LENGTH has the share in per cent.
pub fn length(full: u64) -> u64 {
    let percent = std::env::var("MALLARD_TEST_LENGTH").map_or(100, |text| {
        text.parse().unwrap_or_else(|_| panic!("MALLARD_TEST_LENGTH={text} is no number"))
    });
    (full * percent / 100).max(1)
}

/// The seeds of a random test: `length(full)` of 0 to `full`, spread over all, because many tests make larger
/// programs of larger seeds. Each remainder of a small division is among them.
pub fn seeds(full: u64) -> impl Iterator<Item = u64> {
    let count = length(full);
    let step = full / count;
    (0..count).map(move |i| i * step + i % step)
}

/// Does not print panics of the Parquet library, which become errors of mallard-trace.
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

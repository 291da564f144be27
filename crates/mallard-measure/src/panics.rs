//! Reports a panic, which is a bug of Mallard, as an error of three lines.

use crate::error::status::MALLARD_FAILED;
use crate::error::Failure;
use std::panic::{catch_unwind, set_hook, AssertUnwindSafe, PanicHookInfo};
use std::sync::Mutex;

/// The message of the last panic, which is printed only if no code catches the panic. For example,
/// the library that reads tables panics for some corrupt files, and its caller converts the panic
/// into an error.
static LAST: Mutex<Option<String>> = Mutex::new(None);

/// Runs a command, and converts a panic into an error. If RUST_BACKTRACE is set, Rust also prints
/// the panic.
pub fn without<T>(command: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    if std::env::var_os("RUST_BACKTRACE").is_none() {
        set_hook(Box::new(|panic| {
            if let Ok(mut last) = LAST.lock() {
                *last = Some(describe(panic));
            }
        }));
    }
    catch_unwind(AssertUnwindSafe(command)).unwrap_or_else(|_| {
        let last = LAST.lock().ok().and_then(|mut last| last.take());
        Err(failure(last.as_deref().unwrap_or("a panic")))
    })
}

fn describe(panic: &PanicHookInfo) -> String {
    let payload = panic.payload();
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("a panic").lines().next().unwrap_or_default();
    let place = panic.location().map_or(String::new(), |place| format!(", at {place}"));
    format!("{text}{place}")
}

fn failure(what: &str) -> Failure {
    Failure::new(
        format!("mallard ended because of a bug: {what}"),
        "a program that was being recorded runs on; its events until now are in NAME.stream",
        "run the command again with RUST_BACKTRACE=1, and please report its output",
    )
    .with_status(MALLARD_FAILED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_reported_in_three_lines() {
        let hook = std::panic::take_hook();
        let failed = without(|| -> Result<(), Failure> { panic!("no {}\nmore", "luck") });
        std::panic::set_hook(hook);
        let failure = failed.unwrap_err();
        assert_eq!(failure.status(), MALLARD_FAILED);
        assert_eq!(failure.to_string().lines().count(), 3, "{failure}");
        assert!(failure.what().contains("luck") || std::env::var_os("RUST_BACKTRACE").is_some());
    }
}

//! Formats figures with units for people.

use std::time::Duration;

/// Formats a number of bytes: `512 B`, `1.5 KiB`, `20 MiB`.
pub fn bytes(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut figure = bytes as f64;
    let mut unit = 0;
    while figure >= 1023.95 && unit + 1 < units.len() {
        figure /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{bytes} B")
    } else {
        format!("{} {}", short(figure), units[unit])
    }
}

/// Formats a time in nanoseconds: `85 ns`, `1.2 ms`, `115 s`, and from 10 minutes on `33 min 20 s`.
pub fn time(ns: f64) -> String {
    match ns {
        _ if ns < 1e3 => format!("{ns:.0} ns"),
        _ if ns < 1e6 => format!("{} us", short(ns / 1e3)),
        _ if ns < 1e9 => format!("{} ms", short(ns / 1e6)),
        _ if ns < 600e9 => format!("{} s", short(ns / 1e9)),
        _ => {
            let seconds = (ns / 1e9).round();
            format!("{:.0} min {:.0} s", (seconds / 60.0).floor(), seconds % 60.0)
        }
    }
}

/// Formats a time for the option --budget. Rounds the time up to tens of seconds, or to minutes
/// from two minutes on.
pub fn budget(time: Duration) -> String {
    match time.as_secs_f64().ceil() as u64 {
        seconds @ ..=110 => format!("{}s", seconds.max(1).next_multiple_of(10)),
        seconds => format!("{}m", seconds.div_ceil(60)),
    }
}

/// Formats a count with separated thousands: `4,600,000`.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a count, large counts in millions: `950,000`, `2.3 million`.
pub fn about(number: u64) -> String {
    match number as f64 {
        figure if figure >= 1e9 => format!("{} billion", short(figure / 1e9)),
        figure if figure >= 1e6 => format!("{} million", short(figure / 1e6)),
        _ => count(number),
    }
}

/// Formats a count with a noun: `1 thread`, `2,000 threads`, `3 processes`.
pub fn plural(number: u64, word: &str) -> String {
    match number {
        1 => format!("1 {word}"),
        _ if word.ends_with('s') => format!("{} {word}es", count(number)),
        _ => format!("{} {word}s", count(number)),
    }
}

/// Formats how many threads and processes made some calls: ` of 3 threads`, ` of 79 processes` if
/// each has one thread, or ` of 12 threads of 3 processes`. Returns an empty text if there are no
/// threads.
pub fn of_threads(threads: u64, processes: u64) -> String {
    match (threads, processes) {
        (0, _) => String::new(),
        (_, 0 | 1) => format!(" of {}", plural(threads, "thread")),
        _ if threads == processes => format!(" of {}", plural(processes, "process")),
        _ => format!(" of {} of {}", plural(threads, "thread"), plural(processes, "process")),
    }
}

/// Formats a share as a percentage: `0.4 %`, `12 %`.
pub fn percent(share: f64) -> String {
    format!("{} %", short(share * 100.0))
}

/// Formats two shares as percentages: `4.0 to 32 %`.
pub fn percents(low: f64, high: f64) -> String {
    format!("{} to {}", short(low * 100.0), percent(high))
}

/// Formats a figure with one decimal below 10, and without decimals otherwise.
fn short(figure: f64) -> String {
    let figure = if figure.abs() < 0.05 { 0.0 } else { figure }; // never -0.0
    if figure.abs() < 9.95 {
        format!("{figure:.1}")
    } else {
        format!("{figure:.0}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_rounded_up_and_can_be_typed() {
        for (seconds, text) in [
            (0.0, "10s"),
            (10.0, "10s"),
            (26.2, "30s"),
            (110.0, "110s"),
            (110.5, "2m"),
            (180.0, "3m"),
            (754.0, "13m"),
        ] {
            let time = Duration::from_secs_f64(seconds);
            assert_eq!(budget(time), text);
            assert!(crate::parse::duration(text).unwrap() >= time);
        }
    }

    #[test]
    fn several_single_threaded_processes_are_not_called_threads() {
        assert_eq!(of_threads(0, 0), "");
        assert_eq!(of_threads(1, 1), " of 1 thread");
        assert_eq!(of_threads(3, 1), " of 3 threads");
        assert_eq!(of_threads(79, 79), " of 79 processes");
        assert_eq!(of_threads(12, 3), " of 12 threads of 3 processes");
    }

    #[test]
    fn figures_are_printed_with_two_digits_or_without_decimals() {
        assert_eq!(bytes(512), "512 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(20 << 20), "20 MiB");
        assert_eq!(bytes((1 << 20) - 1), "1.0 MiB");
        assert_eq!(time(85.0), "85 ns");
        assert_eq!(time(1.25e6), "1.2 ms");
        assert_eq!(time(121e9), "121 s");
        assert_eq!(time(2000e9), "33 min 20 s");
        assert_eq!(time(659.8e9), "11 min 0 s");
        assert_eq!(count(4_600_000), "4,600,000");
        assert_eq!(count(12), "12");
        assert_eq!(about(999_999), "999,999");
        assert_eq!(about(2_345_678), "2.3 million");
        assert_eq!(about(41_000_000_000), "41 billion");
        assert_eq!(percent(0.0042), "0.4 %");
        assert_eq!(percent(0.123), "12 %");
        assert_eq!(percent(-0.0001), "0.0 %");
    }
}

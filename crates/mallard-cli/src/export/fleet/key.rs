//! Identifies a run of a service by the names of the run's directories in a fleet.

use mallard_trace::manifest::Manifest;
use std::path::PathBuf;

/// A run of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The name of the service.
    pub service: String,
    /// The day on which the run began, as YYYY-MM-DD in UTC.
    pub date: String,
    /// The name of the run, which is unique among the runs of all services.
    pub run: String,
}

impl Key {
    /// Returns the key of a trace. The manifest contains the start of the run to the nanosecond.
    pub fn of(manifest: &Manifest, service: &str) -> Key {
        let stream = &manifest.stream;
        let (seconds, ns) = (stream.start_unix / 1_000_000_000, stream.start_unix % 1_000_000_000);
        let (year, month, day) = day_of(seconds / 86_400);
        let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
        Key {
            service: service.to_string(),
            date: format!("{year:04}-{month:02}-{day:02}"),
            run: format!(
                "r{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}-{ns:09}-{}",
                stream.pid
            ),
        }
    }

    /// Returns the path of the run's directory, relative to the directory of a table.
    pub fn folder(&self) -> PathBuf {
        let Key { service, date, run } = self;
        PathBuf::from(format!("service={service}/date={date}/run={run}"))
    }
}

/// Parses the name of a service or of a run. The name becomes a part of a path, and must begin with
/// a letter so that no reader of tables parses it as a number.
pub fn name(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(is_plain)
        && text.len() <= 100
    {
        return Ok(text.to_string());
    }
    Err("a name begins with a letter and has only letters, digits, '-', '_' and '.', as in shop-7"
        .to_string())
}

/// Parses a day such as 2026-11-26.
pub fn date(text: &str) -> Result<String, String> {
    let parts: Vec<&str> = text.split('-').collect();
    let has_digits = |part: &&str, digits| {
        part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_day = match parts.as_slice() {
        [year, month, day]
            if [(year, 4), (month, 2), (day, 2)].iter().all(|(p, n)| has_digits(p, *n)) =>
        {
            let number = |part: &str| part.parse::<u64>().unwrap_or(0);
            let (year, month) = (number(year), number(month));
            (1..=12).contains(&month) && (1..=days_of(year, month)).contains(&number(day))
        }
        _ => false,
    };
    if is_day {
        Ok(text.to_string())
    } else {
        Err("the date must be a day such as 2026-11-26".to_string())
    }
}

fn days_of(year: u64, month: u64) -> u64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Converts days since 1970-01-01 into year, month and day.
fn day_of(mut days: u64) -> (u64, u64, u64) {
    // 400 years have 146,097 days.
    let mut year = 1970 + days / 146_097 * 400;
    days %= 146_097;
    let days_of_year = |year| days_of(year, 2) + 337;
    while days >= days_of_year(year) {
        days -= days_of_year(year);
        year += 1;
    }
    let mut month = 1;
    while days >= days_of(year, month) {
        days -= days_of(year, month);
        month += 1;
    }
    (year, month, days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_since_1970_are_dates() {
        for (days, date) in [
            (0, (1970, 1, 1)),
            (58, (1970, 2, 28)),
            (59, (1970, 3, 1)),
            (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)),
            (20_783, (2026, 11, 26)),
            (47_541, (2100, 3, 1)),
        ] {
            assert_eq!(day_of(days), date);
        }
    }

    #[test]
    fn names_and_dates_that_are_unsafe_in_a_path_are_rejected() {
        for good in ["shop", "a-1_b.c"] {
            assert_eq!(name(good).as_deref(), Ok(good));
        }
        for bad in ["", "12", "1e5", ".", "..", "a/b", "a=b", "a b", "ä", "-a"] {
            assert!(name(bad).is_err(), "{bad}");
        }
        for good in ["2026-11-26", "2024-02-29"] {
            assert_eq!(date(good).as_deref(), Ok(good));
        }
        for bad in ["", "2026-11-31", "2026-02-29", "2026-13-01", "26-11-26", "2026-1-1", "today"] {
            assert!(date(bad).is_err(), "{bad}");
        }
    }
}

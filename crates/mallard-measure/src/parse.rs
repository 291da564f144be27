//! Parses arguments: sizes, durations, shares and time windows.

use std::ops::Range;
use std::time::Duration;

/// Parses a number of bytes: 4096, 64KiB, 2GiB.
pub fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        _ => {
            return Err(
                "the size must be a number of bytes, KiB, MiB or GiB, such as 512KiB".to_string()
            )
        }
    };
    let number: u64 = digits
        .parse()
        .map_err(|_| "the size must begin with a number, such as 512KiB".to_string())?;
    number.checked_mul(factor).ok_or_else(|| "the size is too large".to_string())
}

/// Parses a time: 10s, 250ms, 2m, 1.5s.
pub fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err("the time must be a number of ms, s, m or h, such as 250ms".to_string()),
    };
    let number: f64 = digits
        .parse()
        .map_err(|_| "the time must begin with a number, such as 250ms".to_string())?;
    Duration::try_from_secs_f64(number * factor).map_err(|_| "the time is out of range".to_string())
}

/// Parses a share: 2%, 0.5 %. The result of 2% is 0.02.
pub fn share(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    match number.parse::<f64>() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("the share must be between 0% and 100%, such as 2%".to_string()),
    }
}

/// Parses a time window: 10s..70s, ..5s, 10s..
pub fn window(text: &str) -> Result<Range<Duration>, String> {
    let (from, to) = text.split_once("..").ok_or("the window needs two times, such as 10s..70s")?;
    let from = if from.is_empty() { Duration::ZERO } else { duration(from)? };
    let to = if to.is_empty() { Duration::MAX } else { duration(to)? };
    if from < to {
        Ok(from..to)
    } else {
        Err("the window must end after it begins, such as 10s..70s".to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_binary_units() {
        assert_eq!(bytes("4096"), Ok(4096));
        assert_eq!(bytes("64KiB"), Ok(65536));
        assert_eq!(bytes("2g"), Ok(2 << 30));
        assert!(
            bytes("12parsecs").is_err() && bytes("KiB").is_err() && bytes("99999999TiB").is_err()
        );
    }

    #[test]
    fn shares_are_parsed_as_percentages() {
        assert_eq!(share("2%"), Ok(0.02));
        assert_eq!(share("0.5"), Ok(0.005));
        assert!(share("-1%").is_err() && share("200%").is_err() && share("much").is_err());
        assert!(share("NaN").is_err());
    }

    #[test]
    fn a_time_window_may_have_no_begin_or_no_end() {
        assert_eq!(window("1.5s..2m"), Ok(Duration::from_millis(1500)..Duration::from_secs(120)));
        assert_eq!(window("..5s").unwrap().start, Duration::ZERO);
        assert_eq!(window("10s..").unwrap().end, Duration::MAX);
        assert!(window("5s..5s").is_err() && window("5s").is_err());
    }
}

//! Parses and checks gates, which are limits for the change of a number between two traces.

use super::metrics::{Metric, OF_PROGRAMS};
use mallard_measure::output::units::percent;
use mallard_measure::parse;
use std::fmt;
use std::str::FromStr;

/// A limit for the change of a number of the program, such as `peak<+5%` or `leaked<=+0`.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    /// The limit as the user typed it.
    text: String,
    /// The number that is limited.
    pub metric: Metric,
    /// Whether a change that equals the limit passes.
    is_inclusive: bool,
    limit: Limit,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    /// A share of the number in the first trace.
    Share(f64),
    /// A number of bytes, blocks, calls or nanoseconds.
    Absolute(i64),
}

impl FromStr for Gate {
    type Err = String;

    fn from_str(text: &str) -> Result<Gate, String> {
        let (name, rest) = text.split_once('<').ok_or("a gate needs a '<', as in peak<+5%")?;
        let metric = OF_PROGRAMS.into_iter().find(|metric| metric.name() == name.trim());
        let metric = metric.ok_or_else(|| {
            let names = OF_PROGRAMS.map(Metric::name).join(", ");
            format!("there is no figure '{}'; a gate begins with one of {names}", name.trim())
        })?;
        let (is_inclusive, rest) = match rest.strip_prefix('=') {
            Some(rest) => (true, rest.trim()),
            None => (false, rest.trim()),
        };
        let (sign, amount) = match (rest.strip_prefix('+'), rest.strip_prefix('-')) {
            (Some(amount), _) => (1, amount.trim()),
            (_, Some(amount)) => (-1, amount.trim()),
            _ => return Err("the limit needs a sign, + or -, as in peak<+5%".to_string()),
        };
        let limit = limit(metric, sign, amount)?;
        Ok(Gate { text: text.trim().to_string(), metric, is_inclusive, limit })
    }
}

/// Parses the amount of a limit, which is a share, or a number with a unit of the metric.
fn limit(metric: Metric, sign: i64, amount: &str) -> Result<Limit, String> {
    if let Some(number) = amount.strip_suffix('%') {
        return match number.trim().parse::<f64>() {
            Ok(number) if number >= 0.0 && number.is_finite() => {
                Ok(Limit::Share(sign as f64 * number / 100.0))
            }
            _ => Err("the limit needs a number before the %, as in peak<+5%".to_string()),
        };
    }
    let number = match metric {
        Metric::Time => parse::duration(amount)?.as_nanos().try_into().ok(),
        Metric::Blocks | Metric::Calls => Some(
            amount
                .parse()
                .map_err(|_| format!("'{amount}' is not a number, as in blocks<+1000"))?,
        ),
        _ => parse::bytes(amount)?.try_into().ok(),
    };
    let number: i64 = number.ok_or("the limit is too large")?;
    Ok(Limit::Absolute(sign * number))
}

impl Gate {
    /// Returns whether the change of a number passes the gate.
    pub fn passes(&self, before: i64, after: i64) -> bool {
        let change = i128::from(after) - i128::from(before);
        let order = match self.limit {
            Limit::Absolute(limit) => change.cmp(&i128::from(limit)),
            Limit::Share(share) => (change as f64).total_cmp(&(share * before as f64)),
        };
        // `total_cmp` distinguishes 0 and -0, but a user does not.
        let is_equal = order.is_eq()
            || matches!(self.limit, Limit::Share(share) if change as f64 == share * before as f64);
        if is_equal {
            self.is_inclusive
        } else {
            order.is_lt()
        }
    }

    /// Describes how the number changed, such as `peak grew by 4.0 MiB (8.7 %), from 46 MiB to 50
    /// MiB`.
    pub fn outcome(&self, before: i64, after: i64) -> String {
        let (name, change) = (self.metric.name(), after.saturating_sub(before));
        let how = match change {
            0 => return format!("{name} stayed at {}", self.metric.shown(after)),
            1.. => "grew",
            _ => "shrank",
        };
        let share = match before {
            0 => String::new(),
            _ => format!(" ({})", percent(change.unsigned_abs() as f64 / before as f64)),
        };
        format!(
            "{name} {how} by {}{share}, from {} to {}",
            self.metric.shown(change),
            self.metric.shown(before),
            self.metric.shown(after)
        )
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(gate: &str, before: i64, after: i64) -> bool {
        gate.parse::<Gate>().unwrap().passes(before, after)
    }

    #[test]
    fn a_gate_in_percent_is_relative_to_the_number_before() {
        assert!(passes("peak<+5%", 100, 104) && !passes("peak<+5%", 100, 105));
        assert!(passes("peak<=+5%", 100, 105) && !passes("peak<=+5%", 100, 106));
        assert!(passes("peak<-5%", 100, 94) && !passes("peak<-5%", 100, 96));
        // If the number in the first trace is 0, every growth exceeds every share of that number.
        assert!(passes("peak<=+5%", 0, 0) && !passes("peak<+5%", 0, 1));
        assert!(!passes("peak<+0%", 10, 10) && passes("peak<=-0%", 10, 10));
    }

    #[test]
    fn an_absolute_gate_has_the_unit_of_its_metric() {
        assert!(passes("leaked<=+0", 7, 7) && !passes("leaked<=+0", 7, 8));
        assert!(passes("rss<+2MiB", 0, (2 << 20) - 1) && !passes("rss<+2MiB", 0, 2 << 20));
        assert!(passes("time <= +1.5s", 0, 1_500_000_000) && passes("blocks<+1000", 5, 1004));
        assert!(passes("bytes<+1", i64::MAX, i64::MIN) && !passes("bytes<+1", i64::MIN, i64::MAX));
    }

    #[test]
    fn an_unparsable_gate_is_an_error_with_a_reason() {
        let wrong = |text: &str| text.parse::<Gate>().unwrap_err();
        assert!(wrong("peak").contains("needs a '<'"));
        assert!(wrong("size<+5%").contains("one of bytes, blocks, peak, leaked, calls, rss, time"));
        assert!(wrong("peak<5%").contains("needs a sign"));
        assert!(
            wrong("peak<+-5%").contains("before the %")
                && wrong("peak<+NaN%").contains("before the %")
        );
        assert!(
            wrong("peak<+").contains("the size") && wrong("blocks<+2KiB").contains("not a number")
        );
        assert!(wrong("time<+5KiB").contains("the time") && wrong("").contains("'<'"));
        assert!(wrong("peak<+99999999TiB").contains("too large"));
    }

    #[test]
    fn the_outcome_of_a_gate_contains_the_change_and_the_starting_value() {
        let gate: Gate = "peak<+5%".parse().unwrap();
        assert_eq!(
            gate.outcome(1024, 2048),
            "peak grew by 1.0 KiB (100 %), from 1.0 KiB to 2.0 KiB"
        );
        assert_eq!(gate.outcome(0, 1024), "peak grew by 1.0 KiB, from 0 B to 1.0 KiB");
        assert_eq!(gate.outcome(5, 5), "peak stayed at 5 B");
    }
}

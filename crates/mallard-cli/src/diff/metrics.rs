//! The numbers by which two traces are compared.

use mallard_measure::output::units;
use mallard_trace::manifest::Manifest;
use mallard_trace::SiteRow;
use serde_json::{Map, Value};

/// A number of a site or of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Metric {
    /// Bytes allocated
    Bytes,
    /// Blocks allocated
    Blocks,
    /// Bytes in use at the peak of the program
    Peak,
    /// Bytes never freed
    Leaked,
    /// Calls that allocate, free or resize
    Calls,
    /// Peak resident memory of the whole program, in bytes
    #[value(skip)]
    Rss,
    /// CPU time of the whole program, recording included, in nanoseconds
    #[value(skip)]
    Time,
}

/// The metrics that each site has, in the order of [`Numbers`].
pub const OF_SITES: [Metric; 5] =
    [Metric::Bytes, Metric::Blocks, Metric::Peak, Metric::Leaked, Metric::Calls];

/// The metrics that a program has.
pub const OF_PROGRAMS: [Metric; 7] = [
    Metric::Bytes,
    Metric::Blocks,
    Metric::Peak,
    Metric::Leaked,
    Metric::Calls,
    Metric::Rss,
    Metric::Time,
];

impl Metric {
    /// Returns the name of the metric in a gate, in the text and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Metric::Bytes => "bytes",
            Metric::Blocks => "blocks",
            Metric::Peak => "peak",
            Metric::Leaked => "leaked",
            Metric::Calls => "calls",
            Metric::Rss => "rss",
            Metric::Time => "time",
        }
    }

    /// Formats a number of this metric with its unit.
    pub fn shown(self, number: i64) -> String {
        match self {
            Metric::Blocks | Metric::Calls => units::count(number.unsigned_abs()),
            Metric::Time => units::time(number.unsigned_abs() as f64),
            _ => units::bytes(number.unsigned_abs()),
        }
    }

    /// Formats a change of this metric with its sign and unit, such as `+2.0 MiB`.
    pub fn shown_change(self, change: i64) -> String {
        let sign = match change {
            0 => "",
            1.. => "+",
            _ => "-",
        };
        format!("{sign}{}", self.shown(change))
    }
}

/// The numbers of one site, or the sums of several sites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Numbers(pub [i64; OF_SITES.len()]);

impl Numbers {
    /// Reads the numbers from a row of the table `sites`.
    pub fn of(row: &SiteRow) -> Numbers {
        let calls = [row.allocs, row.frees, row.reallocs, row.failed];
        let calls = calls.into_iter().fold(0, i64::saturating_add);
        Numbers([row.bytes, row.allocs, row.at_peak_bytes, row.live_bytes, calls])
    }

    /// Returns the number of one metric. Returns 0 for `rss` and `time`, which a site does not
    /// have.
    pub fn get(&self, metric: Metric) -> i64 {
        OF_SITES.iter().position(|&known| known == metric).map_or(0, |index| self.0[index])
    }

    /// Adds the numbers of another site.
    pub fn add(&mut self, other: &Numbers) {
        for (sum, number) in self.0.iter_mut().zip(other.0) {
            *sum = sum.saturating_add(number);
        }
    }

    /// Returns the differences from other numbers, which are these numbers minus `before`.
    pub fn since(&self, before: &Numbers) -> Numbers {
        Numbers(std::array::from_fn(|index| self.0[index].saturating_sub(before.0[index])))
    }

    /// Returns the numbers as members of a JSON object.
    pub fn json(&self) -> Map<String, Value> {
        let member = |(metric, number): (&Metric, i64)| (metric.name().to_string(), number.into());
        OF_SITES.iter().zip(self.0).map(member).collect()
    }
}

/// Returns the number of the whole program for a metric. Returns `None` if the trace does not
/// contain that number.
pub fn of_program(manifest: &Manifest, metric: Metric) -> Option<i64> {
    match metric {
        Metric::Rss => manifest.notes.peak_rss.and_then(|rss| i64::try_from(rss).ok()),
        Metric::Time => manifest.totals.cpu_ns,
        _ => Some(Numbers::of(&manifest.totals.sites).get(metric)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_summed_by_metric() {
        let row = SiteRow { bytes: 10, allocs: 2, frees: 1, reallocs: 3, ..SiteRow::default() };
        let mut numbers = Numbers::of(&row);
        assert_eq!((numbers.get(Metric::Bytes), numbers.get(Metric::Calls)), (10, 6));
        numbers.add(&Numbers([1, 2, 3, 4, i64::MAX]));
        assert_eq!(numbers.0, [11, 4, 3, 4, i64::MAX]);
        assert_eq!(numbers.since(&Numbers([12, 4, 0, 0, 0])).0[..3], [-1, 0, 3]);
        assert_eq!(numbers.get(Metric::Rss), 0);
    }

    #[test]
    fn changes_have_a_sign_and_a_unit() {
        assert_eq!(Metric::Peak.shown_change(-2048), "-2.0 KiB");
        assert_eq!(Metric::Blocks.shown_change(2000), "+2,000");
        assert_eq!(Metric::Time.shown_change(0), "0 ns");
    }
}

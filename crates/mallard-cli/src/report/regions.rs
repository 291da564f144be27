//! The regions that a page shows, with some of their instances as columns.

use super::encode::{four_digits, whole};
use mallard_trace::regions::{Limits, Region};
use mallard_trace::Trace;
use serde::Serialize;
use serde_json::Value;

/// The maximum number of instances that a page draws, in all regions together.
const LANES_MAX: usize = 6400;

/// A region, as the page shows it.
#[derive(Debug, Default, Serialize)]
pub struct Shown {
    name: String,
    file: String,
    line: i64,
    ends: String,
    instances: u64,
    unfinished: u64,
    threads: u64,
    inputs: u64,
    blocks: u64,
    bytes: u64,
    call_ns: f64,
    duration_p50: f64,
    peak_p50: f64,
    peak_max: f64,
    escapes: u64,
    escape_bytes: u64,
    foreign_frees: u64,
    teardown_ns: f64,
    escape_sites: Vec<Site>,
    lanes: Lanes,
}

#[derive(Debug, Default, Serialize)]
struct Site {
    name: String,
    blocks: u64,
    bytes: u64,
}

/// Instances of a region, ordered by time. Each column has one value for each instance.
#[derive(Debug, Default, PartialEq, Serialize)]
struct Lanes {
    thread: Vec<i64>,
    t0: Vec<i64>,
    took: Vec<i64>,
    blocks: Vec<i64>,
    bytes: Vec<i64>,
    escapes: Vec<i64>,
    teardown: Vec<i64>,
}

/// Returns the regions of a trace, as JSON. Fails if the trace is corrupt.
pub fn find(trace: &Trace) -> mallard_trace::Result<Vec<Value>> {
    let found = mallard_trace::regions::find(trace, Limits::default())?;
    let value = |region: &Region| serde_json::to_value(region).expect("a region is plain");
    Ok(found.all.iter().map(value).collect())
}

/// Returns the data of regions that a page shows. Missing fields are 0 or empty.
pub fn shown(regions: &[Value]) -> Vec<Shown> {
    let most = LANES_MAX / regions.len().max(1);
    regions.iter().map(|region| Shown::of(region, most)).collect()
}

impl Shown {
    fn of(region: &Value, lanes: usize) -> Shown {
        let text = |key: &str| region[key].as_str().unwrap_or_default().to_string();
        let count = |key: &str| region[key].as_u64().unwrap_or(0);
        let number = |value: &Value| four_digits(value.as_f64().unwrap_or(0.0));
        let sites = region["escape_sites"].as_array().map_or(&[][..], Vec::as_slice);
        Shown {
            name: text("shown"),
            file: text("file"),
            line: region["line"].as_i64().unwrap_or(-1),
            ends: text("ends"),
            instances: count("instances"),
            unfinished: count("unfinished"),
            threads: count("threads"),
            inputs: count("inputs"),
            blocks: count("blocks"),
            bytes: count("bytes"),
            call_ns: number(&region["call_ns"]),
            duration_p50: number(&region["duration_ns"]["p50"]),
            peak_p50: number(&region["peak"]["p50"]),
            peak_max: number(&region["peak"]["max"]),
            escapes: count("escapes"),
            escape_bytes: count("escape_bytes"),
            foreign_frees: count("foreign_frees"),
            teardown_ns: number(&region["teardown_ns"]),
            escape_sites: sites.iter().map(site).collect(),
            lanes: Lanes::of(&region["lanes"], lanes),
        }
    }
}

fn site(site: &Value) -> Site {
    let function = site["function"].as_str().unwrap_or_default();
    Site {
        name: mallard_trace::names::short(function).to_string(),
        blocks: site["blocks"].as_u64().unwrap_or(0),
        bytes: site["bytes"].as_u64().unwrap_or(0),
    }
}

impl Lanes {
    /// Returns at most `most` of the instances, which are evenly spaced in the list.
    fn of(lanes: &Value, most: usize) -> Lanes {
        let all = lanes.as_array().map_or(&[][..], Vec::as_slice);
        let mut columns = Lanes::default();
        let kept = most.min(all.len());
        for place in 0..kept {
            columns.push(&all[place * all.len() / kept]);
        }
        columns
    }

    fn push(&mut self, lane: &Value) {
        let number = |key: &str| lane[key].as_i64().unwrap_or(0);
        self.thread.push(number("thread"));
        self.t0.push(number("t0"));
        self.took.push((number("t1").saturating_sub(number("t0"))).max(0));
        self.blocks.push(number("blocks"));
        self.bytes.push(number("bytes"));
        self.escapes.push(number("escapes"));
        self.teardown.push(whole(lane["teardown_ns"].as_f64().unwrap_or(0.0)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mallard_trace::regions::{EscapeSite, Lane};
    use serde_json::json;

    fn region(lanes: usize) -> Region {
        let lane = |n: usize| Lane {
            thread: 2,
            t0: n as i64 * 100,
            t1: n as i64 * 100 + 40,
            blocks: n as u64,
            bytes: 8,
            escapes: (n % 2) as u64,
            teardown_ns: 1.6,
        };
        let site = EscapeSite { node: 3, function: "f(int)".to_string(), blocks: 4, bytes: 5 };
        Region {
            shown: "parse".to_string(),
            line: Some(7),
            instances: 1000,
            escape_sites: vec![site],
            lanes: (0..lanes).map(lane).collect(),
            ..Region::default()
        }
    }

    fn value(region: &Region) -> Value {
        serde_json::to_value(region).unwrap()
    }

    #[test]
    fn the_figures_of_a_region_are_those_of_the_trace() {
        let shown = shown(&[value(&region(3))]);
        let of = &shown[0];
        assert_eq!((of.name.as_str(), of.line, of.instances), ("parse", 7, 1000));
        assert_eq!((of.escape_sites[0].name.as_str(), of.escape_sites[0].blocks), ("f", 4));
        assert_eq!((&of.lanes.t0, &of.lanes.took), (&vec![0, 100, 200], &vec![40; 3]));
        assert_eq!((&of.lanes.escapes, &of.lanes.teardown), (&vec![0, 1, 0], &vec![2; 3]));
    }

    #[test]
    fn the_maximum_of_drawn_instances_is_divided_among_the_regions() {
        let all: Vec<Value> = (0..64).map(|_| value(&region(400))).collect();
        let shown = shown(&all);
        assert!(shown.iter().all(|of| of.lanes.t0.len() == 100), "{}", shown[0].lanes.t0.len());
        assert_eq!(shown[0].lanes.t0[..3], [0, 400, 800]);
    }

    #[test]
    fn a_region_with_unexpected_data_is_shown_as_empty() {
        let shown = shown(&[json!({"lanes": 3, "line": "x"}), json!(1)]);
        assert!(shown.iter().all(|of| of.line == -1 && of.lanes == Lanes::default()));
        assert!(super::shown(&[]).is_empty());
    }
}

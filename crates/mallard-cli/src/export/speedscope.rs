//! Writes the file format of speedscope, which is JSON with a table of functions, and one profile
//! for each weight.

use super::calls::Calls;
use super::weight::Weight;
use super::{Options, Result};
use mallard_trace::{SiteRow, Trace};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Write;

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    name: String,
    exporter: &'a str,
    active_profile_index: usize,
    shared: Shared<'a>,
    profiles: Vec<Profile<'a>>,
}

#[derive(Serialize)]
struct Shared<'a> {
    frames: Vec<Frame<'a>>,
}

/// A function, and the line of the call in this function.
#[derive(Serialize, PartialEq, Eq, Hash, Clone)]
struct Frame<'a> {
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    file: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

/// Call stacks, each with a weight. A call stack is a list of indices of functions, the outermost
/// first.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Profile<'a> {
    r#type: &'static str,
    name: &'static str,
    unit: &'static str,
    start_value: i64,
    end_value: i64,
    samples: Vec<&'a [u32]>,
    weights: Vec<i64>,
}

/// The functions of all profiles, without repetitions.
#[derive(Default)]
struct Table<'a> {
    frames: Vec<Frame<'a>>,
    numbers: HashMap<Frame<'a>, u32>,
}

impl<'a> Table<'a> {
    fn number(&mut self, frame: Frame<'a>) -> u32 {
        let next = self.frames.len() as u32;
        *self.numbers.entry(frame).or_insert_with_key(|frame| {
            self.frames.push(frame.clone());
            next
        })
    }
}

/// Writes one profile for each weight. speedscope opens with the profile of the chosen weight.
pub fn write(trace: &Trace, options: &Options, to: &mut dyn Write) -> Result<()> {
    let wanted = options.weight.unwrap_or(Weight::Bytes);
    let calls = Calls::read(trace, options.is_full)?;
    let functions = calls.functions();
    let mut table = Table::default();
    let mut stacks: Vec<Vec<u32>> = Vec::new();
    for site in &calls.sites {
        let mut stack = Vec::new();
        for place in calls.places(site, &functions).iter().rev() {
            for function in place.functions.iter().rev() {
                let name = calls.name(function);
                let frame = Frame { name, file: function.file, line: function.line };
                stack.push(table.number(frame));
            }
        }
        stacks.push(stack);
    }
    let file = File {
        schema: SCHEMA,
        name: trace.folder().file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        exporter: &trace.manifest().tool,
        active_profile_index: Weight::ALL.iter().position(|&w| w == wanted).unwrap_or(0),
        shared: Shared { frames: table.frames },
        profiles: Weight::ALL.map(|weight| profile(weight, &calls.sites, &stacks)).into(),
    };
    serde_json::to_writer(&mut *to, &file).map_err(std::io::Error::from)?;
    Ok(writeln!(to)?)
}

/// Returns the call stacks whose weight is not 0.
fn profile<'a>(weight: Weight, sites: &[SiteRow], stacks: &'a [Vec<u32>]) -> Profile<'a> {
    let counted = sites.iter().zip(stacks).map(|(site, stack)| (weight.of(site), stack.as_slice()));
    let (weights, samples): (Vec<i64>, Vec<&[u32]>) =
        counted.filter(|&(count, _)| count > 0).unzip();
    Profile {
        r#type: "sampled",
        name: weight.title(),
        unit: if weight.is_bytes() { "bytes" } else { "none" },
        start_value: 0,
        end_value: weights.iter().fold(0, |sum, count| count.saturating_add(sum)),
        samples,
        weights,
    }
}

//! Writes a profile for pprof, which is a compressed message with call stacks, their functions, and
//! the files that contain the code.

mod mappings;
mod proto;

use super::calls::{Calls, Place};
use super::weight::Weight;
use super::{Options, Result};
use flate2::write::GzEncoder;
use flate2::Compression;
use mallard_trace::manifest::Manifest;
use mallard_trace::trace::FrameInfo;
use mallard_trace::{SiteRow, Trace};
use mappings::Mappings;
use prost::Message;
use proto::{Function, Line, Location, Profile, Sample, ValueType};
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Write;

/// The types of the values, as name and unit. The first four types have the same names as in Go's
/// heap profiles.
const TYPES: [(&str, &str); 7] = [
    ("alloc_objects", "count"),
    ("alloc_space", "bytes"),
    ("inuse_objects", "count"),
    ("inuse_space", "bytes"),
    ("peak_space", "bytes"),
    ("short_lived_objects", "count"),
    ("cross_thread_objects", "count"),
];

/// Returns the values of a site, in the order of [`TYPES`].
fn values(site: &SiteRow) -> Vec<i64> {
    let of = |weight: Weight| weight.of(site);
    vec![
        of(Weight::Blocks),
        of(Weight::Bytes),
        site.live_allocs.max(0),
        of(Weight::Never),
        of(Weight::Peak),
        of(Weight::Short),
        of(Weight::Cross),
    ]
}

/// Returns the name of the value type that shows a weight.
fn type_of(weight: Weight) -> &'static str {
    match weight {
        Weight::Blocks => "alloc_objects",
        Weight::Bytes => "alloc_space",
        Weight::Never => "inuse_space",
        Weight::Peak => "peak_space",
        Weight::Short => "short_lived_objects",
        Weight::Cross => "cross_thread_objects",
    }
}

/// Writes all types of values. Viewers show the type of the chosen weight first.
pub fn write(trace: &Trace, options: &Options, to: &mut dyn Write) -> Result<()> {
    let calls = Calls::read(trace, options.is_full)?;
    let functions = calls.functions();
    let mut builder = Builder::new(&calls, Mappings::read(trace)?);
    for site in &calls.sites {
        builder.add(site, &calls.places(site, &functions));
    }
    let wanted = options.weight.unwrap_or(Weight::Bytes);
    let profile = builder.finish(trace.manifest(), wanted);
    let mut to = GzEncoder::new(to, Compression::default());
    to.write_all(&profile.encode_to_vec())?;
    to.finish()?;
    Ok(())
}

/// Builds a profile by adding sites.
struct Builder<'a> {
    calls: &'a Calls,
    mappings: Mappings,
    profile: Profile,
    strings: HashMap<Cow<'a, str>, i64>,
    /// The IDs of the locations. The key is a frame, and the number of the frame's functions that
    /// are kept, because wrappers may be left out.
    locations: HashMap<(Option<u32>, usize), u64>,
    /// The IDs of the functions. The key is the function name as in the trace, and the source file.
    functions: HashMap<(&'a str, &'a str), u64>,
}

impl<'a> Builder<'a> {
    fn new(calls: &'a Calls, mappings: Mappings) -> Self {
        let mut builder = Builder {
            calls,
            mappings,
            profile: Profile::default(),
            strings: HashMap::new(),
            locations: HashMap::new(),
            functions: HashMap::new(),
        };
        builder.string("".into()); // the format requires that the first string is empty
        builder
    }

    fn string(&mut self, text: Cow<'a, str>) -> i64 {
        let next = self.strings.len() as i64;
        *self.strings.entry(text).or_insert_with_key(|text| {
            self.profile.strings.push(text.to_string());
            next
        })
    }

    /// Adds a site and its call stack, the innermost place first.
    fn add(&mut self, site: &SiteRow, places: &[Place<'a>]) {
        let locations = places.iter().map(|place| self.location(place)).collect();
        self.profile.samples.push(Sample { locations, values: values(site) });
    }

    fn location(&mut self, place: &Place<'a>) -> u64 {
        let key = (place.frame, place.functions.len());
        if let Some(&id) = self.locations.get(&key) {
            return id;
        }
        let id = self.locations.len() as u64 + 1;
        let line = |function: &FrameInfo<'a>| Line {
            function: self.function(function),
            line: function.line.unwrap_or(0).into(),
        };
        let lines = place.functions.iter().map(line).collect();
        let (module, offset) = place.frame.map_or((None, None), |frame| self.calls.place_of(frame));
        // A frame has the return address, which is after the call. Viewers need an address within
        // the call.
        let call = offset.map(|offset| offset.wrapping_sub(1));
        let (mapping, address) = match (module, call) {
            (Some(module), Some(call)) => self.mappings.find(module, call),
            (_, call) => (0, call.unwrap_or(0)),
        };
        self.profile.locations.push(Location { id, mapping, address, lines });
        self.locations.insert(key, id);
        id
    }

    fn function(&mut self, function: &FrameInfo<'a>) -> u64 {
        let key = (function.function, function.file);
        if let Some(&id) = self.functions.get(&key) {
            return id;
        }
        let id = self.functions.len() as u64 + 1;
        let name = self.string(self.calls.name(function));
        let system_name = self.string(function.function.into());
        let file = self.string(function.file.into());
        self.profile.functions.push(Function { id, name, system_name, file });
        self.functions.insert(key, id);
        id
    }

    fn finish(mut self, manifest: &Manifest, wanted: Weight) -> Profile {
        let mut value_type = |name: &'static str, unit: &'static str| ValueType {
            name: self.string(name.into()),
            unit: self.string(unit.into()),
        };
        let types = TYPES.map(|(name, unit)| value_type(name, unit));
        let period_type = value_type("space", "bytes");
        self.profile.sample_types = types.into();
        self.profile.period_type = Some(period_type);
        self.profile.period = manifest.stream.sample_bytes.max(1) as i64;
        self.profile.default_sample_type = self.string(type_of(wanted).into());
        self.profile.time_nanos = manifest.stream.start_unix as i64;
        self.profile.duration_nanos = manifest.totals.duration_ns.max(0);
        let comments =
            crate::export::remarks::of(manifest).into_iter().map(|text| self.string(text.into()));
        self.profile.comments = comments.collect();
        let mappings = std::mem::take(&mut self.mappings);
        self.profile.mappings = mappings.into_messages(|text| self.string(text.into()));
        self.profile
    }
}

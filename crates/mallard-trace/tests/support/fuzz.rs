//! Checks that hold for any input: a reader returns the content or an error of three lines, and
//! never panics. The tests check a few thousand changed files; `./x fuzz` checks more files for as
//! long as you like.
#![allow(dead_code)] // Each file that includes this module uses only some functions.

use mallard_trace::error::{Error, Result};
use mallard_trace::import::{import_from, Options};
use mallard_trace::plan::CompiledPlan;
use mallard_trace::replay::format::mix_bytes;
use mallard_trace::replay::{compile, Options as Compiling, Plan, Strategy};
use mallard_trace::stream::Reader;
use mallard_trace::tables::{schema, Kind, Schema};
use mallard_trace::Trace;
use std::fs;
use std::path::{Path, PathBuf};

/// Reads bytes as an event stream. If that works, makes a trace in the directory `folder`, checks
/// the trace, and removes it.
pub fn check_stream(bytes: &[u8], folder: &Path) {
    let mut reader = match Reader::new(bytes, "input") {
        Ok(reader) => reader,
        Err(error) => return check_error(&error),
    };
    let (mut events, mut tails) = (0, 0);
    while let Some(event) = reader.next_event() {
        events += 1;
        tails += event.text().len() + event.frames().len();
    }
    assert!(reader.ending().is_some() && reader.next_event().is_none());
    assert!(events <= reader.records() && tails as u64 <= 32 * 3 * reader.records());

    let reader = Reader::new(bytes, "input").expect("the same header");
    let to = folder.join("a.mallard");
    let trace = import_from(reader, &to, &Options::default(), &mut |_| ()).expect("a trace");
    check_trace(&trace);
    check_replay(&trace, folder);
    fs::remove_dir_all(&to).expect("a folder");
}

/// Checks that the tables of a trace agree with its manifest. Reads one table, and the sites with
/// their call stacks.
fn check_trace(trace: &Trace) {
    let manifest = trace.manifest();
    let rows = |name: &str| manifest.tables.iter().find(|table| table.name == name).unwrap().rows;
    assert_eq!(rows("events"), manifest.counts.events);
    let events = trace.table(&schema::EVENTS).expect("events");
    let column = |name| events.i64s(name).expect("a readable column").into_iter();
    let blocks = column("op").zip(column("alloc").zip(column("old_alloc")));
    let begins =
        |&(op, (new, old)): &(i64, (i64, i64))| op < 32 && op != 2 && new >= 0 && new != old;
    assert_eq!(blocks.filter(begins).count() as u64, manifest.counts.blocks);
    assert_eq!(rows("sites"), manifest.totals.site_count);
    assert_eq!(rows("stacks"), manifest.totals.stacks);
    let any = manifest.stream.records as usize % schema::ALL.len();
    read(trace, schema::ALL[any]).expect("a readable table");
    read(trace, &schema::SITES).expect("readable sites");
}

/// Replaces a file of a trace by other bytes, reads what commands read from it, and restores the
/// file.
pub fn check_file(trace: &Path, file: &Path, bytes: &[u8]) {
    let path = trace.join(file);
    let before = fs::read(&path).expect("a file of the trace");
    fs::write(&path, bytes).expect("a writable file");
    let is_of = |schema: &&&Schema| file.to_str().is_some_and(|f| f.starts_with(schema.name));
    let schema = schema::ALL.iter().find(is_of).copied().unwrap_or(&schema::CPU);
    match Trace::open(trace) {
        Err(error) => check_error(&error),
        Ok(changed) => {
            read(&changed, schema).unwrap_or_else(|error| check_error(&error));
            check_replay(&changed, trace);
        }
    }
    fs::write(&path, before).expect("a writable file");
}

/// Compiles a trace, which may be corrupt, without a plan and under a strategy.
fn check_replay(trace: &Trace, folder: &Path) {
    let to = folder.join("ops");
    let options = Compiling { allow_samples: true, ..Compiling::default() };
    for plan in [Plan::default(), Plan::of_strategy(Strategy::new(8).expect("a strategy"))] {
        match compile(trace, &plan, &options, &to) {
            Ok(_) => fs::remove_file(&to).expect("an op stream"),
            Err(error) => check_error(&error),
        }
    }
}

/// Returns the files of a trace, relative to its directory: the manifest, and the files of tables.
pub fn files_of(trace: &Path) -> Vec<PathBuf> {
    let mut files = vec![PathBuf::from("manifest.json")];
    files.extend(schema::ALL.iter().map(|schema| match schema.has_parts {
        true => PathBuf::from(format!("{}/part-0000.parquet", schema.name)),
        false => PathBuf::from(format!("{}.parquet", schema.name)),
    }));
    assert!(files.iter().all(|file| trace.join(file).is_file()));
    files
}

/// Reads all columns of a table. For tables of sites and call stacks, also reads what commands
/// print.
fn read(trace: &Trace, schema: &'static Schema) -> Result<()> {
    let table = trace.table(schema)?;
    for field in schema.fields {
        let values = match field.kind {
            Kind::F64 => table.f64s(field.name)?.len(),
            Kind::Text => table.texts(field.name)?.len(),
            _ => table.i64s(field.name)?.len(),
        };
        assert_eq!(values as u64, table.rows(), "{} of {}", field.name, schema.name);
    }
    if ["sites", "stacks", "frames", "modules"].contains(&schema.name) {
        let stacks = trace.stacks()?;
        for site in trace.sites()? {
            stacks.functions(site.stack);
        }
    }
    Ok(())
}

/// Checks that an error has three lines: what happened, the state, and what to type next.
fn check_error(error: &Error) {
    let text = error.to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[0].starts_with("mallard: ") && lines[0].len() > 20, "{text}");
    assert!(lines[1].starts_with("  ") && lines[2].starts_with("  help: "), "{text}");
}

/// Reads bytes as a compiled plan, first unchanged and then with a valid checksum. If the bytes are
/// a plan, checks that writing and reading the plan again does not change it.
pub fn check_plan(bytes: &[u8]) {
    let mut whole = bytes.to_vec();
    if let Some((header, body)) = whole.split_at_mut_checked(64) {
        let checksum = mix_bytes(mix_bytes(0, body), &header[..56]);
        header[56..].copy_from_slice(&checksum.to_ne_bytes());
    }
    for bytes in [bytes, &whole] {
        match CompiledPlan::from_bytes(bytes, "a plan") {
            Err(error) => check_error(&error),
            Ok(plan) => {
                let again = plan.to_bytes();
                let read = CompiledPlan::from_bytes(&again, "a plan");
                assert_eq!(read.expect("a plan that is written"), plan);
            }
        }
    }
}

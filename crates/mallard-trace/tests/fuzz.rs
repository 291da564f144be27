//! Tests that event streams, traces and plans with changed bytes are either read or rejected with a
//! clear error. `./x fuzz stream`, `./x fuzz tables` and `./x fuzz compiled_plan` make the same
//! checks with inputs that libFuzzer finds.

use crate::support::run::{hide_panics_of_parquet, seeds};
use crate::support::{self, fuzz, golden, Random};
use mallard_trace::import::{import, Options};
use mallard_trace::stream::Compression;
use parquet::column::reader::{get_typed_column_reader, ColumnReader};
use parquet::column::writer::{ColumnWriter, ColumnWriterImpl};
use parquet::data_type::DataType;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Changes, inserts, removes, repeats or swaps a few random bytes.
fn change(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    for _ in 0..=random.below(6) {
        let at = random.below(bytes.len().max(1));
        let end = bytes.len().min(at + 1 + random.below(64));
        match random.below(8) {
            0..=2 if at < bytes.len() => bytes[at] = random.next() as u8,
            3 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            4 => {
                // Write a number that may cause an arithmetic overflow.
                let number = [0, 1, u64::MAX, i64::MAX as u64, 1 << 32, 1 << 20][random.below(6)];
                let number = number.to_ne_bytes();
                let count = number.len().min(bytes.len() - at);
                bytes[at..at + count].copy_from_slice(&number[..count]);
            }
            5 => drop(bytes.drain(at..end)),
            6 => {
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
            _ => {
                let from = random.below(other.len());
                let part = &other[from..other.len().min(from + 64)];
                bytes.splice(at..end, part.iter().copied());
            }
        }
    }
    if random.below(5) == 0 {
        bytes.truncate(random.below(bytes.len() + 1));
    }
}

#[test]
fn a_randomly_changed_event_log_is_imported_or_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let golden = golden();
    let packed = support::rewritten(&golden, Compression::Packed);
    for seed in seeds(100) {
        let mut random = Random(seed);
        let mut bytes = if seed % 8 == 0 { packed.clone() } else { golden.clone() };
        change(&mut bytes, &golden, &mut random);
        if seed % 8 != 0 && bytes.len() >= 24 {
            bytes[..24].copy_from_slice(&golden[..24]);
        }
        fuzz::check_stream(&bytes, folder.path());
    }
}

#[test]
fn a_randomly_changed_plan_is_parsed_or_rejected() {
    let golden = fs::read(support::root().join("spec/plan_format.golden")).unwrap();
    for seed in seeds(3000) {
        let mut random = Random(seed);
        let mut bytes = golden.clone();
        change(&mut bytes, &golden, &mut random);
        fuzz::check_plan(&bytes);
    }
}

#[test]
fn a_trace_with_a_randomly_changed_file_is_read_or_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let trace = trace_in(folder.path());
    hide_panics_of_parquet();
    for (index, file) in fuzz::files_of(&trace).into_iter().enumerate() {
        let stored = fs::read(trace.join(&file)).unwrap();
        let plain = if index > 0 { uncompressed(&trace.join(&file)) } else { stored.clone() };
        for seed in seeds(40) {
            let mut random = Random(seed);
            let mut bytes = if seed % 3 == 0 { stored.clone() } else { plain.clone() };
            change(&mut bytes, &plain, &mut random);
            fuzz::check_file(&trace, &file, &bytes);
        }
    }
}

#[test]
fn inputs_that_fuzzing_has_found_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let trace = trace_in(folder.path());
    let files = fuzz::files_of(&trace);
    let found = support::root().join("crates/mallard-trace/tests/found");
    for entry in fs::read_dir(found).unwrap() {
        let path = entry.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        // In the fuzz target too, the first byte selects a file of the trace.
        fuzz::check_file(&trace, &files[usize::from(bytes[0]) % files.len()], &bytes[1..]);
    }
}

/// Writes the initial inputs for libFuzzer. `./x fuzz` runs only this test, with a directory in
/// MALLARD_SEEDS.
#[test]
fn seed_inputs_for_the_fuzz_targets_are_written() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = std::env::var_os("MALLARD_SEEDS").map_or(temporary.path().into(), PathBuf::from);
    for target in ["stream", "tables"] {
        fs::create_dir_all(folder.join(target)).unwrap();
    }
    let put = |path: &str, bytes: &[u8]| fs::write(folder.join(path), bytes).unwrap();
    put("stream/golden", &golden());
    put("stream/golden-packed", &support::rewritten(&golden(), Compression::Packed));
    let made = tempfile::tempdir().unwrap();
    let trace = trace_in(made.path());
    for (index, file) in fuzz::files_of(&trace).into_iter().enumerate() {
        let path = trace.join(file);
        let bytes = fs::read(&path).unwrap();
        put(&format!("tables/{index}"), &[&[index as u8], &bytes[..]].concat());
        if index > 0 {
            let plain = uncompressed(&path);
            put(&format!("tables/{index}-plain"), &[&[index as u8], &plain[..]].concat());
        }
    }
    assert!(fs::read_dir(folder.join("tables")).unwrap().count() > 10);
}

fn trace_in(folder: &Path) -> PathBuf {
    let to = folder.join("a.mallard");
    let golden = support::root().join("spec/trace_format.golden");
    import(&golden, &to, &Options::default(), &mut |_| ()).unwrap();
    to
}

/// Returns the bytes of a table without compression. In a compressed table, most changes of bytes
/// would only make the decompression fail.
fn uncompressed(path: &Path) -> Vec<u8> {
    let reader = SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap();
    let schema = reader.metadata().file_metadata().schema_descr().root_schema_ptr();
    let mut bytes = Vec::new();
    let properties = Arc::new(WriterProperties::new());
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, properties).unwrap();
    for group in 0..reader.num_row_groups() {
        let from = reader.get_row_group(group).unwrap();
        let rows = from.metadata().num_rows() as usize;
        let mut to = writer.next_row_group().unwrap();
        for index in 0..from.num_columns() {
            let mut column = to.next_column().unwrap().expect("the same columns");
            let from = from.get_column_reader(index).unwrap();
            match column.untyped() {
                ColumnWriter::BoolColumnWriter(to) => copy(from, to, rows),
                ColumnWriter::Int32ColumnWriter(to) => copy(from, to, rows),
                ColumnWriter::Int64ColumnWriter(to) => copy(from, to, rows),
                ColumnWriter::DoubleColumnWriter(to) => copy(from, to, rows),
                ColumnWriter::ByteArrayColumnWriter(to) => copy(from, to, rows),
                _ => unreachable!("a type that no table has"),
            }
            column.close().unwrap();
        }
        to.close().unwrap();
    }
    writer.close().unwrap();
    bytes
}

fn copy<T: DataType>(from: ColumnReader, to: &mut ColumnWriterImpl<'_, T>, rows: usize) {
    let (mut values, mut present) = (Vec::new(), Vec::new());
    let mut from = get_typed_column_reader::<T>(from);
    from.read_records(rows, Some(&mut present), None, &mut values).unwrap();
    let present = Some(&present[..]).filter(|present| !present.is_empty());
    to.write_batch(&values, present, None).unwrap();
}

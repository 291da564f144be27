//! Fuzzes the reading of traces. The first byte of the input chooses a file of a trace, and the
//! other bytes replace the content of this file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::path::PathBuf;
use std::sync::OnceLock;
use tempfile::TempDir;

#[path = "../../../../crates/mallard-trace/tests/support/fuzz.rs"]
mod fuzz;

/// A trace made from the golden stream: its directory, and the names of the files in it.
struct Whole {
    folder: TempDir,
    files: Vec<PathBuf>,
}

static WHOLE: OnceLock<Whole> = OnceLock::new();

fn make() -> Whole {
    // The reader turns panics of the Parquet library into errors, but libFuzzer's panic hook would
    // end the process first. This hook replaces libFuzzer's. A panic that nobody catches still ends
    // the process.
    std::panic::set_hook(Box::new(|panic| {
        if !panic.location().is_some_and(|place| place.file().contains("/parquet-")) {
            eprintln!("{panic}");
        }
    }));
    let folder = tempfile::tempdir().expect("a folder");
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../spec/trace_format.golden");
    let to = folder.path().join("a.mallard");
    let options = mallard_trace::import::Options::default();
    mallard_trace::import::import(golden.as_ref(), &to, &options, &mut |_| ()).expect("a trace");
    let files = fuzz::files_of(&to);
    Whole { folder, files }
}

fuzz_target!(|input: &[u8]| {
    let whole = WHOLE.get_or_init(make);
    let Some((&which, bytes)) = input.split_first() else { return };
    let file = &whole.files[which as usize % whole.files.len()];
    fuzz::check_file(&whole.folder.path().join("a.mallard"), file, bytes);
});

//! Finds `libmallard-record.so`.

use crate::error::status::MALLARD_FAILED;
use crate::error::Failure;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

const NAME: &str = "libmallard-record.so";

/// Finds the recorder: by the variable MALLARD_RECORDER, beside this program if it is installed, or
/// in the folder in which this program was built.
pub fn find() -> Result<PathBuf, Failure> {
    if let Some(path) = std::env::var_os("MALLARD_RECORDER") {
        let path = PathBuf::from(path);
        return path.canonicalize().and_then(must_be_library).map_err(|e| {
            let e = e.to_string().to_lowercase();
            let shown = path.display();
            missing(&format!("{shown}, which MALLARD_RECORDER names, cannot be used: {e}"))
        });
    }
    let program = std::env::current_exe().and_then(|path| path.canonicalize()).unwrap_or_default();
    let found = candidates(&program).into_iter().find(|path| path.is_file());
    found.ok_or_else(|| missing(&format!("{NAME} is not beside {}", program.display())))
}

/// Fails if the file is no library: the dynamic linker would ignore it, and start the program
/// without it.
pub fn must_be_library(path: PathBuf) -> io::Result<PathBuf> {
    let mut begin = [0; 4];
    File::open(&path)?.read_exact(&mut begin)?;
    if begin == *b"\x7fELF" {
        return Ok(path);
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "it is no library"))
}

/// The paths at which the recorder may be. A program may be in PREFIX/bin, or in
/// build/cargo/PROFILE of a checkout.
fn candidates(program: &Path) -> Vec<PathBuf> {
    let up = |levels: usize| program.ancestors().nth(levels).unwrap_or(Path::new("/"));
    let installed = ["lib/mallard", "lib64/mallard", "lib/x86_64-linux-gnu/mallard"];
    let mut paths: Vec<PathBuf> =
        installed.iter().map(|folder| up(2).join(folder).join(NAME)).collect();
    let presets = ["release", "bench", "demo", "dev"];
    paths.extend(presets.iter().map(|preset| up(3).join(preset).join("src/record").join(NAME)));
    paths
}

fn missing(what: &str) -> Failure {
    Failure::new(
        what,
        "the program was not started",
        "./x build release in a checkout, or MALLARD_RECORDER=/path/to/libmallard-record.so",
    )
    .with_status(MALLARD_FAILED)
}

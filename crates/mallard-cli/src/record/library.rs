//! Finds `libmallard-record.so`, and other files that belong to the command.

use crate::error::status::MALLARD_FAILED;
use crate::error::Failure;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

const NAME: &str = "libmallard-record.so";

/// Finds the recorder.
pub fn find() -> Result<PathBuf, Failure> {
    find_beside("MALLARD_RECORDER", "src/record", NAME).map_err(|what| missing(&what))
}

/// Finds a file of Mallard: by a variable of the environment, beside this program if it is installed,
/// or in the folder in which this program was built. The error says what is wrong.
pub fn find_beside(variable: &str, folder: &str, name: &str) -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os(variable) {
        let path = PathBuf::from(path);
        return path.canonicalize().and_then(must_be_library).map_err(|e| {
            let e = e.to_string().to_lowercase();
            format!("{}, which {variable} names, cannot be used: {e}", path.display())
        });
    }
    let program = std::env::current_exe().and_then(|path| path.canonicalize()).unwrap_or_default();
    let found = candidates(&program, folder, name).into_iter().find(|path| path.is_file());
    found.ok_or_else(|| format!("{name} is not beside {}", program.display()))
}

/// Fails if the file is not a library. The dynamic linker would ignore such a file, and start the
/// program without the recorder.
pub fn must_be_library(path: PathBuf) -> io::Result<PathBuf> {
    let mut begin = [0; 4];
    File::open(&path)?.read_exact(&mut begin)?;
    if begin == *b"\x7fELF" {
        return Ok(path);
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "it is no library"))
}

/// The paths at which a file may be. A program may be in PREFIX/bin, or in build/cargo/PROFILE of a
/// checkout.
fn candidates(program: &Path, folder: &str, name: &str) -> Vec<PathBuf> {
    let up = |levels: usize| program.ancestors().nth(levels).unwrap_or(Path::new("/"));
    let places = ["lib/mallard", "lib64/mallard", "lib/x86_64-linux-gnu/mallard"];
    let mut paths: Vec<PathBuf> = places.iter().map(|place| up(2).join(place).join(name)).collect();
    let presets = ["release", "bench", "dev"];
    paths.extend(presets.iter().map(|preset| up(3).join(preset).join(folder).join(name)));
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

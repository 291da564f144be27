//! Finds the program `duckdb`.

use mallard_measure::error::status::UNREADABLE;
use mallard_measure::error::Failure;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The environment variable with the path of DuckDB.
const VARIABLE: &str = "MALLARD_DUCKDB";
/// The first version with the setting `allowed_directories`.
const OLDEST: (u32, u32) = (1, 2);
/// The first version that reads all tables of a trace without a copy.
const READS_ALL: (u32, u32) = (2, 0);

/// The program DuckDB.
pub struct Program {
    /// The path of the program.
    pub path: PathBuf,
    version: (u32, u32),
}

impl Program {
    /// Finds DuckDB by the environment variable, in PATH, or where `./x` installs DuckDB in the
    /// checkout that contains this program.
    pub fn find() -> Result<Program, Failure> {
        let path = behind(find()?);
        let version = version_of(&path)?;
        Ok(Program { path, version })
    }

    /// Returns whether DuckDB reads integers in the Parquet encoding BYTE_STREAM_SPLIT.
    pub fn reads_all(&self) -> bool {
        self.version >= READS_ALL
    }
}

fn find() -> Result<PathBuf, Failure> {
    if let Some(path) = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
        let path = PathBuf::from(path);
        if path.is_file() {
            return Ok(path);
        }
        let shown = path.display();
        return Err(missing(&format!("there is no program {shown}, which {VARIABLE} names")));
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&folders).map(|folder| folder.join("duckdb"));
    let found = in_path.chain(in_checkout()).find(|path| path.is_file());
    found.ok_or_else(|| missing("the program duckdb is not installed"))
}

/// Returns the path at which `./x` installs DuckDB, if this program is build/cargo/PROFILE/mallard
/// in a checkout.
fn in_checkout() -> Option<PathBuf> {
    let program = std::env::current_exe().and_then(|path| path.canonicalize()).ok()?;
    Some(program.ancestors().nth(3)?.join("tools/duckdb/bin/duckdb"))
}

/// Returns the program that the Python script of the package `duckdb-cli` starts. Returns any other
/// file unchanged. Without the script, DuckDB needs no Python, and the exit status of DuckDB shows
/// whether a signal terminated DuckDB.
fn behind(path: PathBuf) -> PathBuf {
    let path = path.canonicalize().unwrap_or(path);
    let mut begin = [0; 2];
    let is_script = File::open(&path).and_then(|mut file| file.read_exact(&mut begin)).is_ok()
        && begin == *b"#!";
    if !is_script {
        return path;
    }
    let lib = path.ancestors().nth(2).unwrap_or(Path::new("/")).join("lib");
    let pythons = std::fs::read_dir(lib).into_iter().flatten().flatten();
    let packages = pythons.flat_map(|python| {
        ["site-packages", "dist-packages"].map(|packages| python.path().join(packages))
    });
    let mut programs = packages.map(|packages| packages.join("duckdb_cli/duckdb"));
    programs.find(|program| program.is_file()).unwrap_or(path)
}

/// Returns the version of DuckDB, which is the first two numbers in an output such as `v1.5.6
/// (Variegata) 069cc9f9b5`.
fn version_of(path: &Path) -> Result<(u32, u32), Failure> {
    let shown = path.display();
    let output = Command::new(path).arg("-version").output().map_err(|error| {
        missing(&format!("{shown} cannot be started: {}", error.to_string().to_lowercase()))
    })?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut numbers = text.trim().trim_start_matches('v').split('.').map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= OLDEST => Ok((major, minor)),
        (Some(Ok(major)), Some(Ok(minor))) => Err(missing(&format!(
            "{shown} is DuckDB {major}.{minor}, and a query needs {}.{} or newer",
            OLDEST.0, OLDEST.1
        ))),
        _ => Err(missing(&format!("{shown} is not DuckDB: it does not print its version"))),
    }
}

fn missing(what: &str) -> Failure {
    let help = format!("pip install duckdb-cli; or {VARIABLE}=/path/to/duckdb");
    Failure::new(what, "no query was run; no other command of mallard needs DuckDB", help)
        .with_status(UNREADABLE)
}

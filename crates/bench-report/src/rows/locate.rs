//! Finds the results and the published figures in the current directory or in a directory above it.

use crate::rows::machines::Names;
use crate::rows::published::Published;
use crate::rows::row::Rows;
use mallard_measure::error::Failure;
use std::path::{Path, PathBuf};

/// Returns the root of Mallard's tree, which is the first directory, from the current one upward,
/// that has `bench/published`. The directory `results` alone is not sufficient, because
/// `build/results` exists.
pub fn root() -> Result<PathBuf, Failure> {
    let here = std::env::current_dir().unwrap_or_default();
    let is_root = |p: &&Path| p.join("bench/published").is_dir();
    here.ancestors().find(is_root).map(Path::to_path_buf).ok_or_else(|| {
        Failure::new(
            format!("neither {} nor a folder above it has bench/published", here.display()),
            "nothing was read",
            "cd into Mallard's tree",
        )
    })
}

/// Reads the results in the files `paths`, or in the directory `results` if `paths` is empty.
/// Prints a warning about results that were left out.
pub fn rows(root: &Path, paths: &[PathBuf]) -> Result<Rows, Failure> {
    said(Rows::read(&or_results(root, paths))?)
}

/// Reads results as `rows` does, but leaves out results from trees with uncommitted changes.
pub fn committed_rows(root: &Path, paths: &[PathBuf]) -> Result<Rows, Failure> {
    said(Rows::read_committed(&or_results(root, paths))?)
}

fn or_results(root: &Path, paths: &[PathBuf]) -> Vec<PathBuf> {
    if paths.is_empty() {
        vec![root.join("results")]
    } else {
        paths.to_vec()
    }
}

fn said(rows: Rows) -> Result<Rows, Failure> {
    rows.warn();
    Ok(rows)
}

pub fn published(root: &Path) -> Result<Published, Failure> {
    Published::read(&root.join("bench/published"))
}

/// Reads the common names of the machines.
pub fn names(root: &Path) -> Result<Names, Failure> {
    Names::read(&root.join("results/machines.csv"))
}

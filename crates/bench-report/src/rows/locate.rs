//! Finds the rows and the published figures: in the current folder or in a folder above it.

use crate::rows::machines::Names;
use crate::rows::published::Published;
use crate::rows::row::Rows;
use mallard_measure::error::Failure;
use std::path::{Path, PathBuf};

/// The root of Mallard's tree: the first folder, from the current one upward, that has
/// `bench/published`. The folder `results` alone does not mark it, because `build/results` exists.
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

/// Reads the rows of `paths`, or of `results` when `paths` is empty. Prints which rows were left out.
pub fn rows(root: &Path, paths: &[PathBuf]) -> Result<Rows, Failure> {
    said(Rows::read(&or_results(root, paths))?)
}

/// Reads rows as `rows` does, without rows that were measured with uncommitted changes.
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

/// The common names of the machines.
pub fn names(root: &Path) -> Result<Names, Failure> {
    Names::read(&root.join("results/machines.csv"))
}

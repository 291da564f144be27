//! Where the rows and the published figures are: from the current folder upward.

use super::published::Published;
use super::row::Rows;
use crate::error::Failure;
use std::path::{Path, PathBuf};

/// The first folder, from here upward, that has bench/results or bench/published.
pub fn root() -> Result<PathBuf, Failure> {
    let here = std::env::current_dir().unwrap_or_default();
    let is_root =
        |p: &&Path| p.join("bench/results").is_dir() || p.join("bench/published").is_dir();
    here.ancestors().find(is_root).map(Path::to_path_buf).ok_or_else(|| {
        Failure::new(
            format!("neither {} nor a folder above it has bench/results", here.display()),
            "nothing was read",
            "cd into Mallard's tree",
        )
    })
}

/// The rows of these paths, or of bench/results; what was left out is said.
pub fn rows(root: &Path, paths: &[PathBuf]) -> Result<Rows, Failure> {
    said(Rows::read(&or_results(root, paths))?)
}

/// The same for a page that others read: without rows of uncommitted changes.
pub fn committed_rows(root: &Path, paths: &[PathBuf]) -> Result<Rows, Failure> {
    said(Rows::read_committed(&or_results(root, paths))?)
}

fn or_results(root: &Path, paths: &[PathBuf]) -> Vec<PathBuf> {
    if paths.is_empty() {
        vec![root.join("bench/results")]
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

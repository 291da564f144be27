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
    let rows = if paths.is_empty() {
        Rows::read(&[root.join("bench/results")])?
    } else {
        Rows::read(paths)?
    };
    rows.warn();
    Ok(rows)
}

pub fn published(root: &Path) -> Result<Published, Failure> {
    Published::read(&root.join("bench/published"))
}

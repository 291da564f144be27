//! Writes the page to a file.

use super::page::MARK;
use crate::output::file::write_whole;
use mallard_measure::error::Failure;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// The text that marks a page of `mallard report` is within this number of bytes from the start of
/// the file.
const HEAD_BYTES: u64 = 4096;

/// Fails if the file exists and is not a report, so that a mistyped name does not destroy a file.
/// With `force`, any file may be overwritten.
pub fn check(to: &Path, force: bool) -> Result<(), Failure> {
    let shown = to.display();
    match fs::symlink_metadata(to) {
        Err(_) => Ok(()), // no such file; another cause is reported when the file is written
        Ok(meta) if meta.is_dir() => Err(Failure::new(
            format!("{shown} is a directory"),
            "nothing was written",
            format!("name a file: -o {}", to.join("report.html").display()),
        )),
        Ok(_) if force || is_report(to) => Ok(()),
        Ok(_) => Err(Failure::new(
            format!("{shown} exists and is not a report of mallard"),
            "nothing was written",
            "name another file with -o, or overwrite this one with --force",
        )),
    }
}

fn is_report(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head));
    read.is_ok() && String::from_utf8_lossy(&head).contains(&format!("content=\"{MARK}\""))
}

/// Writes the text to a file, and replaces an existing file. Call `check` first.
pub fn replace(to: &Path, text: &str) -> Result<(), Failure> {
    write_whole(to, true, |file| Ok(file.write_all(text.as_bytes())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_mallard_report_is_overwritten_without_force() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.html");
        assert!(check(&file, false).is_ok());
        fs::write(&file, "mine").unwrap();
        assert!(check(&file, false).unwrap_err().to_string().contains("--force"));
        assert!(check(&file, true).is_ok());
        replace(&file, &super::super::page::page("{}", "a")).unwrap();
        assert!(check(&file, false).is_ok());
        assert!(check(folder.path(), true).unwrap_err().to_string().contains("is a directory"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

//! Reads files of benchmark results: `NAME.jsonl`, or `NAME.jsonl.zst`, which is the same text
//! compressed by zstd.

use mallard_measure::error::Failure;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Returns the result files in a directory and in its direct subdirectories. A path that is not a
/// directory is returned unchanged.
pub fn of(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    if !path.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let mut files = Vec::new();
    for entry in sorted_entries(path)? {
        if entry.is_dir() {
            files.extend(sorted_entries(&entry)?.into_iter().filter(|f| is_rows(f)));
        } else if is_rows(&entry) {
            files.push(entry);
        }
    }
    if files.is_empty() {
        return Err(Failure::new(
            format!("{} has no file of rows, *.jsonl or *.jsonl.zst", path.display()),
            "nothing was read",
            "./x bench SUITE --json > FILE.jsonl",
        ));
    }
    Ok(files)
}

/// Returns the text of a result file. A compressed file may consist of several frames.
pub fn text(file: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |e: std::io::Error| unreadable(file, &e.to_string());
    if !is_compressed(file) {
        return fs::read(file).map_err(failed);
    }
    let mut text = Vec::new();
    let compressed = fs::File::open(file).map_err(failed)?;
    zstd::Decoder::new(compressed).and_then(|mut d| d.read_to_end(&mut text)).map_err(failed)?;
    Ok(text)
}

/// Returns the command that prints one line of a file, for an error message.
pub fn command_of_line(file: &Path, number: usize) -> String {
    if is_compressed(file) {
        format!("zstdcat {} | sed -n {number}p", file.display())
    } else {
        format!("sed -n {number}p {}", file.display())
    }
}

fn is_compressed(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "zst")
}

/// Returns the path without `.zst`, whether the file is compressed or not.
fn uncompressed(path: &Path) -> PathBuf {
    if is_compressed(path) {
        path.with_extension("")
    } else {
        path.to_path_buf()
    }
}

fn is_rows(path: &Path) -> bool {
    path.is_file() && uncompressed(path).extension().is_some_and(|e| e == "jsonl")
}

/// Returns the entries of a directory, sorted by name. `pool.jsonl.zst` comes before `pool.jsonl`.
/// Results that are not compressed yet are newer, and the last of several equal results counts.
fn sorted_entries(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = fs::read_dir(folder).map_err(|e| unreadable(folder, &e.to_string()))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|e| e.ok().map(|e| e.path())).collect();
    paths.sort_by_key(|path| (uncompressed(path), !is_compressed(path)));
    Ok(paths)
}

fn unreadable(path: &Path, why: &str) -> Failure {
    Failure::new(
        format!("cannot read {}: {}", path.display(), why.to_lowercase()),
        "nothing was written",
        format!("ls -l {}", path.display()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
        fs::create_dir_all(folder.join("machine")).unwrap();
        fs::write(folder.join(name), bytes).unwrap();
        folder.join(name)
    }

    #[test]
    fn a_compressed_file_of_several_frames_is_decompressed_completely() {
        let folder = tempfile::tempdir().unwrap();
        let frame = |text: &str| zstd::encode_all(text.as_bytes(), 3).unwrap();
        let bytes = [frame("one\n"), frame("two\nthree\n")].concat();
        let file = write(folder.path(), "a.jsonl.zst", &bytes);
        assert_eq!(text(&file).unwrap(), b"one\ntwo\nthree\n");
    }

    #[test]
    fn compressed_results_are_read_before_newer_uncompressed_ones_of_the_same_name() {
        let folder = tempfile::tempdir().unwrap();
        let names = ["machine/b.jsonl", "machine/a.jsonl", "machine/a.jsonl.zst", "c.jsonl.zst"];
        for name in [&names[..], &["picture.png", "machine/a.zst", "machine/deep.csv"]].concat() {
            write(folder.path(), name, b"");
        }
        let found = of(folder.path()).unwrap();
        let expected = ["c.jsonl.zst", "machine/a.jsonl.zst", "machine/a.jsonl", "machine/b.jsonl"];
        assert_eq!(found, expected.map(|name| folder.path().join(name)));
    }

    #[test]
    fn a_directory_without_results_is_an_error_that_names_both_file_formats() {
        let folder = tempfile::tempdir().unwrap();
        let error = of(folder.path()).unwrap_err().to_string();
        assert!(error.contains("no file of rows, *.jsonl or *.jsonl.zst"), "{error}");
    }

    #[test]
    fn the_error_for_a_truncated_or_uncompressed_file_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let whole = zstd::encode_all(&b"one\n"[..], 3).unwrap();
        for bytes in [b"{}\n", &whole[..whole.len() - 2]] {
            let file = write(folder.path(), "a.jsonl.zst", bytes);
            let error = text(&file).unwrap_err().to_string();
            assert!(error.contains("cannot read") && error.contains("a.jsonl.zst"), "{error}");
        }
    }

    #[test]
    fn the_suggested_command_to_show_a_line_works_for_compressed_and_plain_files() {
        assert_eq!(command_of_line(Path::new("a.jsonl"), 7), "sed -n 7p a.jsonl");
        let compressed = command_of_line(Path::new("a.jsonl.zst"), 7);
        assert_eq!(compressed, "zstdcat a.jsonl.zst | sed -n 7p");
    }
}

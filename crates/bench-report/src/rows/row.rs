//! Benchmark results, called rows, and the files that contain them, with one JSON object per line.

use crate::rows::files;
use indicatif::{ProgressBar, ProgressStyle};
use mallard_measure::error::tell;
use mallard_measure::error::Failure;
use serde::Deserialize;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The result of one contender (allocator under test) in one benchmark case. Lower is better for
/// every metric.
#[derive(Clone, Debug, Deserialize)]
pub struct Row {
    pub suite: String,
    pub case: String,
    pub contender: String,
    #[serde(default = "one")]
    pub threads: u32,
    pub metric: String,
    /// The median, or `None` if the case failed or cannot be run. `why` has the reason.
    pub median: Option<f64>,
    /// The 10th percentile of the runs. `high` is the 90th percentile.
    pub low: Option<f64>,
    pub high: Option<f64>,
    #[serde(default)]
    pub runs: u64,
    #[serde(default)]
    pub variant: String,
    #[serde(default)]
    pub why: String,
    /// The verdict on the change, in words, if the result is about a change.
    #[serde(default)]
    pub verdict: String,
    #[serde(default)]
    pub commit: String,
    #[serde(default)]
    pub machine: String,
    #[serde(default)]
    pub command: String,
}

fn one() -> u32 {
    1
}

impl Row {
    pub fn low(&self) -> f64 {
        self.low.or(self.median).unwrap_or(f64::NAN)
    }
    pub fn high(&self) -> f64 {
        self.high.or(self.median).unwrap_or(f64::NAN)
    }
    pub fn is_ours(&self) -> bool {
        self.contender.starts_with("mallard/")
    }
    /// Returns whether the contender is a hand-written lower bound, and not an allocator.
    pub fn is_limit(&self) -> bool {
        self.contender.starts_with("limit/")
    }
    pub fn failed(&self) -> bool {
        self.median.is_none() && self.why.starts_with("FAIL")
    }
    /// Returns whether the failure was computed in advance, without running the case.
    pub fn failed_on_paper(&self) -> bool {
        self.median.is_none() && self.why.starts_with("FAIL, computed")
    }
    /// Returns whether the figure is a change relative to the baseline. A change may be below zero.
    pub fn is_change(&self) -> bool {
        let ends: &[&str] = match self.suite.as_str() {
            "calibration" => &["_cpu_percent", "_change_kib"],
            "advise" => &["_saving"],
            _ => &[],
        };
        ends.iter().any(|end| self.metric.ends_with(end))
    }
    /// Returns whether the result was measured in a tree with uncommitted changes.
    pub fn is_dirty(&self) -> bool {
        ["-dirty", "+dirty"].iter().any(|end| self.commit.ends_with(end))
    }
    /// Returns the N of `--less N` in the benchmark's command. The option divides the work by 2^N.
    pub fn divided_by(&self) -> u32 {
        let after = self.command.split(" --less ").nth(1).unwrap_or("");
        after.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0)
    }
    /// Returns whether the noise is unknown because the result comes from one run. Results about
    /// memory always come from one process.
    pub fn is_of_one_run(&self) -> bool {
        self.runs == 1 && self.median.is_some() && !self.metric.ends_with("rss_kib")
    }
}

/// The results of some files. If the files contain the same result several times, the last one
/// counts.
#[derive(Default)]
pub struct Rows {
    pub all: Vec<Row>,
    place: HashMap<[String; 7], usize>,
    /// Messages about results that were left out.
    pub warnings: Vec<Failure>,
    /// Whether results of trees with uncommitted changes are left out, because such results cannot
    /// be measured again.
    committed_only: bool,
    dirty: usize,
}

impl Rows {
    /// Reads files, and the `.jsonl` and `.jsonl.zst` files in directories and in their direct
    /// subdirectories.
    pub fn read(paths: &[PathBuf]) -> Result<Rows, Failure> {
        Rows::default().read_all(paths)
    }

    /// Reads results, but leaves out those of trees with uncommitted changes. A warning states how
    /// many were left out.
    pub fn read_committed(paths: &[PathBuf]) -> Result<Rows, Failure> {
        let mut rows = Rows { committed_only: true, ..Rows::default() }.read_all(paths)?;
        if rows.dirty > 0 {
            rows.warnings.push(Failure::new(
                format!("{} rows were measured in a tree with uncommitted changes", rows.dirty),
                "the page omits these results, because nobody can measure them again",
                "commit, then run the suite again",
            ));
        }
        Ok(rows)
    }

    fn read_all(mut self, paths: &[PathBuf]) -> Result<Rows, Failure> {
        let files: Vec<PathBuf> =
            paths.iter().map(|p| files::of(p)).collect::<Result<Vec<_>, _>>()?.concat();
        let bytes = files.iter().filter_map(|f| Some(f.metadata().ok()?.len())).sum();
        let progress = progress(bytes);
        for file in files {
            self.read_file(&file)?;
            progress.inc(file.metadata().map_or(0, |f| f.len()));
        }
        progress.finish_and_clear();
        Ok(self)
    }

    fn read_file(&mut self, file: &Path) -> Result<(), Failure> {
        let bytes = files::text(file)?;
        let whole = bytes.ends_with(b"\n");
        let lines: Vec<&[u8]> =
            bytes.strip_suffix(b"\n").unwrap_or(&bytes).split(|b| *b == b'\n').collect();
        for (index, line) in lines.iter().enumerate() {
            let number = index + 1;
            match parse(line) {
                Ok(Some(row)) => self.add(row),
                Ok(None) => {}
                // A killed run leaves an incomplete last line.
                Err(_) if number == lines.len() && !whole => self.warnings.push(Failure::new(
                    format!("{}:{number}: the file ends in the middle of a row", file.display()),
                    format!("the incomplete line is skipped, and {index} lines are used"),
                    "run the suite again, to its end",
                )),
                Err(why) => {
                    return Err(Failure::new(
                        format!("{}:{number}: {why}", file.display()),
                        "nothing was written, because the result would be incomplete",
                        files::command_of_line(file, number),
                    ));
                }
            }
        }
        Ok(())
    }

    pub fn add(&mut self, row: Row) {
        if self.committed_only && row.is_dirty() {
            self.dirty += 1;
            return;
        }
        let key = [
            row.suite.clone(),
            row.case.clone(),
            row.variant.clone(),
            row.contender.clone(),
            row.metric.clone(),
            row.threads.to_string(),
            row.machine.clone(),
        ];
        if let Some(&place) = self.place.get(&key) {
            self.all[place] = row;
        } else {
            self.place.insert(key, self.all.len());
            self.all.push(row);
        }
    }

    /// Moves the results of a suite out of these results, and returns them.
    pub fn take_suite(&mut self, suite: &str) -> Rows {
        let (own, others) =
            std::mem::take(&mut self.all).into_iter().partition(|row: &Row| row.suite == suite);
        self.place.clear();
        self.all = others;
        Rows { all: own, ..Rows::default() }
    }

    /// Prints the warnings on stderr.
    pub fn warn(&self) {
        for warning in &self.warnings {
            tell(warning);
        }
    }
}

/// Parses a line. Returns `None` for an empty line.
fn parse(line: &[u8]) -> Result<Option<Row>, String> {
    if line.trim_ascii().is_empty() {
        return Ok(None);
    }
    let row: Row = serde_json::from_slice(line).map_err(|e| plain(&e))?;
    let figures = [row.median, row.low, row.high];
    let wrong = |f: &f64| !f.is_finite() || *f < 0.0 && !row.is_change();
    if figures.into_iter().flatten().any(|f| wrong(&f)) {
        return Err("a figure is below zero".to_string());
    }
    Ok(Some(row))
}

/// Returns the message of serde without its line number, which is always 1.
fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = match text.split_once(" at line 1 column ") {
        Some((what, column)) => format!("{what}, column {column}"),
        None => text,
    };
    format!("not a row: {text}")
}

/// Returns a progress bar on stderr, which is shown for large files.
fn progress(bytes: u64) -> ProgressBar {
    const SHOWN_FROM_BYTES: u64 = 8 << 20;
    if bytes < SHOWN_FROM_BYTES {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("  reading rows {wide_bar} {bytes} of {total_bytes}");
    ProgressBar::new(bytes).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const ROW: &str = r#"{"suite":"s","case":"c","contender":"a","threads":1,"metric":"m","median":1,"low":1,"high":1,"runs":3}"#;

    fn read(text: &str) -> Result<Rows, Failure> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rows.jsonl");
        fs::write(&file, text).unwrap();
        Rows::read(&[file])
    }

    #[test]
    fn the_newer_of_two_results_for_the_same_case_counts() {
        let again = ROW.replace("\"median\":1", "\"median\":2");
        let rows = read(&format!("{ROW}\n{again}\n")).unwrap();
        assert_eq!(rows.all.len(), 1);
        assert_eq!(rows.all[0].median, Some(2.0));
    }

    #[test]
    fn results_of_other_machines_or_variants_are_kept() {
        let other = ROW.replace("\"runs\":3", "\"runs\":3,\"machine\":\"other\"");
        let variant = ROW.replace("\"runs\":3", "\"runs\":3,\"variant\":\"faithful\"");
        assert_eq!(read(&format!("{ROW}\n{other}\n{variant}\n")).unwrap().all.len(), 3);
    }

    #[test]
    fn a_result_of_uncommitted_code_is_ignored_and_the_previous_result_counts() {
        let dirty =
            ROW.replace("\"median\":1", "\"median\":2").replace('}', ",\"commit\":\"a1-dirty\"}");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rows.jsonl");
        fs::write(&file, format!("{ROW}\n{dirty}\n{}\n", dirty.replace("-dirty", "+dirty")))
            .unwrap();
        let rows = Rows::read_committed(std::slice::from_ref(&file)).unwrap();
        assert_eq!((rows.all.len(), rows.all[0].median), (1, Some(1.0)));
        assert!(rows.warnings[0].to_string().contains("2 rows were measured in a tree"));
        assert_eq!(Rows::read(&[file]).unwrap().all[0].median, Some(2.0));
    }

    #[test]
    fn only_changes_may_be_negative() {
        let change = ROW
            .replace("\"suite\":\"s\"", "\"suite\":\"calibration\"")
            .replace("\"metric\":\"m\"", "\"metric\":\"real_cpu_percent\"")
            .replace("\"low\":1", "\"low\":-1");
        assert_eq!(read(&change).unwrap().all[0].low, Some(-1.0));
        let saving =
            change.replace("calibration", "advise").replace("real_cpu_percent", "predicted_saving");
        assert_eq!(read(&saving).unwrap().all[0].low, Some(-1.0));
        for other in [
            change.replace("real_cpu_percent", "real_peak_kib"),
            change.replace("calibration", "pool"),
        ] {
            let error = read(&format!("{other}\n{ROW}\n")).err().unwrap();
            assert!(error.to_string().contains("a figure is below zero"), "{error}");
        }
    }

    #[test]
    fn the_divisor_of_the_workload_is_read_from_the_command_line() {
        let of = |command: &str| {
            parse(ROW.replace('}', &format!(",\"command\":\"{command}\"}}")).as_bytes())
                .unwrap()
                .unwrap()
                .divided_by()
        };
        assert_eq!(of("./x bench lakos1 --less 7 --runs 1 --json"), 7);
        assert_eq!((of("./x bench lakos1 --json"), of("./x bench lakos1 --less 12")), (0, 12));
    }

    #[test]
    fn an_incomplete_last_line_is_skipped_with_a_warning() {
        let rows = read(&format!("{ROW}\n{}", &ROW[..40])).unwrap();
        assert_eq!(rows.all.len(), 1);
        assert!(rows.warnings[0].to_string().contains("rows.jsonl:2: the file ends"));
    }

    #[test]
    fn a_last_line_with_invalid_utf8_is_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rows.jsonl");
        fs::write(&file, [ROW.as_bytes(), b"\n{\"suite\":\"\xc3"].concat()).unwrap();
        let rows = Rows::read(&[file]).unwrap();
        assert_eq!((rows.all.len(), rows.warnings.len()), (1, 1));
    }

    #[test]
    fn a_complete_last_line_without_newline_counts() {
        let rows = read(ROW).unwrap();
        assert_eq!((rows.all.len(), rows.warnings.len()), (1, 0));
    }

    #[test]
    fn an_invalid_line_in_the_middle_is_an_error_with_its_line_number() {
        let error = read(&format!("{ROW}\n{}\n{ROW}\n", &ROW[..40])).err().unwrap();
        assert!(error.to_string().contains("rows.jsonl:2: not a row"), "{error}");
    }

    #[test]
    fn a_result_with_a_missing_field_is_an_error_that_names_the_field() {
        let error = read("{\"suite\":\"s\"}\n").err().unwrap();
        assert!(error.to_string().contains("missing field `case`"), "{error}");
    }

    #[test]
    fn compressed_results_are_read_and_the_error_for_an_invalid_line_has_a_command_that_shows_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rows.jsonl.zst");
        let compress = |text: &str| zstd::encode_all(text.as_bytes(), 3).unwrap();
        fs::write(&file, compress(&format!("{ROW}\n"))).unwrap();
        assert_eq!(Rows::read(&[folder.path().to_path_buf()]).unwrap().all.len(), 1);
        fs::write(&file, compress(&format!("{ROW}\n{{}}\n{ROW}\n"))).unwrap();
        let error = Rows::read(&[file]).err().unwrap().to_string();
        assert!(error.contains("rows.jsonl.zst:2: not a row"), "{error}");
        assert!(error.contains("zstdcat") && error.contains("| sed -n 2p"), "{error}");
    }
}

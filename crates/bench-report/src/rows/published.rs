//! Reads figures that others have published, from bench/published/*.csv. The figures are found by
//! suite, case and column, and have the units of our results.

use mallard_measure::error::Failure;
use serde::Deserialize;
use std::collections::HashMap;
use std::path::Path;

/// A published figure. `None` stands for FAIL in Lakos's talk, where the process ran out of address
/// space.
pub type Figure = Option<f64>;

/// A figure from seeds.csv or crates.csv, published in another source than Lakos's talk.
#[derive(Clone, Debug, Deserialize)]
pub struct Seed {
    pub suite: String,
    pub case: String,
    pub contender: String,
    pub metric: String,
    pub value: f64,
    #[serde(default)]
    pub unit: String,
    #[serde(default)]
    pub source: String,
}

/// The reason why our figure may be lower than a published figure, from reasons.csv.
#[derive(Clone, Debug, Deserialize)]
pub struct Reason {
    pub suite: String,
    /// The first part of a case, such as a data structure, or empty for a whole suite.
    pub part: String,
    pub reason: String,
}

#[derive(Default)]
pub struct Published {
    talk: HashMap<(String, String, String), Figure>,
    pub seeds: Vec<Seed>,
    pub reasons: Vec<Reason>,
}

/// The number of elements to which the seconds in Lakos's talk apply.
const ELEMENTS: f64 = (1u64 << 27) as f64;

impl Published {
    /// Reads the files of a directory. A missing file counts as empty.
    pub fn read(folder: &Path) -> Result<Published, Failure> {
        let mut all = Published::default();
        all.talk_file(folder, "lakos_benchmark1.csv", |c, put| {
            let case = format!("{}/2^{}", c.text("data_structure")?, c.text("log2_size")?);
            for n in 1..=14 {
                let seconds = c.figure(&format!("AS{n}_s"))?;
                put("lakos1", &case, format!("AS{n}"), seconds.map(|s| s * 1e9 / ELEMENTS));
            }
            Ok(())
        })?;
        all.talk_file(folder, "lakos_benchmark2.csv", |c, put| {
            let column = match c.text("local_allocators")? {
                "without" => "AS1",
                "with" => "AS7",
                _ => return Ok(()), // the other lines have the ratio of these two
            };
            for i in 0..=8 {
                let (g, s) = (c.text("log2_G")?, c.text("log2_S")?);
                let case = format!("2^{g}/S=2^{s}/I=2^{i}");
                put("lakos2", &case, column.to_string(), c.figure(&format!("I_2^{i}"))?);
            }
            Ok(())
        })?;
        all.talk_file(folder, "lakos_benchmark2_diffusion.csv", |c, put| {
            for n in 0..=9 {
                let case = format!("diffusion/S=10^{}/shuffles={n}", c.text("log10_S")?);
                put("lakos2", &case, "AS1".to_string(), c.figure(&format!("shuffles_{n}"))?);
            }
            Ok(())
        })?;
        all.talk_file(folder, "lakos_benchmark3.csv", |c, put| {
            let (t, m, s) = (c.text("log2_T")?, c.text("log2_M")?, c.text("log2_S")?);
            c.per_cent("lakos3", &format!("T=2^{t}/M=2^{m}/S=2^{s}"), put)
        })?;
        all.talk_file(folder, "lakos_benchmark4.csv", |c, put| {
            let (i, s, w) = (c.text("log2_I")?, c.text("log2_S")?, c.text("W")?);
            c.per_cent("lakos4", &format!("I=2^{i}/S=2^{s}/W={w}"), put)
        })?;
        for file in ["seeds.csv", "crates.csv"] {
            all.seeds.extend(records::<Seed>(&folder.join(file))?);
        }
        all.reasons = records(&folder.join("reasons.csv"))?;
        Ok(all)
    }

    /// Returns the figure in Lakos's talk for a case, in a column such as `AS3`.
    pub fn of(&self, suite: &str, case: &str, column: &str) -> Option<Figure> {
        self.talk.get(&(suite.to_string(), case.to_string(), column.to_string())).copied()
    }

    /// Returns the figure in Lakos's talk as a share of the figure of AS1.
    pub fn share(&self, suite: &str, case: &str, column: &str) -> Option<Figure> {
        let base = self.of(suite, case, "AS1")??;
        Some(self.of(suite, case, column)?.map(|value| value / base))
    }

    /// Returns the best local strategy of a case in Lakos's talk: its column and its figure.
    pub fn best_local(&self, suite: &str, case: &str) -> Option<(String, f64)> {
        (3..=14)
            .map(|n| format!("AS{n}"))
            .filter_map(|c| Some((c.clone(), self.of(suite, case, &c)??)))
            .min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// Returns whether Lakos's talk has a figure for the case.
    pub fn has(&self, suite: &str, case: &str) -> bool {
        self.of(suite, case, "AS1").is_some()
    }

    /// Returns the number of cases of a suite for which Lakos's talk has a figure. Cases about
    /// diffusion do not count, because they use no local allocators.
    pub fn count(&self, suite: &str) -> usize {
        let counts = |case: &str| !case.starts_with("diffusion");
        self.talk
            .keys()
            .filter(|(s, case, column)| s == suite && column == "AS1" && counts(case))
            .count()
    }

    pub fn reason(&self, suite: &str, part: &str) -> Option<&str> {
        let found = self.reasons.iter().find(|r| r.suite == suite && r.part == part);
        found.map(|r| r.reason.as_str())
    }

    fn talk_file(
        &mut self,
        folder: &Path,
        name: &str,
        each: impl Fn(&Line, &mut dyn FnMut(&str, &str, String, Figure)) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let file = folder.join(name);
        if !file.exists() {
            return Ok(());
        }
        let mut reader =
            csv::Reader::from_path(&file).map_err(|e| bad(&file, 1, &e.to_string()))?;
        let titles = reader.headers().map_err(|e| bad(&file, 1, &e.to_string()))?.clone();
        for (index, record) in reader.records().enumerate() {
            let record = record.map_err(|e| bad(&file, index + 2, &e.to_string()))?;
            let line = Line { file: &file, number: index + 2, titles: &titles, record: &record };
            each(&line, &mut |suite, case, column, figure| {
                self.talk.insert((suite.to_string(), case.to_string(), column), figure);
            })?;
        }
        Ok(())
    }
}

/// A line of a table in Lakos's talk.
struct Line<'a> {
    file: &'a Path,
    number: usize,
    titles: &'a csv::StringRecord,
    record: &'a csv::StringRecord,
}

impl Line<'_> {
    fn text(&self, title: &str) -> Result<&str, Failure> {
        let place = self.titles.iter().position(|t| t == title);
        place
            .and_then(|p| self.record.get(p))
            .ok_or_else(|| bad(self.file, 1, &format!("no column {title}")))
    }

    fn figure(&self, title: &str) -> Result<Figure, Failure> {
        match self.text(title)? {
            "FAIL" => Ok(None),
            text => match text.parse() {
                Ok(value) => Ok(Some(value)),
                Err(_) => {
                    Err(bad(self.file, self.number, &format!("{title}: '{text}' is no figure")))
                }
            },
        }
    }

    /// Adds the figures of a line, in which AS1 is in seconds and the other strategies are in
    /// percent of AS1.
    fn per_cent(
        &self,
        suite: &str,
        case: &str,
        put: &mut dyn FnMut(&str, &str, String, Figure),
    ) -> Result<(), Failure> {
        let base = self.figure("AS1_s")?;
        put(suite, case, "AS1".to_string(), base);
        for n in [2, 3, 5, 7, 9, 11, 13] {
            let share = self.figure(&format!("AS{n}_pct_of_AS1"))?;
            let seconds = base.zip(share).map(|(b, s)| b * s / 100.0);
            put(suite, case, format!("AS{n}"), seconds);
        }
        Ok(())
    }
}

fn records<T: for<'a> Deserialize<'a>>(file: &Path) -> Result<Vec<T>, Failure> {
    if !file.exists() {
        return Ok(Vec::new());
    }
    let mut reader = csv::ReaderBuilder::new()
        .comment(Some(b'#'))
        .from_path(file)
        .map_err(|e| bad(file, 1, &e.to_string()))?;
    reader
        .deserialize()
        .enumerate()
        .map(|(index, record)| {
            record.map_err(|e| bad(file, line_of(&e).unwrap_or(index + 2), &e.to_string()))
        })
        .collect()
}

fn line_of(error: &csv::Error) -> Option<usize> {
    error.position().map(|p| p.line() as usize)
}

fn bad(file: &Path, line: usize, why: &str) -> Failure {
    Failure::new(
        format!("{}:{line}: {why}", file.display()),
        "nothing was written",
        format!("git diff {}", file.display()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn talk() -> Published {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/published");
        Published::read(&root).unwrap()
    }

    #[test]
    fn published_seconds_become_nanoseconds_per_element() {
        let figure = talk().of("lakos1", "DS1/2^6", "AS1").unwrap().unwrap();
        assert!((figure - 1.2e9 / 134_217_728.0).abs() < 1e-9);
    }

    #[test]
    fn published_percentages_become_fractions_and_fail_stays_fail() {
        let talk = talk();
        let share = talk.share("lakos3", "T=2^30/M=2^15/S=2^10", "AS7").unwrap().unwrap();
        assert!((share - 0.46).abs() < 1e-9);
        assert_eq!(talk.of("lakos3", "T=2^35/M=2^20/S=2^15", "AS3"), Some(None));
        assert_eq!(talk.of("lakos3", "T=2^35/M=2^20/S=2^99", "AS3"), None);
    }

    #[test]
    fn every_published_table_cell_is_read() {
        let talk = talk();
        let count = |suite| talk.count(suite);
        assert_eq!((count("lakos1"), count("lakos3"), count("lakos4")), (132, 66, 56));
        assert_eq!(count("lakos2"), 48 * 9);
        assert!(talk.has("lakos2", "diffusion/S=10^6/shuffles=3"));
        assert_eq!(talk.of("lakos2", "2^21/S=2^20/I=2^8", "AS1"), Some(Some(11.3)));
    }

    #[test]
    fn an_invalid_published_figure_is_reported_with_its_line_number() {
        let folder = tempfile::tempdir().unwrap();
        let text = "log10_S,shuffles_0\n7,many\n";
        std::fs::write(folder.path().join("lakos_benchmark2_diffusion.csv"), text).unwrap();
        let error = Published::read(folder.path()).err().unwrap().to_string();
        assert!(error.contains("diffusion.csv:2: shuffles_0: 'many' is no figure"), "{error}");
    }
}

//! The common names of machines, such as Zen 3, from `results/machines.csv`.

use mallard_measure::error::Failure;
use serde::Deserialize;
use std::path::Path;

/// One line of results/machines.csv.
#[derive(Clone, Debug, Deserialize)]
pub struct Name {
    /// A prefix of the machine's name in results.
    pub machine: String,
    /// The common name of the processor.
    pub name: String,
    /// The evidence for the common name, in words, because a result contains only what the machine
    /// reports about itself.
    pub known_by: String,
}

/// All names in the file. Without the file the list is empty, and machines keep the names of their
/// results.
#[derive(Default)]
pub struct Names(Vec<Name>);

impl Names {
    pub fn read(file: &Path) -> Result<Names, Failure> {
        if !file.exists() {
            return Ok(Names::default());
        }
        let failed = |e: csv::Error| {
            Failure::new(
                format!("cannot read {}: {}", file.display(), e.to_string().to_lowercase()),
                "nothing was written",
                "write the columns machine,name,known_by",
            )
        };
        let mut reader = csv::Reader::from_path(file).map_err(failed)?;
        let names: Vec<Name> = reader.deserialize().collect::<Result<_, _>>().map_err(failed)?;
        Ok(Names(names))
    }

    /// Returns the name of a machine. If several prefixes match, the longest counts.
    pub fn of(&self, machine: &str) -> Option<&Name> {
        let fitting = self.0.iter().filter(|n| machine.starts_with(&n.machine));
        fitting.max_by_key(|n| n.machine.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Names, Failure> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("machines.csv");
        std::fs::write(&file, text).unwrap();
        Names::read(&file)
    }

    #[test]
    fn the_longest_matching_prefix_selects_the_name_of_a_machine() {
        let names = read(
            "machine,name,known_by\n\"A CPU\",Zen,the vendor\n\"A CPU, L2 512\",Zen 3,its cache\n",
        )
        .unwrap();
        assert_eq!(names.of("A CPU, L2 512 KiB").unwrap().name, "Zen 3");
        assert_eq!(names.of("A CPU, L2 1024 KiB").unwrap().name, "Zen");
        assert!(names.of("B CPU").is_none());
    }

    #[test]
    fn without_a_file_of_names_no_machine_has_a_name() {
        assert!(Names::read(Path::new("/missing/machines.csv")).unwrap().of("A CPU").is_none());
    }

    #[test]
    fn a_file_with_unexpected_columns_is_an_error_that_lists_the_columns() {
        let error = read("processor,name\nA,B\n").err().unwrap().to_string();
        assert!(error.contains("machines.csv") && error.contains("known_by"), "{error}");
    }
}

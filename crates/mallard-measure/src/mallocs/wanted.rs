//! Parses `--allocator NAME[=LIBRARY][,VARIABLE=VALUE]...`.

use super::{library, list, Allocator, Entry};
use crate::error::status::MALLARD_FAILED;
use crate::error::Failure;
use std::path::PathBuf;
use std::str::FromStr;

/// The syntax of `--allocator`, for help texts.
pub const SYNTAX: &str = "NAME[=LIBRARY][,VAR=VALUE]";

/// An allocator that the user has named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The text that the user typed, without the library.
    label: String,
    name: String,
    library: Option<PathBuf>,
    environment: Vec<(String, String)>,
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Wanted, String> {
        let (head, tail) = text.split_once(',').unwrap_or((text, ""));
        // The name of a setting, such as glibc:arenas=1, contains an equals sign.
        let (name, library) = match head.split_once('=') {
            Some((name, library)) if !list().any(|entry| entry.name == head) => {
                (name, Some(PathBuf::from(library)))
            }
            _ => (head, None),
        };
        if name.is_empty() || library.as_ref().is_some_and(|l| l.as_os_str().is_empty()) {
            return Err(format!("an allocator is {SYNTAX}, for example mine=./libmine.so"));
        }
        let environment = variables(tail)?;
        let label = match tail {
            "" => name.to_string(),
            _ => format!("{name},{tail}"),
        };
        Ok(Wanted { label, name: name.to_string(), library, environment })
    }
}

/// Parses VAR=VALUE,VAR=VALUE. A value may contain commas, as in
/// MALLOC_CONF=narenas:1,tcache:false, so a part without an equals sign continues the value before
/// it.
fn variables(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut variables: Vec<(String, String)> = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        match (part.split_once('='), variables.last_mut()) {
            (Some(("", _)), _) => return Err(format!("'{part}' names no variable")),
            (Some((name, value)), _) => variables.push((name.to_string(), value.to_string())),
            (None, Some((_, value))) => *value += &format!(",{part}"),
            (None, None) => return Err(format!("'{part}' is not of the form VAR=VALUE")),
        }
    }
    Ok(variables)
}

impl Wanted {
    /// Finds the library of the allocator that the user named.
    pub fn find(&self) -> Result<Allocator, Failure> {
        let mut allocator = match &self.library {
            Some(library) => {
                Allocator { library: Some(library::named(library)?), ..Allocator::default() }
            }
            None => Allocator::of(self.entry()?)?,
        };
        allocator.name.clone_from(&self.label);
        allocator.environment.extend(self.environment.iter().cloned());
        Ok(allocator)
    }

    /// Returns the list entry with this name. If no entry has exactly this name, returns the only
    /// entry that has this name followed by a version.
    fn entry(&self) -> Result<&'static Entry, Failure> {
        if let Some(entry) = list().find(|entry| entry.name == self.name) {
            return Ok(entry);
        }
        let begin = format!("{}-", self.name);
        let versions: Vec<&Entry> = list().filter(|entry| entry.name.starts_with(&begin)).collect();
        match versions[..] {
            [entry] => Ok(entry),
            _ => Err(self.unknown()),
        }
    }

    fn unknown(&self) -> Failure {
        let names: Vec<&str> = list().map(|entry| entry.name.as_str()).collect();
        let name = &self.name;
        Failure::new(
            format!("there is no allocator '{name}'; mallard knows {}", names.join(", ")),
            "nothing was started",
            format!("--allocator {name}=/path/to/lib{name}.so, for any other library"),
        )
        .with_status(MALLARD_FAILED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (String, String, Option<PathBuf>, Vec<(String, String)>) {
        let wanted: Wanted = text.parse().unwrap();
        (wanted.label, wanted.name, wanted.library, wanted.environment)
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_string(), value.to_string())
    }

    #[test]
    fn an_allocator_option_has_a_name_a_library_and_environment_variables() {
        assert_eq!(parsed("jemalloc"), ("jemalloc".into(), "jemalloc".into(), None, vec![]));
        let library = Some(PathBuf::from("./x.so"));
        assert_eq!(parsed("mine=./x.so"), ("mine".into(), "mine".into(), library.clone(), vec![]));
        let both =
            ("mine,A=1,B=2".into(), "mine".into(), library, vec![pair("A", "1"), pair("B", "2")]);
        assert_eq!(parsed("mine=./x.so,A=1,B=2"), both);
    }

    #[test]
    fn a_glibc_setting_is_not_mistaken_for_a_library() {
        assert_eq!(parsed("glibc:arenas=1").2, None);
        assert_eq!(
            "glibc:arenas=1".parse::<Wanted>().unwrap().find().unwrap().environment.len(),
            1
        );
    }

    #[test]
    fn an_environment_variable_in_an_allocator_option_may_contain_commas() {
        let variables = parsed("jemalloc,MALLOC_CONF=narenas:1,tcache:false,B=2").3;
        let list = pair("MALLOC_CONF", "narenas:1,tcache:false");
        assert_eq!(variables, [list, pair("B", "2")]);
    }

    #[test]
    fn the_version_of_a_malloc_may_be_omitted_if_only_one_is_known() {
        let entry = |name: &str| name.parse::<Wanted>().unwrap().entry().map(|e| e.name.clone());
        assert_eq!(entry("snmalloc").unwrap(), "snmalloc-0.7.6");
        assert_eq!(entry("mimalloc").unwrap(), "mimalloc");
        assert!(entry("nonsense").unwrap_err().help().contains("--allocator nonsense=/path"));
    }

    #[test]
    fn invalid_allocator_options_are_rejected() {
        for text in ["", "=x.so", "mine=", "mine,A", "mine,=1"] {
            assert!(text.parse::<Wanted>().is_err(), "{text}");
        }
    }
}

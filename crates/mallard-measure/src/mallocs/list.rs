//! The list of mallocs, read from spec/allocators.csv.

use serde::Deserialize;
use std::sync::OnceLock;

/// Where an allocator comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The malloc of the C library.
    Libc,
    /// A package of Debian.
    Debian,
    /// A library that `bench/peers` builds from a crate.
    Crate,
    /// Mallard's malloc.
    Mallard,
    /// The C library's malloc with other settings.
    Tunable,
    /// A malloc that is recognised in programs, but never preloaded.
    Known,
}

/// The programs for which a setting can matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Matters {
    /// Programs with several threads at the same time.
    Threads,
    /// Programs whose calls of malloc and free take much CPU time.
    Calls,
    /// Programs whose page faults take much CPU time.
    Pages,
    /// Programs whose malloc holds much more memory than is in use.
    Memory,
}

/// One line of spec/allocators.csv.
#[derive(Clone, Debug, Deserialize)]
pub struct Entry {
    /// The name that `--allocator` accepts.
    pub name: String,
    /// The name in benchmark results, in which `*` stands for the version. Empty if there are no
    /// benchmark results for this malloc.
    pub contender: String,
    /// The origin of the allocator.
    pub kind: Kind,
    /// The file names for LD_PRELOAD, separated by spaces. A library has several if distributions
    /// have several versions. Empty for the malloc of the C library.
    library: String,
    /// The Debian packages that contain the library, separated by spaces. A library has several if
    /// versions of Debian and Ubuntu name the package differently.
    package: String,
    /// Environment variables to set, as NAME=VALUE, separated by spaces.
    pub environment: String,
    /// The programs for which a setting can matter. `None` if the allocator can matter for all
    /// programs.
    pub matters: Option<Matters>,
    /// Prefixes of the names of files that contain this malloc, separated by spaces.
    pub files: String,
    /// Functions by which programs allocate if this malloc does not replace `malloc`, separated by
    /// spaces.
    pub functions: String,
    /// Further functions by which a program is recognised to contain this malloc, separated by
    /// spaces.
    pub marks: String,
    /// A description of the allocator.
    pub about: String,
}

impl Entry {
    /// Returns the name without a version, such as `jemalloc` for `jemalloc-5.3.1`.
    pub fn library_name(&self) -> &str {
        self.name.split('-').next().unwrap_or_default()
    }

    /// Returns the file names for LD_PRELOAD, the most common first. Empty for the malloc of the C
    /// library.
    pub fn libraries(&self) -> impl Iterator<Item = &str> {
        self.library.split_whitespace()
    }

    /// Returns the packages that may contain the library. Each version of Debian or Ubuntu has only
    /// one of them.
    pub fn packages(&self) -> impl Iterator<Item = &str> {
        self.package.split_whitespace()
    }

    /// Returns the environment variables to set, with their values.
    pub fn variables(&self) -> Vec<(String, String)> {
        let pairs = self.environment.split(' ').filter_map(|pair| pair.split_once('='));
        pairs.map(|(name, value)| (name.to_string(), value.to_string())).collect()
    }
}

/// The lines of spec/allocators.csv.
#[derive(Debug)]
pub struct Mallocs {
    lines: Vec<Entry>,
}

impl Mallocs {
    /// Returns the list.
    pub fn get() -> &'static Mallocs {
        static LIST: OnceLock<Mallocs> = OnceLock::new();
        LIST.get_or_init(|| Mallocs::parse(include_str!("../../../../spec/allocators.csv")))
    }

    fn parse(text: &str) -> Mallocs {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let lines = reader.deserialize();
        let lines = lines.map(|line| line.expect("a valid line of spec/allocators.csv"));
        Mallocs { lines: lines.collect() }
    }

    /// Returns the mallocs under which a program can run.
    pub fn to_start(&self) -> impl Iterator<Item = &Entry> {
        self.lines.iter().filter(|entry| entry.kind != Kind::Known)
    }

    /// Returns the malloc that a file contains, by the name of the file. `None` if the file has the
    /// malloc of the C library, or an unknown malloc.
    pub fn in_file(&self, name: &str) -> Option<&Entry> {
        self.lines.iter().find(|entry| entry.files.split(' ').any(|begin| begins(name, begin)))
    }

    /// Returns a function by which a program allocates without calling `malloc`. `has` returns
    /// whether the program has a given function.
    pub fn allocates_by(&self, has: impl Fn(&str) -> bool) -> Option<&str> {
        let all = self.lines.iter().flat_map(|entry| entry.functions.split(' '));
        all.filter(|name| !name.is_empty()).find(|name| has(name))
    }

    /// Returns the malloc that a program contains. `has` returns whether the program has a given
    /// function.
    pub fn contained(&self, has: impl Fn(&str) -> bool) -> Option<&Entry> {
        let names = |entry: &'_ Entry| [entry.marks.clone(), entry.functions.clone()].join(" ");
        self.lines
            .iter()
            .find(|entry| names(entry).split(' ').any(|name| !name.is_empty() && has(name)))
    }

    /// Returns whether benchmark results with this competitor name are results of a malloc.
    pub fn has_rows_of(&self, contender: &str) -> bool {
        let library = |entry: &Entry| match entry.contender.rsplit_once('-') {
            Some((library, _)) => format!("{library}-"),
            None => entry.contender.clone(),
        };
        self.lines.iter().any(|entry| begins(contender, &library(entry)))
    }
}

/// Returns whether `name` begins with `begin`, which is not empty.
fn begins(name: &str, begin: &str) -> bool {
    !begin.is_empty() && name.starts_with(begin)
}

/// Returns the allocators of spec/allocators.csv under which a program can run.
pub fn list() -> impl Iterator<Item = &'static Entry> {
    Mallocs::get().to_start()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_in_the_list_of_mallocs_is_complete_and_unique() {
        let mut names = std::collections::HashSet::new();
        let all = &Mallocs::get().lines;
        for entry in all {
            assert!(names.insert(&entry.name), "{} is there twice", entry.name);
            assert!(!entry.about.is_empty(), "{entry:?}");
            let has_none = matches!(entry.kind, Kind::Libc | Kind::Tunable | Kind::Known);
            assert_eq!(entry.library.is_empty(), has_none, "{entry:?}");
            let has_library = !entry.library.is_empty();
            let is_in_files =
                |library: &str| entry.files.split(' ').any(|f| library.starts_with(f));
            assert!(!has_library || entry.libraries().all(is_in_files), "{entry:?}");
            assert_eq!(entry.package.is_empty(), entry.kind != Kind::Debian, "{entry:?}");
            assert_eq!(entry.variables().is_empty(), entry.kind != Kind::Tunable, "{entry:?}");
            assert_eq!(entry.matters.is_none(), entry.kind != Kind::Tunable, "{entry:?}");
        }
        assert_eq!(all[0].name, "glibc");
    }

    #[test]
    fn a_malloc_added_to_the_list_is_recognised_everywhere() {
        let text = include_str!("../../../../spec/allocators.csv");
        let line = "duckalloc-1.2,duckalloc-1.2,crate,libduckalloc.so,,,,libduckalloc,duck_alloc,\
                    duck_version,made up\n";
        let mallocs = Mallocs::parse(&format!("{text}{line}"));
        let only = |name: &'static str| move |other: &str| other == name;
        assert!(mallocs.to_start().any(|entry| entry.name == "duckalloc-1.2"));
        assert_eq!(mallocs.in_file("libduckalloc.so.1").unwrap().name, "duckalloc-1.2");
        assert_eq!(mallocs.allocates_by(only("duck_alloc")), Some("duck_alloc"));
        assert_eq!(mallocs.contained(only("duck_version")).unwrap().name, "duckalloc-1.2");
        assert!(mallocs.has_rows_of("duckalloc-1.3"));
    }

    #[test]
    fn mallocs_are_recognised_by_file_names_and_exported_functions() {
        let mallocs = Mallocs::get();
        let file = |name| mallocs.in_file(name).map(|entry| entry.name.as_str());
        assert_eq!(file("libjemalloc.so.2"), Some("jemalloc"));
        assert_eq!(file("librpmalloc.so"), Some("rpmalloc-1.4.3"));
        assert_eq!(file("libmallard.so.0"), Some("mallard"));
        assert_eq!(file("libtbbmalloc.so.2"), Some("tbbmalloc"));
        assert_eq!((file("libmallard-record.so"), file("libc.so.6")), (None, None));
        let has = |names: &'static [&str]| move |name: &str| names.contains(&name);
        assert_eq!(mallocs.allocates_by(has(&["main", "_rjem_malloc"])), Some("_rjem_malloc"));
        assert_eq!(mallocs.allocates_by(has(&["mallctl"])), None);
        let contained = |names| mallocs.contained(has(names)).map(|entry| entry.name.as_str());
        assert_eq!(contained(&["mallctl"]), Some("jemalloc"));
        assert_eq!(contained(&["main"]), None);
    }
}

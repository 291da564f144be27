//! The allocators under which a program can run: the list of known mallocs, and any other library
//! with a malloc.
//!
//! `list` reads spec/allocators.csv, `wanted` parses `--allocator`, `library` finds the library
//! file, `install` installs it, and `probe` loads the library into a small program to check whose
//! malloc the program calls.

pub mod applied;
pub mod install;
mod library;
pub mod list;
pub mod probe;
pub mod wanted;

pub use list::{list, Entry, Kind, Matters};

use crate::error::Failure;
use crate::process::preload::{joined, preloadable};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Environment variables to set, or to remove (`None`).
pub type Variables = Vec<(OsString, Option<OsString>)>;

/// An allocator whose library was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allocator {
    /// The name in tables: what the user typed, or the name in the list.
    pub name: String,
    /// The library that is preloaded. `None` for glibc.
    pub library: Option<PathBuf>,
    /// Further environment variables.
    pub environment: Vec<(String, String)>,
    /// Whether LD_PRELOAD keeps the value that the user has set. True for the base of a comparison.
    pub as_started: bool,
}

impl Allocator {
    /// Returns the allocator that a program has if the user starts it without mallard.
    pub fn as_started(name: &str) -> Allocator {
        Allocator { name: name.to_string(), as_started: true, ..Allocator::default() }
    }

    /// Finds the library of an allocator in the list.
    pub fn of(entry: &Entry) -> Result<Allocator, Failure> {
        Ok(Allocator {
            name: entry.name.clone(),
            library: library::of(entry)?,
            environment: entry.variables(),
            as_started: false,
        })
    }

    /// Returns the environment variables that make a program use this malloc.
    pub fn variables(&self, program: &Path) -> Variables {
        let mut variables = Variables::new();
        if !self.as_started {
            let own = self.library.iter().chain(others_preloaded());
            let in_front = self.in_front_of_linked_malloc(program);
            let preload = joined(own.chain(&in_front).map(|path| preloadable(path).into()));
            variables.push(("LD_PRELOAD".into(), Some(preload).filter(|all| !all.is_empty())));
        }
        let more = self.environment.iter();
        variables.extend(more.map(|(name, value)| (name.into(), Some(value.into()))));
        variables
    }

    /// Returns the libraries that must be loaded before the malloc that a program is linked with:
    /// the C library if the allocator is glibc, and the C++ runtime for its operators new and
    /// delete. Without the runtime, the program would still call the operators of the linked
    /// malloc, unless the preloaded malloc has its own operators.
    fn in_front_of_linked_malloc(&self, program: &Path) -> Vec<PathBuf> {
        let libraries = probe::libraries(program);
        if !libraries.iter().any(|(name, _)| probe::is_malloc(name)) {
            return Vec::new();
        }
        let libc = self.library.is_none().then(|| PathBuf::from("libc.so.6"));
        let runtimes = libraries.into_iter().filter(|(name, _)| probe::is_cpp_runtime(name));
        libc.into_iter().chain(runtimes.map(|(_, path)| path)).collect()
    }

    /// Sets the environment variables of a command before it is started.
    pub fn apply(&self, command: &mut Command) {
        let variables = self.variables(command.get_program().as_ref());
        set(command, variables);
    }
}

/// Sets or removes the given environment variables of a command before it is started.
pub fn set(command: &mut Command, variables: Variables) {
    for (name, value) in variables {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
}

/// Returns the libraries in the user's LD_PRELOAD, without the one that has a malloc.
fn others_preloaded() -> &'static [PathBuf] {
    static OTHERS: OnceLock<Vec<PathBuf>> = OnceLock::new();
    OTHERS.get_or_init(|| {
        let all = preloaded_by_user();
        if all.is_empty() {
            return all;
        }
        let own = probe::malloc_as_started().unwrap_or_default();
        all.into_iter().filter(|path| path.file_name() != own.file_name()).collect()
    })
}

/// Returns the libraries in LD_PRELOAD.
pub fn preloaded_by_user() -> Vec<PathBuf> {
    let text = std::env::var("LD_PRELOAD").unwrap_or_default();
    text.split([':', ' ']).filter(|path| !path.is_empty()).map(PathBuf::from).collect()
}

/// Returns the allocator under which a program runs when the user starts it, which is glibc or the
/// malloc in LD_PRELOAD.
pub fn base() -> Allocator {
    let own = if preloaded_by_user().is_empty() { None } else { probe::malloc_as_started() };
    match own.filter(|path| !probe::is_of_libc(path)) {
        Some(path) => Allocator::as_started(&shown(&path)),
        None => Allocator::as_started("glibc"),
    }
}

/// Returns the name of a file, as text.
pub fn shown(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns whether a name in the list means a setting of glibc that affects only page faults and
/// memory.
pub fn acts_by_pages(name: &str) -> bool {
    let matters = list().find(|entry| entry.name == name).and_then(|entry| entry.matters);
    matters.is_some_and(|of| of != Matters::Calls)
}

/// Returns the allocators of the list that are installed and work. Also returns the other
/// allocators of the list, with the reason why each is left out.
pub fn installed() -> (Vec<Allocator>, Vec<(String, Failure)>) {
    let mut found = Vec::new();
    let mut missing = Vec::new();
    for entry in list() {
        match Allocator::of(entry)
            .and_then(|allocator| probe::check(&allocator).map(|()| allocator))
        {
            Ok(allocator) => found.push(allocator),
            Err(failure) => missing.push((entry.name.clone(), failure)),
        }
    }
    (found, missing)
}

/// Returns a note that names the mallocs that are missing although a package of the distribution or
/// Mallard's installation contains them, with the command that installs them. `None` if no such
/// malloc is missing.
pub fn note_of_missing(missing: &[(String, Failure)]) -> Option<String> {
    let of_kind = |kind: Kind| {
        let is_it = move |name: &&str| list().any(|of| of.name == **name && of.kind == kind);
        missing.iter().map(|(name, _)| name.as_str()).filter(is_it).collect::<Vec<_>>().join(", ")
    };
    match (of_kind(Kind::Mallard), of_kind(Kind::Debian)) {
        (own, _) if !own.is_empty() => {
            Some(format!("not installed: {own}; mallard try --list shows how to get it"))
        }
        (_, others) if !others.is_empty() => {
            Some(format!("not installed: {others}; mallard try --install installs them"))
        }
        _ => None,
    }
}

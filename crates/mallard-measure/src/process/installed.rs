//! Finds the parts of Mallard that are separate files: the malloc, the recorder and the replayer.
//! They are below the prefix of an installed command, or in the build directory of the clone that
//! built the command.

use crate::error::status::MALLARD_FAILED;
use crate::error::Failure;
use crate::output::shell::quoted_path;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A file that the command needs.
pub struct Part<'a> {
    /// The name of the file.
    pub file: &'a str,
    /// The directory of the file within a build directory.
    pub built_in: &'a str,
    /// The component that installs the file.
    pub component: &'a str,
    /// The environment variable that names another file to use instead.
    pub variable: &'a str,
}

/// The library that is preloaded into a program to record it.
pub const RECORDER: Part = Part {
    file: "libmallard-record.so",
    built_in: "src/record",
    component: "record",
    variable: "MALLARD_RECORDER",
};

/// The library that is preloaded into a program to apply a plan.
pub const PLAN: Part = Part {
    file: "libmallard-plan.so",
    built_in: "src/plan",
    component: "record",
    variable: "MALLARD_PLAN_LIBRARY",
};

/// The program that replays recordings.
pub const PLAYER: Part = Part {
    file: "mallard-replay",
    built_in: "src/replay",
    component: "record",
    variable: "MALLARD_REPLAY",
};

/// Returns a library of Mallard's malloc.
pub fn malloc(file: &str) -> Part<'_> {
    Part { file, built_in: "src/malloc", component: "malloc", variable: "MALLARD_MALLOC" }
}

/// The subdirectories of `build` to search: the build directories of the CMake presets, and `build`
/// itself, which `cmake -B build` uses.
const BUILDS: [&str; 4] = ["release", "bench", "dev", ""];

/// The command to type if `cargo install` has built this command without the other parts.
const BUILT: &str = "in a clone: cmake -B build -DMALLARD_BUILD_COMMAND=OFF && cmake --build build";

impl Part<'_> {
    /// Finds the part by its environment variable, or near this command. `state` is a text for the
    /// error message that describes what was not done.
    pub fn find(&self, state: &str) -> Result<PathBuf, Failure> {
        self.look()
            .map_err(|what| Failure::new(what, state, self.help()).with_status(MALLARD_FAILED))
    }

    fn look(&self) -> Result<PathBuf, String> {
        let Part { file, variable, .. } = self;
        if let Some(path) = std::env::var_os(variable) {
            let path = PathBuf::from(path);
            return path.canonicalize().and_then(must_be_library).map_err(|e| {
                let e = e.to_string().to_lowercase();
                format!("{}, which {variable} names, cannot be used: {e}", path.display())
            });
        }
        let found = self.places().into_iter().find(|path| path.is_file());
        found.ok_or_else(|| format!("{file} is not next to {}", this_program().display()))
    }

    /// Returns the paths at which the part may be.
    pub fn places(&self) -> Vec<PathBuf> {
        self.places_about(&this_program())
    }

    /// Returns what to type if the part is missing.
    pub fn help(&self) -> String {
        self.help_about(&this_program())
    }

    fn places_about(&self, program: &Path) -> Vec<PathBuf> {
        let prefix = above(program, 2);
        let installed =
            library_folders().map(|folder| prefix.join(folder).join("mallard").join(self.file));
        let built = builds(program, self.built_in, self.file);
        installed.into_iter().chain(built).collect()
    }

    fn help_about(&self, program: &Path) -> String {
        let Part { file, component, variable, .. } = self;
        let makes = match is_installed(program) {
            true => format!(
                "{BUILT} && cmake --install build --prefix {} --component {component}",
                quoted_path(above(program, 2))
            ),
            false => "./x build release in the clone".to_string(),
        };
        format!("{makes}, or {variable}=/path/to/{file}")
    }
}

/// Returns the paths at which a file may be in the build directories of the clone that built this
/// command. Empty for an installed command.
pub fn in_builds(folder: &str, file: &str) -> Vec<PathBuf> {
    builds(&this_program(), folder, file)
}

/// Returns the directories below a prefix that have libraries for this processor. The first one,
/// named after the processor and glibc, is used by Debian and Ubuntu below /usr. Other systems use
/// the other two. The name contains glibc even if this command uses another C library, because
/// preloaded libraries are built for glibc.
pub fn library_folders() -> [String; 3] {
    [format!("lib/{}-linux-gnu", std::env::consts::ARCH), "lib64".into(), "lib".into()]
}

/// Fails if the file is neither a library nor a program. The dynamic linker would ignore the file,
/// so that the program would start without the recorder.
pub fn must_be_library(path: PathBuf) -> io::Result<PathBuf> {
    let mut begin = [0; 4];
    File::open(&path)?.read_exact(&mut begin)?;
    if begin == *b"\x7fELF" {
        return Ok(path);
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "it is not a library"))
}

fn this_program() -> PathBuf {
    std::env::current_exe().and_then(|path| path.canonicalize()).unwrap_or_default()
}

fn above(program: &Path, levels: usize) -> &Path {
    program.ancestors().nth(levels).unwrap_or(Path::new("/"))
}

/// Returns whether a program is in PREFIX/bin. Otherwise the program is in the directory
/// build/cargo/PROFILE of a clone.
fn is_installed(program: &Path) -> bool {
    above(program, 1).ends_with("bin")
}

fn builds(program: &Path, folder: &str, file: &str) -> Vec<PathBuf> {
    if is_installed(program) {
        return Vec::new(); // directories above PREFIX may be writable by anybody
    }
    BUILDS.map(|build| above(program, 3).join(build).join(folder).join(file)).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installed_command_searches_each_library_directory_below_its_prefix() {
        let debian = match () {
            () if cfg!(target_arch = "x86_64") => "lib/x86_64-linux-gnu",
            () if cfg!(target_arch = "aarch64") => "lib/aarch64-linux-gnu",
            () => return,
        };
        let file = |folder| Path::new("/usr").join(folder).join("mallard/libmallard-record.so");
        let places = RECORDER.places_about(Path::new("/usr/bin/mallard"));
        assert_eq!(places, [debian, "lib64", "lib"].map(file));
    }

    #[test]
    fn a_command_in_a_source_tree_searches_the_build_directories() {
        let places =
            malloc("libmallard.so").places_about(Path::new("/c/build/cargo/debug/mallard"));
        for folder in ["release/", "bench/", "dev/", ""] {
            let path = format!("/c/build/{folder}src/malloc/libmallard.so");
            assert!(places.contains(&PathBuf::from(&path)), "{path}");
        }
    }

    #[test]
    fn an_installed_command_with_a_missing_file_names_the_component_and_its_prefix() {
        let help = PLAYER.help_about(Path::new("/home/me/my tools/bin/mallard"));
        let install = "cmake --install build --prefix '/home/me/my tools' --component record";
        assert_eq!(
            help,
            format!("{BUILT} && {install}, or MALLARD_REPLAY=/path/to/mallard-replay")
        );
        let help = malloc("libmallard.so").help_about(Path::new("/usr/local/bin/mallard"));
        let install = "cmake --install build --prefix /usr/local --component malloc";
        assert_eq!(help, format!("{BUILT} && {install}, or MALLARD_MALLOC=/path/to/libmallard.so"));
    }

    #[test]
    fn a_command_in_a_source_tree_with_a_missing_file_names_the_build_script() {
        let help = RECORDER.help_about(Path::new("/clone/build/cargo/release/mallard"));
        let variable = "MALLARD_RECORDER=/path/to/libmallard-record.so";
        assert_eq!(help, format!("./x build release in the clone, or {variable}"));
    }
}

//! Finds the file of a module, and the files with its debug information.

use super::files::{Elf, Files};
use crate::modules::Module;
use object::read::Object;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SYSTEM_FOLDER: &str = "/usr/lib/debug";
/// The interval at which `fetch` checks whether its child process has exited.
const PAUSE: Duration = Duration::from_millis(10);

/// The places to search for files with debug information.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places<'a> {
    /// Directories that are searched first. Each is treated as the root of the file system.
    pub folders: &'a [PathBuf],
    /// Files that were fetched from a server, by build-id.
    pub fetched: &'a HashMap<String, PathBuf>,
}

/// Finds the files of one module.
pub(super) struct DebugFiles<'a> {
    pub module: &'a Module,
    pub places: Places<'a>,
    pub files: &'a Files,
    /// The build-ids for which no debug information was found.
    pub missing: RefCell<Vec<String>>,
}

impl<'a> DebugFiles<'a> {
    pub fn new(module: &'a Module, places: Places<'a>, files: &'a Files) -> Self {
        DebugFiles { module, places, files, missing: RefCell::default() }
    }

    /// Finds the file of the module. The file must have the build-id of the module.
    pub fn binary(&self) -> Option<(PathBuf, Elf<'a>)> {
        let path = Path::new(&self.module.path);
        let mut places = self.inside_folders(path).chain(path.is_absolute().then(|| path.into()));
        places.find_map(|place| self.open(place, &self.module.build_id))
    }

    /// Finds the separate file with the debug information of the module. `binary` may contain the
    /// name of that file.
    pub fn separate(&self, binary: Option<&Elf>) -> Option<(PathBuf, Elf<'a>)> {
        let mut places = self.by_build_id(&self.module.build_id);
        let link = binary.and_then(|binary| binary.gnu_debuglink().ok()?);
        let link = link.map(|(name, _)| Path::new(OsStr::from_bytes(name)));
        // A name that contains a slash could lead out of the directories.
        let link = link.filter(|link| link.file_name() == Some(link.as_os_str()));
        if let (Some(link), Some(beside)) = (link, Path::new(&self.module.path).parent()) {
            places.push(beside.join(link));
            places.push(beside.join(".debug").join(link));
            places.extend(self.inside_roots(&beside.join(link)));
        }
        let is_other = |place: &PathBuf| place != Path::new(&self.module.path);
        places
            .into_iter()
            .filter(is_other)
            .find_map(|place| self.open(place, &self.module.build_id))
    }

    /// Finds the supplementary file, into which dwz has moved debug information that several files
    /// share. The file at `path` has the name of the supplementary file.
    pub fn supplementary(&self, object: &Elf, path: &Path) -> Option<Elf<'a>> {
        let (name, build_id) = object.gnu_debugaltlink().ok()??;
        let build_id = hex(build_id);
        // A relative name is relative to the directory of the file that contains the name.
        let named = path.parent()?.join(OsStr::from_bytes(name));
        let mut places: Vec<PathBuf> = self.inside_folders(&named).collect();
        places.push(named);
        places.extend(self.by_build_id(&build_id));
        let found = places.into_iter().find_map(|place| self.open(place, &build_id));
        if found.is_none() {
            self.missing.borrow_mut().push(build_id);
        }
        found.map(|(_, object)| object)
    }

    /// Returns the possible paths of the package (.dwp) with split debug information. `path` is the
    /// file that contains the other debug information.
    pub fn packages(&self, path: &Path) -> Vec<PathBuf> {
        let of = |path: &Path| {
            let mut name = path.as_os_str().to_os_string();
            name.push(".dwp");
            PathBuf::from(name)
        };
        let own = of(Path::new(&self.module.path));
        let mut places = vec![of(path)];
        places.extend(self.inside_folders(&own));
        places.push(own);
        places
    }

    /// Returns the possible paths of a file with split debug information (.dwo): its original path,
    /// and a path next to the module. `path` is relative to `compiled_in`, the directory in which
    /// the compiler ran.
    pub fn split(&self, compiled_in: &[u8], path: &[u8]) -> Vec<PathBuf> {
        let path = Path::new(OsStr::from_bytes(path));
        let at_path = Path::new(OsStr::from_bytes(compiled_in)).join(path);
        let mut places: Vec<PathBuf> = self.inside_folders(&at_path).collect();
        places.push(at_path);
        if let Some(name) = path.file_name() {
            places.extend(self.places.folders.iter().map(|folder| folder.join(name)));
            places.push(Path::new(&self.module.path).with_file_name(name));
        }
        places
    }

    /// Returns the possible paths of debug information with a build-id.
    fn by_build_id(&self, build_id: &str) -> Vec<PathBuf> {
        let Some((first, rest)) = build_id.split_at_checked(2).filter(|parts| !parts.1.is_empty())
        else {
            return Vec::new();
        };
        let name = PathBuf::from(format!(".build-id/{first}/{rest}.debug"));
        self.inside_roots(&name).chain(self.places.fetched.get(build_id).cloned()).collect()
    }

    /// Returns the possible paths of a file in each of the directories [`Places::folders`].
    fn inside_folders(&self, path: &Path) -> impl Iterator<Item = PathBuf> + use<'a> {
        let inside = path.strip_prefix("/").unwrap_or(path).to_path_buf();
        self.places.folders.iter().map(move |folder| folder.join(&inside))
    }

    /// Returns the paths that `inside_folders` returns, and the path in /usr/lib/debug.
    fn inside_roots(&self, path: &Path) -> impl Iterator<Item = PathBuf> + use<'a> {
        let inside = path.strip_prefix("/").unwrap_or(path);
        self.inside_folders(path).chain([Path::new(SYSTEM_FOLDER).join(inside)])
    }

    /// Opens a file, and checks its build-id. If `build_id` is empty, any object file matches.
    fn open(&self, path: PathBuf, build_id: &str) -> Option<(PathBuf, Elf<'a>)> {
        let object = self.files.open(&path)?;
        let is_same = build_id.is_empty()
            || object.build_id().ok().flatten().is_some_and(|id| hex(id) == build_id);
        is_same.then_some((path, object))
    }
}

/// Fetches the debug information with a build-id from servers by running the program
/// `debuginfod-find` of elfutils. That program reads the addresses of the servers from the variable
/// DEBUGINFOD_URLS, and stores fetched files in a cache. Returns `None` if no server has the file,
/// if the program is not installed, or after `deadline`.
pub(super) fn fetch(build_id: &str, deadline: Instant) -> Option<PathBuf> {
    let left = deadline.checked_duration_since(Instant::now())?.as_secs() + 1;
    // The program exits after this number of seconds, and removes an incomplete file.
    let mut child = Command::new("debuginfod-find")
        .args(["debuginfo", build_id])
        .env("DEBUGINFOD_MAXTIME", left.to_string())
        .env("DEBUGINFOD_TIMEOUT", left.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let status = loop {
        match child.try_wait().ok()? {
            Some(status) => break status,
            None if Instant::now() < deadline + Duration::from_secs(2) => std::thread::sleep(PAUSE),
            None => {
                child.kill().ok()?;
                break child.wait().ok()?;
            }
        }
    };
    // The program prints the path of the file. Any path fits into the buffer of a pipe.
    let mut path = Vec::new();
    child.stdout.take()?.read_to_end(&mut path).ok()?;
    let end = path.iter().position(|&byte| byte == b'\n').unwrap_or(path.len());
    path.truncate(end);
    status.success().then(|| PathBuf::from(OsString::from_vec(path)))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
